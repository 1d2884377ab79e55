<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Unit;

use NrLlmRuntime\Typo3\Settings\RuntimeSettings;
use NrLlmRuntime\Typo3\Status\InstallationCheck;
use PHPUnit\Framework\TestCase;

final class ClockTest extends TestCase
{
    public function testClocksThatDifferAreNamedWithTheRemedy(): void
    {
        $remedy = 'Set the clocks (NTP), or the extension setting "clock" to "database".';
        $danger = 'a reaper whose clock is ahead takes runs away from workers that live.';
        foreach ([
            // skew in ms, lease, ok, the danger is named
            [0, 60, true, false],
            [-1999, 60, true, false],
            [2500, 60, false, false],
            [-19900, 60, false, false],
            [20100, 60, false, true],
            [-20100, 60, false, true],
            [20100, 900, false, false],
            [300100, 900, false, true],
            // Short leases: a third is less than two seconds.
            [900, 3, true, false],
            [1100, 3, false, true],
            [-700, 2, false, true],
        ] as [$skew, $lease, $ok, $endangers]) {
            $check = InstallationCheck::clock($skew, RuntimeSettings::CLOCK_CALLER, $lease);
            $what = "$skew ms, $lease s: " . $check['text'];
            self::assertSame(['clock', $ok ? InstallationCheck::OK : InstallationCheck::WARNING], [$check['check'], $check['level']], $what);
            self::assertSame([!$ok, $endangers], [strpos($check['text'], $remedy) !== false, strpos($check['text'], $danger) !== false], $what);
            self::assertSame(InstallationCheck::OK, InstallationCheck::clock($skew, RuntimeSettings::CLOCK_DATABASE, $lease)['level']);
        }
        self::assertStringContainsString(
            'differ by 20.1 s; the clock of the calling host counts. That is more than a third of the lease of 60 s: ',
            InstallationCheck::clock(-20100, RuntimeSettings::CLOCK_CALLER, 60)['text'],
        );
        self::assertStringContainsString('the clock of the database counts.', InstallationCheck::clock(20100, RuntimeSettings::CLOCK_DATABASE, 60)['text']);
    }
}
