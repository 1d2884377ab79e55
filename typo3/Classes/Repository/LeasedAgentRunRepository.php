<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Repository;

use Psr\Log\LoggerInterface;

/**
 * What stands in front of nr_llm's AgentRunRepository. It does not implement nr_llm's interface, whose shape changes from release to
 * release: Symfony writes a proxy of the interface that calls this object, and what this object does not know goes to nr_llm's own.
 *
 * Trailing `...$rest`: arguments that a later release adds. Where nr_llm answers, they are handed on; where the runtime answers, the
 * shape check of the container build has seen to it that there are none (RepositoryShape).
 */
final class LeasedAgentRunRepository
{
    /**
     * @param object        $inner  nr_llm's repository
     * @param \NrLlmRuntime $native
     */
    public function __construct(
        private readonly object $inner,
        private readonly object $native,
        private readonly LeaseKeeper $keeper,
        private readonly LoggerInterface $logger,
    ) {}

    // ---- answered by the runtime ------------------------------------------------------------------------------------------------

    public function claimQueued(int $runUid, string $claimedBy, int $leaseExpires, mixed ...$rest): bool
    {
        $stored = $this->keeper->nameForClaim($claimedBy);

        return $this->native->claimQueued($runUid, $stored, $this->keeper->leaseExpires($leaseExpires))
            && $this->keeper->claimed($runUid, $claimedBy, $stored, $leaseExpires);
    }

    public function renewLease(int $runUid, string $claimedBy, int $leaseExpires, mixed ...$rest): bool
    {
        $stored = $this->keeper->nameForGuard($claimedBy, $runUid);
        $lease = $this->keeper->lease($runUid);
        if ($lease !== null) {
            if (!$this->stepped($runUid, $stored, $lease)) {
                return false;
            }
            if ($this->keeper->isRecent($lease)) {
                return true;
            }
            $leaseExpires = $this->keeper->leaseExpires($leaseExpires);
        }

        return $this->heldAfter($runUid, $stored, fn(): bool => $this->native->renewLease($runUid, $stored, $leaseExpires));
    }

    public function markPendingEffect(int $runUid, string $claimedBy, string $effect, int $leaseExpires, mixed ...$rest): bool
    {
        $stored = $this->keeper->nameForGuard($claimedBy, $runUid);
        $lease = $this->keeper->lease($runUid);
        if ($lease !== null) {
            if (!$this->stepped($runUid, $stored, $lease)) {
                return false;
            }
            $leaseExpires = $this->keeper->leaseExpires($leaseExpires);
        }

        // Never answered from memory: the fence has to be in the row before the tool runs.
        return $this->heldAfter($runUid, $stored, fn(): bool => $this->native->markPendingEffect($runUid, $stored, $effect, $leaseExpires));
    }

    public function requeue(int $runUid, string $claimedBy, mixed ...$rest): bool
    {
        try {
            return $this->native->requeue($runUid, $this->keeper->nameForGuard($claimedBy, $runUid));
        } finally {
            $this->keeper->end($runUid);
        }
    }

    public function requeueStale(int $runUid, int $now, mixed ...$rest): bool
    {
        return $this->native->requeueStale($runUid, $now);
    }

    public function deadLetterStale(int $runUid, int $now, string $terminationReason, mixed ...$rest): bool
    {
        return $this->native->deadLetterStale($runUid, $now, $terminationReason);
    }

    // ---- answered by nr_llm, with the lease kept or ended around it ----------------------------------------------------------------

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
            // Lost within a moment of its start: the first renewal says so, a row number has to be returned here.
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
     * Everything else is nr_llm's. An owner among the arguments is translated all the same, whatever the method is called: a guard of a
     * later release must not ask for a name that no row has.
     *
     * @param array<int|string, mixed> $arguments
     */
    public function __call(string $name, array $arguments): mixed
    {
        if (str_starts_with($name, 'claim') && method_exists($this->inner, $name)) {
            // Another kind of claim: its owner becomes one of this process's names, so that the guards after it find it.
            foreach ((new \ReflectionMethod($this->inner, $name))->getParameters() as $position => $parameter) {
                $given = $parameter->getName() === 'claimedBy' ? self::argument($arguments, $position, 'claimedBy') : null;
                if (is_string($given)) {
                    $this->keeper->nameForClaim($given);
                }
            }
        }

        return $this->inner->{$name}(...$this->translated($arguments, null));
    }

    // ------------------------------------------------------------------------------------------------------------------------------

    /**
     * @param array<int|string, mixed> $rest
     */
    private function claimByInner(string $method, int $runUid, string $given, int $leaseExpires, array $rest): mixed
    {
        $stored = $this->keeper->nameForClaim($given);
        $won = $this->inner->{$method}($runUid, $stored, trim($given) === '' ? $leaseExpires : $this->keeper->leaseExpires($leaseExpires),
            ...$rest);
        if ($won === true && trim($given) !== '') {
            return $this->keeper->claimed($runUid, $given, $stored, $leaseExpires);
        }

        return $won;
    }

    /**
     * The beats go on until the run is settled, and end however the call ends: a run that could not be settled has to become stale.
     *
     * @param array<int|string, mixed> $arguments
     */
    private function endByInner(string $method, array $arguments): mixed
    {
        $runUid = self::argument($arguments, 0, 'runUid');
        $runUid = is_int($runUid) ? $runUid : null;
        try {
            return $this->inner->{$method}(...$this->translated($arguments, $runUid));
        } finally {
            if ($runUid !== null) {
                $this->keeper->end($runUid);
            }
        }
    }

    /**
     * Tells the keeper of progress. False: lost or cancelled; nr_llm then stops without settling.
     *
     * @param \NrLlmLease $lease
     */
    private function stepped(int $runUid, string $stored, object $lease): bool
    {
        try {
            $lease->step();

            return true;
        } catch (\Throwable $lost) {
            $this->keeper->end($runUid);
            $this->logger->warning('Agent run {run} is no longer this process\'s: {reason}', [
                'run' => $runUid, 'owner' => $stored, 'reason' => $lost->getMessage(),
            ]);

            return false;
        }
    }

    /**
     * A guarded write by the owner. Whatever else than true comes back, nr_llm gives the run up, so the beats end.
     *
     * @param \Closure(): bool $write
     */
    private function heldAfter(int $runUid, string $stored, \Closure $write): bool
    {
        $held = false;
        try {
            $held = $write();
        } finally {
            if (!$held) {
                $this->keeper->end($runUid);
            }
        }
        if (!$held) {
            try {
                $state = $this->native->leaseState($runUid, $stored);
            } catch (\Throwable) {
                $state = 'unknown';
            }
            $this->logger->warning('Agent run {run} is no longer this process\'s: {reason}',
                ['run' => $runUid, 'owner' => $stored, 'reason' => $state]);
        }

        return $held;
    }

    /**
     * @param array<int|string, mixed> $arguments
     * @return array<int|string, mixed>
     */
    private function translated(array $arguments, ?int $runUid): array
    {
        foreach ($arguments as $key => $value) {
            if (is_string($value) && strlen($value) <= 255) {
                $arguments[$key] = $this->keeper->nameForGuard($value, $runUid);
            }
        }

        return $arguments;
    }

    /**
     * @param array<int|string, mixed> $arguments
     */
    private static function argument(array $arguments, int $position, string $name): mixed
    {
        return $arguments[$position] ?? $arguments[$name] ?? null;
    }
}
