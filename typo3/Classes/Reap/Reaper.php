<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Reap;

use NrLlmRuntime\Typo3\Door\Door;
use NrLlmRuntime\Typo3\WakeUp\WakeUps;
use Psr\Log\LoggerInterface;

/**
 * One tick of the reaper: finds the stale runs, leaves those alone whose payload cannot be read, has the runtime decide and write the
 * others, and sees to their wake-ups.
 */
final class Reaper
{
    /** Runs that one call of the runtime handles, so that a terminal sees progress. */
    private const CHUNK = 200;
    /** Unreadable runs do not use the limit up, and the search for readable ones behind them is bounded: so many listings of so many. */
    private const LISTINGS = 20;
    private const LISTED = 50;

    public function __construct(
        private readonly Door $door,
        private readonly WakeUps $wakeUps,
        private readonly PayloadCheck $payloads,
        private readonly LoggerInterface $logger,
    ) {}

    /**
     * @param int                    $limit        runs to handle at most, at least 1
     * @param int|null               $wakeStranded seconds; null: no sweep
     * @param (\Closure(int): void)|null $progress told how many runs are done since the last call
     * @throws \Throwable where the runtime or the database cannot be used
     */
    public function tick(int $limit, bool $dryRun, ?int $wakeStranded = null, ?\Closure $progress = null): Tally
    {
        $runtime = $this->door->runtime();
        $tally = new Tally();
        $tally->dryRun = $dryRun;
        $tally->wakeUps = $this->wakeUps->mode();
        $tally->wakeUpsReason = $this->wakeUps->reason();

        $candidates = $this->candidates($runtime, $limit, $tally);
        if ($dryRun) {
            foreach ($candidates as $list => $entries) {
                $tally->{$list} = $entries;
            }

            return $tally;
        }
        $uids = array_column(array_merge($candidates['requeued'], $candidates['deadLettered']), 'uid');
        $template = $this->wakeUps->template();
        // Without an outbox a crash between a requeue and its wake-up strands what is in between: one run at most.
        foreach (array_chunk($uids, $template !== null ? self::CHUNK : 1) as $only) {
            $options = ['only' => $only] + ($template !== null ? ['wakeUp' => $template] : []);
            $report = $runtime->reap(count($only), null, $options);
            $this->take($runtime, $report->requeued(), $report->deadLettered(), $report->skipped(), $tally);
            if ($progress !== null) {
                $progress(count($only));
            }
        }
        if ($wakeStranded !== null) {
            $this->wakeStranded($runtime, $wakeStranded, $limit, $tally);
        }

        return $tally;
    }

    /**
     * The stale runs to handle, by what the runtime would do with them. A dry run is asked instead of listing here, so that one place
     * knows what stale means.
     *
     * @param \NrLlmRuntime $runtime
     * @return array{requeued: list<array<string, mixed>>, deadLettered: list<array<string, mixed>>, skipped: list<array<string, mixed>>}
     */
    private function candidates(object $runtime, int $limit, Tally $tally): array
    {
        $found = ['requeued' => [], 'deadLettered' => [], 'skipped' => []];
        $seen = [];
        for ($listing = 0; $listing < self::LISTINGS; $listing++) {
            $options = ['dryRun' => true] + ($seen !== [] ? ['except' => $seen] : []);
            $report = $runtime->reap(max(self::LISTED, $limit - self::count($found)), null, $options);
            $tally->hasMore = $report->hasMore();
            foreach ($report->skipped() as $entry) {
                // Those of this tick's own exceptions are known already.
                if ($entry['reason'] !== 'excepted') {
                    $found['skipped'][] = $entry;
                }
            }
            $entries = [];
            foreach (['requeued' => $report->requeued(), 'deadLettered' => $report->deadLettered()] as $list => $listed) {
                foreach ($listed as $entry) {
                    $entries[] = [$entry['leaseExpires'], $entry['uid'], $list, $entry];
                }
            }
            // The oldest lease first, whatever becomes of the run.
            usort($entries, static fn(array $left, array $right): int => [$left[0], $left[1]] <=> [$right[0], $right[1]]);
            foreach ($entries as [, $uid, $list, $entry]) {
                if (self::count($found) >= $limit) {
                    $tally->hasMore = true;
                    break;
                }
                $seen[] = $uid;
                $problem = $this->payloads->problem($uid);
                if ($problem === '') {
                    $found[$list][] = $entry;
                    continue;
                }
                $tally->leftAlone[] = ['uid' => $uid, 'uuid' => $entry['uuid'], 'problem' => $problem];
                $this->logger->error('Stale agent run {run} was left alone: {problem}',
                    ['run' => $uid, 'uuid' => $entry['uuid'], 'problem' => $problem]);
            }
            if (self::count($found) >= $limit || !$tally->hasMore || $entries === []) {
                break;
            }
        }

        return $found;
    }

