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
    /** The longest time the runtime takes: no run is older. */
    private const MAX_SECONDS = 4294967295;

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

        $search = new Search($limit);
        do {
            $examined = $search->examined();
            $found = $this->find($runtime, $limit - $tally->handled(), $search, $tally);
            if ($dryRun) {
                foreach ($found as $entry) {
                    $entry['reason'] === null ? $tally->requeued[] = $entry : $tally->deadLettered[] = $entry;
                }
                $search->handled(array_column($found, 'uid'));
            } else {
                $this->reap($runtime, array_column($found, 'uid'), $search, $tally, $progress);
            }
            // Whoever was passed over uses no place of the limit: others that are stale take it.
        } while ($tally->hasMore && $tally->handled() < $limit && $search->examined() > $examined && !$search->isOver());
        if ($wakeStranded !== null && !$dryRun) {
            $this->wakeStranded($runtime, $wakeStranded, $limit, $tally);
        }

        return $tally;
    }

    /**
     * At most so many stale runs that can be handled, the oldest lease first. A dry run is asked instead of listing here, so that one place
     * knows what stale means; with the wake-up, so that it passes over what cannot be woken.
     *
     * @param \NrLlmRuntime $runtime
     * @return list<array<string, mixed>> entries of NrLlmReapReport
     */
    private function find(object $runtime, int $wanted, Search $search, Tally $tally): array
    {
        $template = $this->wakeUps->template();
        $options = ['dryRun' => true, 'except' => $search->except()] + ($template !== null ? ['wakeUp' => $template] : []);
        $report = $runtime->reap($search->listing($wanted), null, $options);
        $tally->hasMore = $report->hasMore();
        // Those of this tick's own exceptions are known already.
        $skipped = array_filter($report->skipped(), static fn(array $entry): bool => $entry['reason'] !== 'excepted');
        foreach ($skipped as $entry) {
            $search->examine();
            $this->passOver($entry, $search, $tally);
        }
        $entries = array_merge($report->requeued(), $report->deadLettered());
        // The oldest lease first, whatever becomes of the run.
        usort($entries, static fn(array $left, array $right): int => [$left['leaseExpires'], $left['uid']]
            <=> [$right['leaseExpires'], $right['uid']]);
        $found = [];
        foreach ($entries as $entry) {
            if (count($found) >= $wanted || $search->isOver()) {
                $tally->hasMore = true;
                break;
            }
            $search->examine();
            $problem = $this->payloads->problem($entry['uid']);
            if ($problem === '') {
                $found[] = $entry;
                continue;
            }
            $search->passOver($entry['uid']);
            $tally->leftAlone[] = ['uid' => $entry['uid'], 'uuid' => $entry['uuid'], 'problem' => $problem];
            $this->logger->error('Stale agent run {run} was left alone: {problem}',
                ['run' => $entry['uid'], 'uuid' => $entry['uuid'], 'problem' => $problem]);
        }

        return $found;
    }

    /**
     * @param \NrLlmRuntime               $runtime
     * @param list<int>                   $uids
     * @param (\Closure(int): void)|null  $progress
     */
    private function reap(object $runtime, array $uids, Search $search, Tally $tally, ?\Closure $progress): void
    {
        $template = $this->wakeUps->template();
        // Without an outbox a crash between a requeue and its wake-up strands what is in between: one run at most.
        foreach (array_chunk($uids, $template !== null ? self::CHUNK : 1) as $only) {
            if ($search->isOutOfTime()) {
                $tally->hasMore = true;
                break;
            }
            $handled = $tally->handled();
            $report = $runtime->reap(count($only), null, ['only' => $only] + ($template !== null ? ['wakeUp' => $template] : []));
            $this->take($runtime, $report->requeued(), $report->deadLettered(), $tally);
            if ($tally->handled() > $handled) {
                $search->handled();
            }
            foreach ($report->skipped() as $entry) {
                $this->passOver($entry, $search, $tally);
            }
            if ($progress !== null) {
                $progress(count($only));
            }
        }
    }

    /**
     * @param array<string, mixed> $entry
     */
    private function passOver(array $entry, Search $search, Tally $tally): void
    {
        $search->passOver($entry['uid']);
        $this->logger->notice('Stale agent run {run} was skipped: {reason}', self::context($entry));
        $tally->skipped[] = $entry;
    }

    /**
     * @param \NrLlmRuntime              $runtime
     * @param list<array<string, mixed>> $requeued
     * @param list<array<string, mixed>> $deadLettered
     */
    private function take(object $runtime, array $requeued, array $deadLettered, Tally $tally): void
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
        foreach ($runtime->strandedRuns(min($seconds, self::MAX_SECONDS), $limit, null, $this->wakeUps->template()) as $entry) {
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
