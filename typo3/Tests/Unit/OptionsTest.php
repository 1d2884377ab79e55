<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Unit;

use NrLlmRuntime\Typo3\Console\Options;
use PHPUnit\Framework\TestCase;

final class OptionsTest extends TestCase
{
    public function testWholeNumbers(): void
    {
        foreach ([['50', 50], [50, 50], ['007', 7], ['1', 1], ['9223372036854775807', PHP_INT_MAX],
            ['0009223372036854775807', PHP_INT_MAX], [PHP_INT_MAX, PHP_INT_MAX]] as [$given, $wanted]) {
            self::assertSame($wanted, Options::integer($given, 1), var_export($given, true));
        }
        foreach (['0', '000', 0, -1, '-1', '1.9', '5.0', 1.9, 5.0, '1e3', '', ' ', 'abc', '5x', '0x5', null, true, [], '9223372036854775808',
            '99999999999999999999', "5\n6", '+5', ' 5', '5 ', "5\n", "\t5", "5\0", '٥'] as $given) {
            self::assertNull(Options::integer($given, 1), var_export($given, true));
        }
        self::assertSame(0, Options::integer('0', 0));
    }

    public function testSizes(): void
    {
        foreach ([['1024', 1024], [5, 5], ['128M', 134217728], ['1g', 1073741824], ['64 KB', 65536]] as [$given, $wanted]) {
            self::assertSame($wanted, Options::bytes($given), var_export($given, true));
        }
        foreach (['0', 0, -1, '', 'M', '1.5M', '1T', null, [], '-1M', '999999999999G'] as $given) {
            self::assertNull(Options::bytes($given), var_export($given, true));
        }
    }
}
