<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Repository;

use NrLlmRuntime\Typo3\Event\AgentRunDeadLetteredEvent;
use NrLlmRuntime\Typo3\Event\AgentRunLeaseLostEvent;
use NrLlmRuntime\Typo3\Event\AgentRunRequeuedEvent;
use NrLlmRuntime\Typo3\Event\Events;
use Psr\Log\LoggerInterface;

/**
 * Decorates nr_llm's AgentRunRepository. It does not implement nr_llm's interface, whose shape
 * changes from release to release: Symfony writes a proxy of the interface that calls this object,
 * and methods that this object does not know go to nr_llm's repository.
 *
 * A native runtime that cannot answer (no connection left, refused settings) must not cost a run
 * that nr_llm's own code would complete (P 38). With `fallback = php` nr_llm's repository answers
 * in its place, under the same owner name; with `fallback = none` the error is thrown, and a run
 * that could not be claimed is recorded so that its message is sent again.
 *
 * Trailing `...$rest`: arguments that a later release adds. Where nr_llm answers they are handed
 * on. Where the runtime answers, the shape check of the container build guarantees that there are
 * none (RepositoryShape).
 */
final class LeasedAgentRunRepository
{
    /**
     * Names of the owner's parameter in nr_llm's methods. An owner is recognised by its parameter,
     * never by its value.
     */
    private const OWNER_PARAMETERS = ['claimedBy', 'ownedBy', 'leaseOwner', 'owner'];

    /** @var array<string, array<int, string>> method => position => the owner's parameter */
    private array $ownerParameters = [];

    /**
     * @param object        $inner  nr_llm's repository
     * @param \NrLlmRuntime $native
     */
    public function __construct(
        private readonly object $inner,
        private readonly object $native,
        private readonly LeaseKeeper $keeper,
        private readonly UnhandledRuns $unhandled,
        private readonly Events $events,
        private readonly LoggerInterface $logger,
        private readonly bool $fallsBack,
    ) {}

    // Answered by the runtime.

    public function claimQueued(int $runUid, string $claimedBy, int $leaseExpires, mixed ...$rest): bool
    {
        $stored = $this->keeper->nameForClaim($claimedBy);
        $claimedBefore = $this->keeper->hasOwned($runUid);
        try {
            return $this->native->claimQueued($runUid, $stored, $this->keeper->leaseExpires($leaseExpires))
                && $this->keeper->claimed($runUid, $claimedBy, $stored, $leaseExpires);
        } catch (\NrLlmException $error) {
            $this->unhandled->add($runUid, $error->getMessage());
            $this->fallBack('claim', $runUid, $error);
        }
        // The first attempt may have taken effect although its reply was lost. Then the row names
        // this process, whose names are unique, as the owner. A run that this process has owned
        // before is left alone: it may have been given up with a write in flight.
        $won = $this->inner->claimQueued($runUid, $stored, $leaseExpires)
            || (!$claimedBefore && $this->inner->renewLease($runUid, $stored, $leaseExpires));
        $this->unhandled->remove($runUid);
        if ($won) {
            $this->keeper->claimedWithoutHeartbeat($runUid, $claimedBy, $stored);
        }

        return $won;
    }

    public function renewLease(int $runUid, string $claimedBy, int $leaseExpires, mixed ...$rest): bool
    {
        $stored = $this->keeper->nameForGuard($claimedBy, $runUid);
        $lease = $this->keeper->lease($runUid, $stored);
        if ($lease !== null && $this->keeper->isRecent($lease) && $this->reportsProgress($runUid, $stored, $lease)) {
            return true;
        }

        return $this->guardedWrite(
            'renewLease',
            $runUid,
            $stored,
            fn(int $expires): bool => $this->native->renewLease($runUid, $stored, $expires),
            fn(): bool => $this->inner->renewLease($runUid, $stored, $leaseExpires),
            $leaseExpires,
        );
    }

    public function markPendingEffect(int $runUid, string $claimedBy, string $effect, int $leaseExpires, mixed ...$rest): bool
    {
        $stored = $this->keeper->nameForGuard($claimedBy, $runUid);

        // Never answered from memory: the write fence has to be in the row before the tool runs.
        return $this->guardedWrite(
            'markPendingEffect',
            $runUid,
            $stored,
            fn(int $expires): bool => $this->native->markPendingEffect($runUid, $stored, $effect, $expires),
            fn(): bool => $this->inner->markPendingEffect($runUid, $stored, $effect, $leaseExpires),
            $leaseExpires,
        );
    }

    public function requeue(int $runUid, string $claimedBy, mixed ...$rest): bool
    {
        $stored = $this->keeper->nameForGuard($claimedBy, $runUid);
        try {
            $requeued = $this->native->requeue($runUid, $stored);
        } catch (\NrLlmException $error) {
            // Where the first attempt took effect and its reply was lost, nr_llm gets the answer
            // "not requeued" and sends no message.
            $this->unhandled->add($runUid, $error->getMessage());
            $this->fallBack('requeue', $runUid, $error);
            $requeued = $this->inner->requeue($runUid, $stored);
            if ($requeued) {
                $this->unhandled->remove($runUid);
            }
        } finally {
            $this->keeper->end($runUid, $stored);
        }
        if ($requeued) {
            $this->events->dispatch(new AgentRunRequeuedEvent($runUid, '', AgentRunRequeuedEvent::FAILURE));
        }

        return $requeued;
    }

