<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Unit;

use NrLlmRuntime\Typo3\Reap\Search;
use PHPUnit\Framework\TestCase;

final class SearchTest extends TestCase
{
    public function testItLooksAtTenRunsALimitAndAtAThousandAtLeast(): void
    {
        foreach ([[1, 1000], [50, 1000], [101, 1010]] as [$limit, $most]) {
            $search = new Search($limit);
            for ($examined = 0; !$search->isOver(); $examined++) {
                $search->examine();
            }
            self::assertSame([$most, false], [$examined, $search->isOutOfTime()], (string)$limit);
        }
        $search = new Search(PHP_INT_MAX);
        $search->examine();
        self::assertFalse($search->isOver());
    }

    public function testItGoesOnForTenSecondsSinceARunCouldBeHandled(): void
    {
        $now = 100.0;
        $search = new Search(5, static function () use (&$now): float {
            return $now;
        });
        $now += 1000.0;
        self::assertFalse($search->isOver(), 'nothing was passed over');
        $search->passOver(1);
        $now += 9.0;
        $search->passOver(2);
        self::assertFalse($search->isOver());
        $search->handled();
        $now += 1000.0;
        $search->passOver(3);
        $now += 10.5;
        self::assertTrue($search->isOver());
        self::assertTrue($search->isOutOfTime());
    }

    public function testAListingLooksBehindAllThatIsExcepted(): void
    {
        $search = new Search(1);
        self::assertSame([50, 70, 5000], [$search->listing(1), $search->listing(70), $search->listing(PHP_INT_MAX)]);
        for ($uid = 1; $uid <= 600; $uid++) {
            $search->passOver($uid);
        }
        $search->handled([601, 602, 7]);
        self::assertSame(range(1, 602), $search->except());
        // The runtime looks at ten runs a limit, and excepted ones are among them.
        self::assertGreaterThan(602 + 50, $search->listing(1) * 10);
    }
}