    /**
     * @param array{requeued: list<mixed>, deadLettered: list<mixed>, skipped: list<mixed>} $found
     */
    private static function count(array $found): int
    {
        return count($found['requeued']) + count($found['deadLettered']);
    }

    /**
     * @param \NrLlmRuntime              $runtime
     * @param list<array<string, mixed>> $requeued
     * @param list<array<string, mixed>> $deadLettered
     * @param list<array<string, mixed>> $skipped
     */
    private function take(object $runtime, array $requeued, array $deadLettered, array $skipped, Tally $tally): void
    {
        foreach ($requeued as $entry) {
            $this->logger->info('Stale agent run {run} was requeued', self::context($entry));
            if ($entry['wokenUp'] || $this->wake($runtime, $entry, $tally)) {
                $tally->requeued[] = $entry;
            } else {
                // As nr_llm counts it: settled, so that no run is left that nothing wakes.
                $tally->deadLettered[] = ['reason' => 'provider_failed'] + $entry;
            }
        }
        foreach ($deadLettered as $entry) {
            $this->logger->warning('Stale agent run {run} was dead-lettered: {reason}', self::context($entry));
            $tally->deadLettered[] = $entry;
        }
        foreach ($skipped as $entry) {
            $this->logger->notice('Stale agent run {run} was skipped: {reason}', self::context($entry));
            $tally->skipped[] = $entry;
        }
    }

    /**
     * @param \NrLlmRuntime        $runtime
     * @param array<string, mixed> $entry
     */
    private function wake(object $runtime, array $entry, Tally $tally): bool
    {
        try {
            $this->wakeUps->dispatch($entry['uuid']);

            return true;
        } catch (\Throwable $error) {
            $settled = false;
            $problem = $error->getMessage();
            try {
                // False where a worker, or the synchronous transport, has taken the run meanwhile: then it is not undone.
                $settled = $runtime->failUndispatched($entry['uid'], $entry['requeueCount'], $error);
            } catch (\Throwable $second) {
                $problem .= ' It could not be settled either: ' . $second->getMessage();
            }
            $this->logger->error('Agent run {run} was requeued but its wake-up could not be sent: {problem}', [
                'run' => $entry['uid'], 'uuid' => $entry['uuid'], 'settled' => $settled, 'problem' => $problem,
            ]);
            $tally->undispatched[] = ['uid' => $entry['uid'], 'uuid' => $entry['uuid'], 'settled' => $settled, 'problem' => $problem];

            return !$settled;
        }
    }

    /**
     * Queued runs that nothing woke for so long. The runtime marks what it returns, so that two sweeps share the work.
     *
     * @param \NrLlmRuntime $runtime
     */
    private function wakeStranded(object $runtime, int $seconds, int $limit, Tally $tally): void
    {
        $tally->sweptStranded = true;
        foreach ($runtime->strandedRuns($seconds, $limit, null, $this->wakeUps->template()) as $entry) {
            if (!$entry['wokenUp']) {
                try {
                    $this->wakeUps->dispatch($entry['uuid']);
                } catch (\Throwable $error) {
                    // It stays queued, and the next sweep finds it again.
                    $this->logger->error('Stranded agent run {run} could not be woken: {problem}',
                        ['run' => $entry['uid'], 'problem' => $error->getMessage()]);
                    $tally->undispatched[] = ['uid' => $entry['uid'], 'uuid' => $entry['uuid'], 'settled' => false,
                        'problem' => $error->getMessage()];
                    continue;
                }
            }
            $this->logger->warning('Stranded agent run {run} was woken after {seconds} s',
                ['run' => $entry['uid'], 'uuid' => $entry['uuid'], 'seconds' => $entry['queuedSeconds']]);
            $tally->woken[] = $entry;
        }
    }

    /**
     * @param array<string, mixed> $entry
     * @return array<string, mixed>
     */
    private static function context(array $entry): array
    {
        return [
            'run' => $entry['uid'],
            'uuid' => $entry['uuid'],
            'owner' => $entry['claimedBy'],
            'leaseExpires' => $entry['leaseExpires'],
            'requeueCount' => $entry['requeueCount'],
            'reason' => $entry['reason'] ?? '',
        ];
    }
}