    public function requeueStale(int $runUid, int $now, mixed ...$rest): bool
    {
        try {
            $requeued = $this->native->requeueStale($runUid, $now);
        } catch (\NrLlmException $error) {
            $this->fallBack('requeue', $runUid, $error);
            $requeued = $this->inner->requeueStale($runUid, $now);
        }
        if ($requeued) {
            $this->events->dispatch(new AgentRunRequeuedEvent($runUid, '', AgentRunRequeuedEvent::LEASE_EXPIRED));
        }

        return $requeued;
    }

    public function deadLetterStale(int $runUid, int $now, string $terminationReason, mixed ...$rest): bool
    {
        try {
            $deadLettered = $this->native->deadLetterStale($runUid, $now, $terminationReason);
        } catch (\NrLlmException $error) {
            $this->fallBack('dead-letter', $runUid, $error);
            $deadLettered = $this->inner->deadLetterStale($runUid, $now, $terminationReason);
        }
        if ($deadLettered) {
            $this->events->dispatch(new AgentRunDeadLetteredEvent($runUid, '', $terminationReason));
        }

        return $deadLettered;
    }

    // Answered by nr_llm; the lease is kept afterwards, or ended.

    public function claimForResume(int $runUid, string $claimedBy, int $leaseExpires, mixed ...$rest): mixed
    {
        return $this->claimByInner('claimForResume', $runUid, $claimedBy, $leaseExpires, $rest);
    }

    public function claimForResumeFromInput(int $runUid, string $claimedBy, int $leaseExpires, mixed ...$rest): mixed
    {
        return $this->claimByInner('claimForResumeFromInput', $runUid, $claimedBy, $leaseExpires, $rest);
    }

    public function startRun(mixed ...$arguments): mixed
    {
        $given = self::argument($arguments, 4, 'claimedBy');
        $expires = self::argument($arguments, 5, 'leaseExpires');
        if (!is_string($given) || trim($given) === '' || !is_int($expires) || $expires <= 0) {
            // An interactive run of a release, or a caller, that takes no lease.
            return $this->inner->startRun(...$arguments);
        }
        $stored = $this->keeper->nameForClaim($given);
        $arguments[array_key_exists(4, $arguments) ? 4 : 'claimedBy'] = $stored;
        $arguments[array_key_exists(5, $arguments) ? 5 : 'leaseExpires'] = $this->keeper->leaseExpires($expires);
        $runUid = $this->inner->startRun(...$arguments);
        if (is_int($runUid) && $runUid > 0) {
            // A run lost right after its start is noticed by the first renewal; this method has to
            // return the run's uid.
            $this->keeper->claimed($runUid, $given, $stored, $expires);
        }

        return $runUid;
    }

    public function finishRun(mixed ...$arguments): mixed
    {
        return $this->endByInner('finishRun', $arguments);
    }

    public function suspendRun(mixed ...$arguments): mixed
    {
        return $this->endByInner('suspendRun', $arguments);
    }

    public function suspendRunForInput(mixed ...$arguments): mixed
    {
        return $this->endByInner('suspendRunForInput', $arguments);
    }

    /**
     * Calls nr_llm's method. The owner among its arguments, recognised by its parameter's name, is
     * translated to the stored name.
     *
     * @param array<int|string, mixed> $arguments
     */
    public function __call(string $name, array $arguments): mixed
    {
        $isClaim = str_starts_with($name, 'claim');
        $runUid = self::argument($arguments, 0, 'runUid');
        foreach ($this->ownersAmong($name, $arguments) as $key => $given) {
            $arguments[$key] = $isClaim
                ? $this->keeper->nameForClaim($given)
                : $this->keeper->nameForGuard($given, is_int($runUid) ? $runUid : null);
        }

        return $this->inner->{$name}(...$arguments);
    }

    /**
     * A write guarded by the owner: by the runtime, else by nr_llm (P 38). A false answer means
     * that the lease is lost.
     *
     * @param \Closure(int): bool $byRuntime called with the lease's expiry
     * @param \Closure(): bool    $byNrLlm
     */
    private function guardedWrite(
        string $method,
        int $runUid,
        string $stored,
        \Closure $byRuntime,
        \Closure $byNrLlm,
        int $callersLeaseExpires,
    ): bool {
        $lease = $this->keeper->lease($runUid, $stored);
        if ($lease !== null && !$this->reportsProgress($runUid, $stored, $lease)) {
            // Lost by a limit or cancelled: final. Lost because no heartbeat got through: the row
            // decides who owns the run.
            if ($lease->state() === 'cancelled' || $this->keeper->reachedLimit($runUid)) {
                return $this->lost($runUid, $stored, $lease->lastError() ?? $lease->state());
            }
            $this->keeper->end($runUid, $stored);
            $lease = null;
        }
        // While heartbeats fail the lease has to last until nr_llm's next step, as it does without
        // a heartbeat.
        $kept = $lease !== null && $lease->state() === 'held';
        try {
            $held = $byRuntime($kept ? $this->keeper->leaseExpires($callersLeaseExpires) : $callersLeaseExpires);
        } catch (\NrLlmException $error) {
            try {
                $this->fallBack($method, $runUid, $error);
                $held = $byNrLlm();
            } catch (\Throwable $second) {
                // nr_llm gives the run up, so its heartbeats end and the reaper takes over.
                $this->keeper->end($runUid, $stored);
                throw $second;
            }
        }

        return $held || $this->lost($runUid, $stored, $this->state($runUid, $stored));
    }

