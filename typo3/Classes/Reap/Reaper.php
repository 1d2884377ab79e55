<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Reap;

use NrLlmRuntime\Typo3\Runtime\RuntimeLocator;
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
        private readonly RuntimeLocator $locator,
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
    public function tick(int $limit, bool $dryRun, ?int $wakeStranded = null, ?\Closure $progress = null): ReapResult
    {
        $runtime = $this->locator->runtime();
        $result = new ReapResult();
        $result->dryRun = $dryRun;
        $result->wakeUps = $this->wakeUps->mode();
        $result->wakeUpsReason = $this->wakeUps->reason();

        $budget = new ReapBudget($limit);
        do {
            $examined = $budget->examined();
            $found = $this->find($runtime, $limit - $result->handled(), $budget, $result);
            if ($dryRun) {
                foreach ($found as $entry) {
                    $entry['reason'] === null ? $result->requeued[] = $entry : $result->deadLettered[] = $entry;
                }
                $budget->handled(array_column($found, 'uid'));
            } else {
                $this->reap($runtime, array_column($found, 'uid'), $budget, $result, $progress);
            }
            // Whoever was passed over uses no place of the limit: others that are stale take it.
        } while ($result->hasMore && $result->handled() < $limit && $budget->examined() > $examined && !$budget->isOver());
        if ($wakeStranded !== null && !$dryRun) {
            $this->wakeStranded($runtime, $wakeStranded, $limit, $result);
        }

        return $result;
    }

    /**
     * At most so many stale runs that can be handled, the oldest lease first. A dry run is asked instead of listing here, so that one place
     * knows what stale means; with the wake-up, so that it passes over what cannot be woken.
     *
     * @param \NrLlmRuntime $runtime
     * @return list<array<string, mixed>> entries of NrLlmReapReport
     */
    private function find(object $runtime, int $wanted, ReapBudget $budget, ReapResult $result): array
    {
        $template = $this->wakeUps->template();
        $options = ['dryRun' => true, 'except' => $budget->except()] + ($template !== null ? ['wakeUp' => $template] : []);
        $report = $runtime->reap($budget->listing($wanted), null, $options);
        $result->hasMore = $report->hasMore();
        // Those of this tick's own exceptions are known already.
        $skipped = array_filter($report->skipped(), static fn(array $entry): bool => $entry['reason'] !== 'excepted');
        foreach ($skipped as $entry) {
            $budget->examine();
            $this->passOver($entry, $budget, $result);
        }
        $entries = array_merge($report->requeued(), $report->deadLettered());
        // The oldest lease first, whatever becomes of the run.
        usort($entries, static fn(array $left, array $right): int => [$left['leaseExpires'], $left['uid']]
            <=> [$right['leaseExpires'], $right['uid']]);
        $found = [];
        foreach ($entries as $entry) {
            if (count($found) >= $wanted || $budget->isOver()) {
                $result->hasMore = true;
                break;
            }
            $budget->examine();
            $problem = $this->payloads->problem($entry['uid']);
            if ($problem === '') {
                $found[] = $entry;
                continue;
            }
            $budget->passOver($entry['uid']);
            $result->leftAlone[] = ['uid' => $entry['uid'], 'uuid' => $entry['uuid'], 'problem' => $problem];
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
    private function reap(object $runtime, array $uids, ReapBudget $budget, ReapResult $result, ?\Closure $progress): void
    {
        $template = $this->wakeUps->template();
        // Without an outbox a crash between a requeue and its wake-up strands what is in between: one run at most.
        foreach (array_chunk($uids, $template !== null ? self::CHUNK : 1) as $only) {
            if ($budget->isOutOfTime()) {
                $result->hasMore = true;
                break;
            }
            $handled = $result->handled();
            $report = $runtime->reap(count($only), null, ['only' => $only] + ($template !== null ? ['wakeUp' => $template] : []));
            $this->take($runtime, $report->requeued(), $report->deadLettered(), $result);
            if ($result->handled() > $handled) {
                $budget->handled();
            }
            foreach ($report->skipped() as $entry) {
                $this->passOver($entry, $budget, $result);
            }
            if ($progress !== null) {
                $progress(count($only));
            }
        }
    }

    /**
     * @param array<string, mixed> $entry
     */
    private function passOver(array $entry, ReapBudget $budget, ReapResult $result): void
    {
        $budget->passOver($entry['uid']);
        $this->logger->notice('Stale agent run {run} was skipped: {reason}', self::context($entry));
        $result->skipped[] = $entry;
    }

    /**
     * @param \NrLlmRuntime              $runtime
     * @param list<array<string, mixed>> $requeued
     * @param list<array<string, mixed>> $deadLettered
     */
    private function take(object $runtime, array $requeued, array $deadLettered, ReapResult $result): void
    {
        foreach ($requeued as $entry) {
            $this->logger->info('Stale agent run {run} was requeued', self::context($entry));
            if ($entry['wokenUp'] || $this->wake($runtime, $entry, $result)) {
                $result->requeued[] = $entry;
            } else {
                // As nr_llm counts it: settled, so that no run is left that nothing wakes.
                $result->deadLettered[] = ['reason' => 'provider_failed'] + $entry;
            }
        }
        foreach ($deadLettered as $entry) {
            $this->logger->warning('Stale agent run {run} was dead-lettered: {reason}', self::context($entry));
            $result->deadLettered[] = $entry;
        }
    }

    /**
     * @param \NrLlmRuntime        $runtime
     * @param array<string, mixed> $entry
     */
    private function wake(object $runtime, array $entry, ReapResult $result): bool
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
            $result->undispatched[] = ['uid' => $entry['uid'], 'uuid' => $entry['uuid'], 'settled' => $settled, 'problem' => $problem];

            return !$settled;
        }
    }

    /**
     * Queued runs that nothing woke for so long. The runtime marks what it returns, so that two sweeps share the work.
     *
     * @param \NrLlmRuntime $runtime
     */
    private function wakeStranded(object $runtime, int $seconds, int $limit, ReapResult $result): void
    {
        $result->sweptStranded = true;
        foreach ($runtime->strandedRuns(min($seconds, self::MAX_SECONDS), $limit, null, $this->wakeUps->template()) as $entry) {
            if (!$entry['wokenUp']) {
                try {
                    $this->wakeUps->dispatch($entry['uuid']);
                } catch (\Throwable $error) {
                    // It stays queued, and the next sweep finds it again.
                    $this->logger->error('Stranded agent run {run} could not be woken: {problem}',
                        ['run' => $entry['uid'], 'problem' => $error->getMessage()]);
                    $result->undispatched[] = ['uid' => $entry['uid'], 'uuid' => $entry['uuid'], 'settled' => false,
                        'problem' => $error->getMessage()];
                    continue;
                }
            }
            $this->logger->warning('Stranded agent run {run} was woken after {seconds} s',
                ['run' => $entry['uid'], 'uuid' => $entry['uuid'], 'seconds' => $entry['queuedSeconds']]);
            $result->woken[] = $entry;
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
