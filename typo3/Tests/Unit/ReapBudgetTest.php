<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Unit;

use NrLlmRuntime\Typo3\Reap\ReapBudget;
use PHPUnit\Framework\TestCase;

final class ReapBudgetTest extends TestCase
{
    public function testItLooksAtTenRunsALimitAndAtAThousandAtLeast(): void
    {
        foreach ([[1, 1000], [50, 1000], [101, 1010]] as [$limit, $most]) {
            $budget = new ReapBudget($limit);
            for ($examined = 0; !$budget->isOver(); $examined++) {
                $budget->examine();
            }
            self::assertSame([$most, false], [$examined, $budget->isOutOfTime()], (string)$limit);
        }
        $budget = new ReapBudget(PHP_INT_MAX);
        $budget->examine();
        self::assertFalse($budget->isOver());
    }

    public function testItGoesOnForTenSecondsSinceARunCouldBeHandled(): void
    {
        $now = 100.0;
        $budget = new ReapBudget(5, static function () use (&$now): float {
            return $now;
        });
        $now += 1000.0;
        self::assertFalse($budget->isOver(), 'nothing was passed over');
        $budget->passOver(1);
        $now += 9.0;
        $budget->passOver(2);
        self::assertFalse($budget->isOver());
        $budget->handled();
        $now += 1000.0;
        $budget->passOver(3);
        $now += 10.5;
        self::assertTrue($budget->isOver());
        self::assertTrue($budget->isOutOfTime());
    }

    public function testAListingLooksBehindAllThatIsExcepted(): void
    {
        $budget = new ReapBudget(1);
        self::assertSame([50, 70, 5000], [$budget->listing(1), $budget->listing(70), $budget->listing(PHP_INT_MAX)]);
        for ($uid = 1; $uid <= 600; $uid++) {
            $budget->passOver($uid);
        }
        $budget->handled([601, 602, 7]);
        self::assertSame(range(1, 602), $budget->except());
        // The runtime looks at ten runs a limit, and excepted ones are among them.
        self::assertGreaterThan(602 + 50, $budget->listing(1) * 10);
    }
}