    private function lost(int $runUid, string $stored, string $reason): bool
    {
        $this->keeper->end($runUid, $stored);
        $this->logger->warning('Agent run {run} is no longer owned by this process: {reason}', [
            'run' => $runUid, 'owner' => $stored, 'reason' => $reason,
        ]);
        $this->events->dispatch(new AgentRunLeaseLostEvent($runUid, $stored, $reason));

        return false;
    }

    private function state(int $runUid, string $stored): string
    {
        try {
            return $this->native->leaseState($runUid, $stored);
        } catch (\Throwable) {
            return 'unknown';
        }
    }

    /**
     * Reports progress to the kept lease. False: the lease has ended.
     *
     * @param \NrLlmLease $lease
     */
    private function reportsProgress(int $runUid, string $stored, object $lease): bool
    {
        try {
            $lease->step();
            $this->keeper->progressed($runUid);

            return true;
        } catch (\NrLlmException) {
            return false;
        }
    }

    /**
     * @throws \NrLlmException the error, where nr_llm's own code may not answer
     */
    private function fallBack(string $operation, int $runUid, \NrLlmException $error): void
    {
        $this->logger->warning(
            $this->fallsBack
                ? 'The native runtime could not {operation} agent run {run}; nr_llm\'s own code does: {reason}'
                : 'The native runtime could not {operation} agent run {run}, and the extension setting "fallback" forbids nr_llm\'s own '
                    . 'code: {reason}',
            ['operation' => $operation, 'run' => $runUid, 'reason' => $error->getMessage()],
        );
        if (!$this->fallsBack) {
            throw $error;
        }
    }

    /**
     * @param array<int|string, mixed> $rest
     */
    private function claimByInner(string $method, int $runUid, string $given, int $leaseExpires, array $rest): mixed
    {
        $stored = $this->keeper->nameForClaim($given);
        $anonymous = trim($given) === '';
        $expires = $anonymous ? $leaseExpires : $this->keeper->leaseExpires($leaseExpires);
        $won = $this->inner->{$method}($runUid, $stored, $expires, ...$rest);
        if ($won === true && !$anonymous) {
            return $this->keeper->claimed($runUid, $given, $stored, $leaseExpires);
        }

        return $won;
    }

    /**
     * Settles or suspends a run by nr_llm's method. The heartbeat continues until then, and ends
     * also when the call fails: a run that could not be settled has to become stale. A call by
     * another owner changes nothing and leaves the heartbeat alone.
     *
     * @param array<int|string, mixed> $arguments
     */
    private function endByInner(string $method, array $arguments): mixed
    {
        $runUid = self::argument($arguments, 0, 'runUid');
        $runUid = is_int($runUid) ? $runUid : null;
        $owner = null;
        foreach ($this->ownersAmong($method, $arguments) as $key => $given) {
            $owner = $arguments[$key] = $this->keeper->nameForGuard($given, $runUid);
        }
        try {
            return $this->inner->{$method}(...$arguments);
        } finally {
            if ($runUid !== null) {
                $this->keeper->end($runUid, $owner);
            }
        }
    }

    /**
     * @param array<int|string, mixed> $arguments
     * @return array<int|string, string> key in $arguments => the owner given
     */
    private function ownersAmong(string $method, array $arguments): array
    {
        $owners = [];
        foreach ($this->ownerParameters($method) as $position => $name) {
            $key = array_key_exists($position, $arguments) ? $position : $name;
            if (is_string($arguments[$key] ?? null)) {
                $owners[$key] = $arguments[$key];
            }
        }

        return $owners;
    }

    /**
     * @return array<int, string> position => name
     */
    private function ownerParameters(string $method): array
    {
        if (!isset($this->ownerParameters[$method])) {
            $found = [];
            if (method_exists($this->inner, $method)) {
                foreach ((new \ReflectionMethod($this->inner, $method))->getParameters() as $position => $parameter) {
                    if (in_array($parameter->getName(), self::OWNER_PARAMETERS, true)) {
                        $found[$position] = $parameter->getName();
                    }
                }
            }
            $this->ownerParameters[$method] = $found;
        }

        return $this->ownerParameters[$method];
    }

    /**
     * @param array<int|string, mixed> $arguments
     */
    private static function argument(array $arguments, int $position, string $name): mixed
    {
        return $arguments[$position] ?? $arguments[$name] ?? null;
    }
}
