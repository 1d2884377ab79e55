<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Reap;

/**
 * What one call of the reaper did, run by run.
 */
final class ReapResult implements \JsonSerializable
{
    /** @var list<array<string, mixed>> entries of NrLlmReapReport */
    public array $requeued = [];
    /** @var list<array<string, mixed>> */
    public array $deadLettered = [];
    /** @var list<array<string, mixed>> */
    public array $skipped = [];
    /** @var list<array{uid: int, uuid: string, problem: string}> payloads that cannot be read */
    public array $leftAlone = [];
    /**
     * @var list<array{uid: int, uuid: string, settled: bool, problem: string}> wake-ups that could
     *     not be sent
     */
    public array $undispatched = [];
    /**
     * @var list<array{uid: int, uuid: string, problem: string}> runs ended because their payload
     *     cannot be read (--fail-unreadable)
     */
    public array $failedUnreadable = [];
    /** @var list<array<string, mixed>> entries of NrLlmRuntime::strandedRuns() */
    public array $woken = [];
    /** How many of them this process had not left alone before. */
    public int $newlyLeftAlone = 0;
    public bool $sweptStranded = false;
    public bool $dryRun = false;
    /** Stale runs were left for the next call. */
    public bool $hasMore = false;
    public string $wakeUps = '';
    public string $wakeUpsReason = '';

    public function handled(): int
    {
        return count($this->requeued) + count($this->deadLettered);
    }

    /**
     * Returns whether a resident reaper has nothing new to report.
     */
    public function isEmpty(): bool
    {
        return $this->handled() === 0 && $this->newlyLeftAlone === 0 && $this->undispatched === [] && $this->failedUnreadable === []
            && $this->woken === [];
    }

    /**
     * Returns whether every stale run that was examined could be handled. Skipped runs are another
     * process's business.
     */
    public function isSuccess(): bool
    {
        return $this->leftAlone === [] && $this->undispatched === [];
    }

    /**
     * The summary line that monitoring systems parse.
     */
    public function summary(): string
    {
        return sprintf(
            'Reaped %d stale run(s): %d requeued, %d dead-lettered, %d skipped (renewed or already moved on).',
            $this->handled() + count($this->skipped),
            count($this->requeued),
            count($this->deadLettered),
            count($this->skipped),
        );
    }

    /**
     * @return array<string, mixed> see Resources/Public/Schema/reap.schema.json
     */
    public function jsonSerialize(): array
    {
        return [
            'dryRun' => $this->dryRun,
            'summary' => $this->summary(),
            'counts' => [
                'stale' => $this->handled() + count($this->skipped),
                'requeued' => count($this->requeued),
                'deadLettered' => count($this->deadLettered),
                'skipped' => count($this->skipped),
                'leftAlone' => count($this->leftAlone),
                'undispatched' => count($this->undispatched),
                'failedUnreadable' => count($this->failedUnreadable),
                'woken' => count($this->woken),
            ],
            'requeued' => $this->requeued,
            'deadLettered' => $this->deadLettered,
            'skipped' => $this->skipped,
            'leftAlone' => $this->leftAlone,
            'undispatched' => $this->undispatched,
            'failedUnreadable' => $this->failedUnreadable,
            'woken' => $this->woken,
            'hasMore' => $this->hasMore,
            'wakeUps' => ['mode' => $this->wakeUps, 'reason' => $this->wakeUpsReason],
        ];
    }
}
