<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Reap;

use NrLlmRuntime\Typo3\Event\AgentRunDeadLetteredEvent;
use NrLlmRuntime\Typo3\Event\AgentRunRequeuedEvent;
use NrLlmRuntime\Typo3\Event\Events;
use NrLlmRuntime\Typo3\Repository\UnhandledRuns;
use NrLlmRuntime\Typo3\Runtime\RuntimeLocator;
use NrLlmRuntime\Typo3\WakeUp\WakeUps;
use Psr\Log\LoggerInterface;

/**
 * One tick of the reaper: finds the stale runs, leaves those alone whose payload cannot be read,
 * has the runtime decide and write the others, and sends their wake-ups.
 *
 * @phpstan-import-type ReapedRun from \NrLlmReapReport
 */
final class Reaper
{
    /** Runs that one call of the runtime handles, so that a terminal shows progress. */
    private const CHUNK = 200;
    /** The longest time the runtime accepts: no run is older. */
    private const MAX_SECONDS = 4294967295;

    private bool $hasWritten = false;
    /** @var array<int, true> runs that this process has left alone and reported */
    private array $reported = [];

    public function __construct(
        private readonly RuntimeLocator $locator,
        private readonly WakeUps $wakeUps,
        private readonly PayloadCheck $payloads,
        private readonly StrandedRunSweep $sweep,
        private readonly UnhandledRuns $unhandled,
        private readonly Events $events,
        private readonly LoggerInterface $logger,
    ) {}

    /**
     * Returns whether the last tick may have written. Where it has not, nr_llm's own reaper may
     * take its place.
     */
    public function hasWritten(): bool
    {
        return $this->hasWritten;
    }

    /**
     * @param (\Closure(int): void)|null $progress called with the number of runs handled since the
     *     last call
     * @throws \Throwable where the runtime or the database cannot be used
     */
    public function tick(ReapOptions $options, ?\Closure $progress = null): ReapResult
    {
        $this->hasWritten = false;
        $runtime = $this->locator->runtime();
        $result = new ReapResult();
        $result->dryRun = $options->dryRun;
        $result->wakeUps = $this->wakeUps->mode();
        $result->wakeUpsReason = $this->wakeUps->reason();

        $budget = new ReapBudget($options->limit);
        do {
            $examined = $budget->examined();
            $found = $this->find($runtime, $options, $options->limit - $result->handled(), $budget, $result);
            if ($options->dryRun) {
                foreach ($found as $entry) {
                    $entry['reason'] === null ? $result->requeued[] = $entry : $result->deadLettered[] = $entry;
                }
                $budget->handled(array_column($found, 'uid'));
            } else {
                $this->reap($runtime, $options, array_column($found, 'uid'), $budget, $result, $progress);
            }
            // A run that is passed over uses no place of the limit: others that are stale take it.
        } while ($result->hasMore && $result->handled() < $options->limit && $budget->examined() > $examined && !$budget->isOver());
        if ($options->failUnreadable && !$options->dryRun) {
            $this->failUnreadableQueued($runtime, $options->limit, $result);
        }
        if ($options->wakeStranded !== null && !$options->dryRun) {
            $result->sweptStranded = true;
            $this->hasWritten = true;
            $seconds = min($options->wakeStranded, self::MAX_SECONDS);
            $this->sendWakeUps($runtime->strandedRuns($seconds, $options->limit, null, $this->wakeUps->template()), $result);
        }

        return $result;
    }

    /**
     * Notifies workers of stranded runs on a site without the native runtime.
     *
     * @throws \Throwable where the database cannot be used
     */
    public function sweepWithoutRuntime(int $seconds, int $limit): ReapResult
    {
        $result = new ReapResult();
        $result->sweptStranded = true;
        $this->sendWakeUps($this->sweep->claim(min($seconds, self::MAX_SECONDS), $limit), $result);

        return $result;
    }

