<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Reap;

/**
 * Bounds the search of one tick for runs that it can handle. Runs that it has to pass over (locked,
 * renewed, with a uuid that no message can carry, unreadable) do not use up the limit. The search
 * continues behind them, for at most ten runs per limit (1000 at least), and for ten seconds since
 * a run could last be handled.
 */
final class ReapBudget
{
    /** Runs examined whatever the limit. */
    private const AT_LEAST = 1000;
    private const PER_LIMIT = 10;
    private const SECONDS = 10.0;
    /** Runs in one listing: enough to reach those behind a few that are passed over. */
    private const LISTED_AT_LEAST = 50;
    private const LISTED_AT_MOST = 5000;

    private readonly int $most;
    private int $examined = 0;
    /** @var array<int, true> */
    private array $done = [];
    /** Since when runs are passed over and none is handled. */
    private ?float $since = null;
    /** @var \Closure(): float */
    private readonly \Closure $clock;

    /**
     * @param int                      $limit runs to handle at most, at least 1
     * @param (\Closure(): float)|null $clock seconds, monotonic; the machine's where none is given
     */
    public function __construct(int $limit, ?\Closure $clock = null)
    {
        $this->most = max(self::AT_LEAST, $limit > intdiv(PHP_INT_MAX, self::PER_LIMIT) ? PHP_INT_MAX : $limit * self::PER_LIMIT);
        $this->clock = $clock ?? static fn(): float => hrtime(true) / 1e9;
    }

    /**
     * Returns the limit for a dry run that is to list so many runs.
     */
    public function listing(int $wanted): int
    {
        // Excepted runs do not use up the runtime's limit either, but it examines ten runs per
        // limit.
        return max(self::LISTED_AT_LEAST, min($wanted, self::LISTED_AT_MOST)) + intdiv(count($this->done), self::PER_LIMIT);
    }

    /**
     * @return list<int> the runs that this tick is through with although they are still stale
     */
    public function except(): array
    {
        return array_keys($this->done);
    }

    public function examined(): int
    {
        return $this->examined;
    }

    public function examine(): void
    {
        $this->examined++;
    }

    public function passOver(int $uid): void
    {
        $this->done[$uid] = true;
        $this->since ??= ($this->clock)();
    }

    /**
     * @param list<int> $stillStale what a dry run would have handled
     */
    public function handled(array $stillStale = []): void
    {
        $this->since = null;
        $this->done += array_fill_keys($stillStale, true);
    }

    public function isOutOfTime(): bool
    {
        return $this->since !== null && ($this->clock)() - $this->since > self::SECONDS;
    }

    public function isOver(): bool
    {
        return $this->examined >= $this->most || $this->isOutOfTime();
    }
}
