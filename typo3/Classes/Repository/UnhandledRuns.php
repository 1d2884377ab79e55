<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Repository;

/**
 * Runs that this process was asked to execute and could not claim although they may be queued.
 *
 * nr_llm reports a claim that failed with an error as "not claimed", and the transport then
 * acknowledges the message. The listener ResendMessageOfUnhandledRun reads this record before the
 * acknowledgement and sends the message again.
 */
final class UnhandledRuns
{
    /** @var array<int, string> */
    private array $reasons = [];

    public function add(int $runUid, string $reason): void
    {
        $this->reasons[$runUid] = $reason;
    }

    public function remove(int $runUid): void
    {
        unset($this->reasons[$runUid]);
    }

    public function clear(): void
    {
        $this->reasons = [];
    }

    /**
     * Returns the runs recorded since the last call, and forgets them.
     *
     * @return array<int, string> run uid => reason
     */
    public function take(): array
    {
        $reasons = $this->reasons;
        $this->reasons = [];

        return $reasons;
    }
}