    /**
     * Returns at most $wanted stale runs that can be handled, the oldest lease first. A dry run of
     * the runtime lists them, so that one place knows what stale means; it is given the wake-up, so
     * that it passes over runs that no message can carry.
     *
     * @param \NrLlmRuntime $runtime
     * @return list<ReapedRun>
     */
    private function find(object $runtime, ReapOptions $options, int $wanted, ReapBudget $budget, ReapResult $result): array
    {
        $template = $this->wakeUps->template();
        $report = $runtime->reap($budget->listing($wanted), null, ['dryRun' => true, 'except' => $budget->except()]
            + ($template !== null ? ['wakeUp' => $template] : []));
        $result->hasMore = $report->hasMore();
        // Those that this tick has excepted are known already.
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
            if ($options->failUnreadable && !$options->dryRun) {
                $this->failUnreadable($runtime, $entry, $problem, $result);
                continue;
            }
            $result->leftAlone[] = ['uid' => $entry['uid'], 'uuid' => $entry['uuid'], 'problem' => $problem];
            if (!isset($this->reported[$entry['uid']])) {
                $this->reported[$entry['uid']] = true;
                $result->newlyLeftAlone++;
                $this->logger->error('Stale agent run {run} was left alone: {problem}. Restore the encryption key, or end such runs by '
                    . 'nrllm:agent:reap --fail-unreadable', ['run' => $entry['uid'], 'uuid' => $entry['uuid'], 'problem' => $problem]);
            }
        }

