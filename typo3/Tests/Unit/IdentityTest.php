<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Unit;

use NrLlmRuntime\Typo3\Repository\Identity;
use PHPUnit\Framework\TestCase;

final class IdentityTest extends TestCase
{
    public function testNames(): void
    {
        $nonce = 'a1b2c3d4e5f60708';
        $long = str_repeat('h', 50);
        $cases = [
            'short' => ['worker:web-01:4711', 'worker:web-01:4711:' . $nonce],
            'already extended' => ['worker:web-01:4711:' . $nonce, 'worker:web-01:4711:' . $nonce],
            'the host is shortened, the pid stays' => ["worker:$long:4711", 'worker:' . str_repeat('h', 35) . ':4711:' . $nonce],
            'the pid was cut off already' => [substr("worker:$long$long:4711", 0, 64), 'worker:' . str_repeat('h', 40) . ':' . $nonce],
            'a host with colons (IPv6)' => ["worker:fe80::1:$long:4711", 'worker:fe80::1:' . str_repeat('h', 27) . ':4711:' . $nonce],
            'no separators' => [str_repeat('x', 64), str_repeat('x', 47) . ':' . $nonce],
            'cut between characters' => ['worker:' . str_repeat('ü', 28) . ':1', 'worker:' . str_repeat('ü', 19) . ':1:' . $nonce],
        ];
        foreach ($cases as $case => [$given, $wanted]) {
            $stored = Identity::extend($given, $nonce);
            self::assertSame($wanted, $stored, $case);
            self::assertLessThanOrEqual(64, strlen($stored), $case);
            self::assertTrue(mb_check_encoding($stored, 'UTF-8'), $case);
        }
    }
}
