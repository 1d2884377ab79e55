<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Reap;

/**
 * What one call of the reaper is to do.
 */
final class ReapOptions
{
    public function __construct(
        /** Runs to handle at most, at least 1. */
        public readonly int $limit,
        public readonly bool $dryRun = false,
        /** Seconds after which a queued run counts as stranded; null: no sweep. */
        public readonly ?int $wakeStranded = null,
        /** End runs whose stored payload cannot be decrypted, instead of leaving them alone. */
        public readonly bool $failUnreadable = false,
        /** A later call of this process sweeps. */
        public readonly bool $sweepFollows = false,
    ) {}

    /**
     * Returns the options of a tick between two sweeps of a resident reaper.
     */
    public function betweenSweeps(): self
    {
        return new self($this->limit, $this->dryRun, null, $this->failUnreadable, $this->wakeStranded !== null);
    }

    /**
     * Returns whether a sweep finds a requeued run whose wake-up could not be sent.
     */
    public function sweeps(): bool
    {
        return $this->wakeStranded !== null || $this->sweepFollows;
    }
}