        return $found;
    }

    /**
     * @param \NrLlmRuntime               $runtime
     * @param list<int>                   $uids
     * @param (\Closure(int): void)|null  $progress
     */
    private function reap(
        object $runtime,
        ReapOptions $options,
        array $uids,
        ReapBudget $budget,
        ReapResult $result,
        ?\Closure $progress,
    ): void {
        $template = $this->wakeUps->template();
        // Without an outbox a crash between a requeue and its wake-up strands the runs in between:
        // one at most.
        foreach (array_chunk($uids, $template !== null ? self::CHUNK : 1) as $only) {
            if ($budget->isOutOfTime()) {
                $result->hasMore = true;
                break;
            }
            $handled = $result->handled();
            $this->hasWritten = true;
            $report = $runtime->reap(count($only), null, ['only' => $only] + ($template !== null ? ['wakeUp' => $template] : []));
            $this->take($runtime, $options, $report->requeued(), $report->deadLettered(), $result);
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
    private function take(object $runtime, ReapOptions $options, array $requeued, array $deadLettered, ReapResult $result): void
    {
        foreach ($requeued as $entry) {
            $this->logger->info('Stale agent run {run} was requeued', self::context($entry));
            if ($entry['wokenUp'] || $this->wake($runtime, $options, $entry, $result)) {
                $result->requeued[] = $entry;
                $this->events->dispatch(new AgentRunRequeuedEvent(
                    $entry['uid'],
                    $entry['uuid'],
                    AgentRunRequeuedEvent::LEASE_EXPIRED,
                    $entry['requeueCount'],
                ));
            } else {
                // As nr_llm counts it: settled, so that no run is left of which no worker is
                // notified.
                $result->deadLettered[] = ['reason' => 'provider_failed'] + $entry;
                $this->events->dispatch(new AgentRunDeadLetteredEvent($entry['uid'], $entry['uuid'], 'provider_failed'));
            }
        }
        foreach ($deadLettered as $entry) {
            $this->logger->warning('Stale agent run {run} was dead-lettered: {reason}', self::context($entry));
            $result->deadLettered[] = $entry;
            $this->events->dispatch(new AgentRunDeadLetteredEvent($entry['uid'], $entry['uuid'], (string)$entry['reason']));
        }
    }

    /**
     * Sends the wake-up of a requeued run. Where that fails, the run stays queued for the sweep of
     * `--wake-stranded` if this process has one; otherwise it is settled as failed, as nr_llm's own
     * reaper does (P 39).
     *
     * @param \NrLlmRuntime        $runtime
     * @param array<string, mixed> $entry
     * @return bool false: the run was settled
     */
    private function wake(object $runtime, ReapOptions $options, array $entry, ReapResult $result): bool
    {
        $this->unhandled->clear();
        try {
            $this->wakeUps->dispatch($entry['uuid']);
            // The synchronous transport executes the run here and now; nr_llm reports an error of
            // the claim as "not claimed".
            $problem = implode(' ', $this->unhandled->take());
            if ($problem === '') {
                return true;
            }
            $error = new \RuntimeException($problem);
        } catch (\Throwable $error) {
            $problem = $error->getMessage();
        }
        $settled = false;
        try {
            // False where a worker, or the synchronous transport, has claimed the run meanwhile:
            // then it is not undone.
            $settled = !$options->sweeps() && $runtime->failUndispatched($entry['uid'], $entry['requeueCount'], $error);
        } catch (\Throwable $second) {
            $problem .= ' It could not be settled either: ' . $second->getMessage();
        }
        $this->logger->error('Agent run {run} was requeued but its wake-up could not be sent: {problem}', [
            'run' => $entry['uid'], 'uuid' => $entry['uuid'], 'settled' => $settled, 'problem' => $problem,
        ]);
        $result->undispatched[] = ['uid' => $entry['uid'], 'uuid' => $entry['uuid'], 'settled' => $settled, 'problem' => $problem];

        return !$settled;
    }

    /**
     * @param list<array<string, mixed>> $stranded entries of NrLlmRuntime::strandedRuns()
     */
    private function sendWakeUps(array $stranded, ReapResult $result): void
    {
        foreach ($stranded as $entry) {
            if (!$entry['wokenUp']) {
                try {
                    $this->wakeUps->dispatch($entry['uuid']);
                } catch (\Throwable $error) {
                    // It stays queued, and the next sweep finds it again.
                    $this->logger->error(
                        'The wake-up of stranded agent run {run} could not be sent: {problem}',
                        ['run' => $entry['uid'], 'problem' => $error->getMessage()],
                    );
                    $result->undispatched[] = ['uid' => $entry['uid'], 'uuid' => $entry['uuid'], 'settled' => false,
                        'problem' => $error->getMessage()];
                    continue;
                }
            }
            $this->logger->warning(
                'A worker was notified of stranded agent run {run} after {seconds} s',
                ['run' => $entry['uid'], 'uuid' => $entry['uuid'], 'seconds' => $entry['queuedSeconds']],
            );
            $result->woken[] = $entry;
        }
    }

    /**
     * Ends a stale run whose payload cannot be read. Only an administrator knows that the key is
     * gone for good.
     *
     * @param \NrLlmRuntime        $runtime
     * @param array<string, mixed> $entry
     */
    private function failUnreadable(object $runtime, array $entry, string $problem, ReapResult $result): void
    {
        $this->hasWritten = true;
        if (!$runtime->deadLetterStale($entry['uid'], time(), 'not_retryable')) {
            return;
        }
        $this->logger->warning(
            'Stale agent run {run} was dead-lettered by --fail-unreadable: {problem}',
            ['run' => $entry['uid'], 'uuid' => $entry['uuid'], 'problem' => $problem],
        );
        $result->deadLettered[] = ['reason' => 'not_retryable'] + $entry;
        $result->failedUnreadable[] = ['uid' => $entry['uid'], 'uuid' => $entry['uuid'], 'problem' => $problem];
        $this->events->dispatch(new AgentRunDeadLetteredEvent($entry['uid'], $entry['uuid'], 'not_retryable'));
    }

    /**
     * The same for queued runs: no worker can execute them, and the reaper does not see them.
     *
     * @param \NrLlmRuntime $runtime
     */
    private function failUnreadableQueued(object $runtime, int $limit, ReapResult $result): void
    {
        foreach ($this->payloads->unreadableQueued($limit) as $entry) {
            $this->hasWritten = true;
            if (!$runtime->failUndispatched($entry['uid'], $entry['requeueCount'], new UnreadablePayloadException($entry['problem']))) {
                continue;
            }
            $this->logger->warning(
                'Queued agent run {run} was ended by --fail-unreadable: {problem}',
                ['run' => $entry['uid'], 'uuid' => $entry['uuid'], 'problem' => $entry['problem']],
            );
            $result->failedUnreadable[] = ['uid' => $entry['uid'], 'uuid' => $entry['uuid'], 'problem' => $entry['problem']];
            $this->events->dispatch(new AgentRunDeadLetteredEvent($entry['uid'], $entry['uuid'], 'provider_failed'));
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
