<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Repository;

use NrLlmRuntime\Typo3\Runtime\RuntimeLocator;
use NrLlmRuntime\Typo3\Settings\RuntimeSettings;
use Psr\Log\LoggerInterface;

/**
 * The leases that this process keeps in the background, and the names under which it holds them.
 */
final class LeaseKeeper
{
    /**
     * Names are remembered after a run has ended, so that a late guard still asks for the right
     * owner.
     */
    private const REMEMBERED = 1000;

    /**
     * @var array<int, array{lease: \NrLlmLease, nonce: string, since: float, step: float}> by run;
     *     times are monotonic seconds
     */
    private array $kept = [];
    /** @var array<int, array{given: string, stored: string}> by run, the latest last */
    private array $owners = [];
    /** @var array<string, string> given => stored, of this process */
    private array $names = [];
    /** The process that the names belong to; empty before the first claim. */
    private string $nonce = '';
    private bool $heartbeatConnects = false;
    /** @var (\Closure(int, ?string): void)|null */
    private ?\Closure $observer = null;

    public function __construct(
        private readonly RuntimeLocator $locator,
        private readonly RuntimeSettings $settings,
        private readonly LoggerInterface $logger,
    ) {}

    public function isOn(): bool
    {
        return $this->settings->keepsLeases();
    }

    /**
     * Calls $observer with a run's uid and stored owner when this process begins to execute it, and
     * with null when it ends.
     *
     * @param (\Closure(int, ?string): void)|null $observer
     */
    public function observe(?\Closure $observer): void
    {
        $this->observer = $observer;
    }

    /**
     * Returns the expiry that a claim, write fence or renewal writes: of the configured length
     * where leases are kept, else the caller's. An expiry in the past is the caller's own, and
     * stays.
     */
    public function leaseExpires(int $callers): int
    {
        return $this->isOn() && $callers > time() ? time() + $this->settings->leaseSeconds() : $callers;
    }

    /**
     * Returns the name under which a claim of this process is stored.
     */
    public function nameForClaim(string $given): string
    {
        if (trim($given) === '') {
            return $given;
        }
        $this->renewNonceAfterFork();
        if (!isset($this->names[$given])) {
            if (count($this->names) >= self::REMEMBERED) {
                array_shift($this->names);
            }
            $this->names[$given] = Identity::extend($given, $this->nonce);
        }

        return $this->names[$given];
    }

    /**
     * Returns the stored name for the one that a guard gives. A name under which this process never
     * claimed (read from a row, for example) is returned unchanged.
     */
    public function nameForGuard(string $given, ?int $runUid = null): string
    {
        if ($runUid !== null && isset($this->owners[$runUid]) && $this->owners[$runUid]['given'] === $given) {
            return $this->owners[$runUid]['stored'];
        }

        return isset($this->names[$given]) && $this->nonce === $this->nonceOfThisProcess() ? $this->names[$given] : $given;
    }

    /**
     * Returns whether this process has claimed the run before, as far as it remembers.
     */
    public function hasOwned(int $runUid): bool
    {
        return isset($this->owners[$runUid]);
    }

    /**
     * Remembers the owner of a claimed run and keeps its lease.
     *
     * @return bool false: the run is lost already (another owner, or cancelled), so the claim is
     *     not won
     */
    public function claimed(int $runUid, string $given, string $stored, int $callersLeaseExpires): bool
    {
        $this->remember($runUid, $given, $stored);
        if (!$this->isOn() || $callersLeaseExpires <= time()) {
            return true;
        }
        try {
            $this->requireHeartbeatConnection();
            $lease = $this->locator->runtime()->keepLease($runUid, $stored, $this->settings->leaseSeconds(), [
                'maxSilentSeconds' => $this->settings->maxSilentSeconds(),
                'maxSeconds' => $this->settings->maxSeconds(),
            ]);
        } catch (\NrLlmLeaseLostException | \NrLlmRunCancelledException $lost) {
            $this->logger->warning('The lease of agent run {run} was lost right after the claim: {reason}', [
                'run' => $runUid, 'owner' => $stored, 'reason' => $lost->getMessage(),
            ]);

            return false;
        } catch (\Throwable $error) {
            // Without a heartbeat the short lease would expire during a longer step. The caller's
            // own length, renewed at its steps, is what nr_llm does itself.
            $this->logger->error('The lease of agent run {run} is not kept in the background, only renewed at its steps: {reason}', [
                'run' => $runUid, 'owner' => $stored, 'reason' => $error->getMessage(),
            ]);
            try {
                $this->locator->runtime()->renewLease($runUid, $stored, max($callersLeaseExpires, time() + 1));
            } catch (\Throwable) {
                // The next renewal of nr_llm meets the same database and decides.
            }

            return true;
        }
        $now = self::seconds();
        $this->kept[$runUid] = ['lease' => $lease, 'nonce' => $this->nonceOfThisProcess(), 'since' => $now, 'step' => $now];

        return true;
    }

    /**
     * Remembers the owner of a run that was claimed while the runtime could not answer. Its lease
     * has the caller's length.
     */
    public function claimedWithoutHeartbeat(int $runUid, string $given, string $stored): void
    {
        $this->remember($runUid, $given, $stored);
    }

    /**
     * Returns the lease that this process keeps of a run for an owner (a stored name; null: any),
     * null where it keeps none.
     *
     * @return \NrLlmLease|null
     */
    public function lease(int $runUid, ?string $owner = null): ?object
    {
        $kept = $this->kept[$runUid] ?? null;
        if ($kept !== null && $kept['nonce'] !== $this->nonceOfThisProcess()) {
            // Inherited by fork: the parent's heartbeat continues, this process has to ask the
            // database.
            unset($this->kept[$runUid]);

            return null;
        }

        return $kept !== null && ($owner === null || $kept['lease']->claimedBy() === $owner) ? $kept['lease'] : null;
    }

    /**
     * Returns whether the last successful heartbeat is younger than a third of the lease, so that
     * another renewal would add nothing.
     *
     * @param \NrLlmLease $lease
     */
    public function isRecent(object $lease): bool
    {
        return $lease->state() === 'held' && $lease->remainingMs() * 3 > $this->settings->leaseSeconds() * 2000;
    }

    public function progressed(int $runUid): void
    {
        if (isset($this->kept[$runUid])) {
            $this->kept[$runUid]['step'] = self::seconds();
        }
    }

    /**
     * Returns whether the heartbeat of a run has ended by one of its limits. Its lease is then lost
     * for good (P 18).
     */
    public function reachedLimit(int $runUid): bool
    {
        $kept = $this->kept[$runUid] ?? null;

        return $kept !== null && (self::seconds() - $kept['since'] >= $this->settings->maxSeconds()
            || self::seconds() - $kept['step'] >= $this->settings->maxSilentSeconds());
    }

    /**
     * Ends the heartbeat of a run that was settled, suspended, requeued or lost.
     *
     * @param string|null $owner stored name of the owner whose run it was; null: any owner
     */
    public function end(int $runUid, ?string $owner = null): void
    {
        $kept = $this->kept[$runUid] ?? null;
        if ($kept !== null && $kept['nonce'] === $this->nonceOfThisProcess()) {
            if ($owner !== null && $kept['lease']->claimedBy() !== $owner) {
                return;
            }
            $kept['lease']->release();
        }
        unset($this->kept[$runUid]);
        if ($owner === null || ($this->owners[$runUid]['stored'] ?? null) === $owner) {
            $this->notify($runUid, null);
        }
    }

    /**
     * Ends all heartbeats. Called where the process executes no run: a run that its worker gave up
     * without settling it must become stale.
     *
     * @return int the number of heartbeats ended
     */
    public function endAll(): int
    {
        $runs = array_keys($this->kept);
        foreach ($runs as $runUid) {
            $this->end($runUid);
        }

        return count($runs);
    }

    private function remember(int $runUid, string $given, string $stored): void
    {
        unset($this->owners[$runUid]);
        if (count($this->owners) >= self::REMEMBERED) {
            unset($this->owners[array_key_first($this->owners)]);
        }
        $this->end($runUid);
        $this->owners[$runUid] = ['given' => $given, 'stored' => $stored];
        $this->notify($runUid, $stored);
    }

    private function notify(int $runUid, ?string $owner): void
    {
        if ($this->observer !== null) {
            ($this->observer)($runUid, $owner);
        }
    }

    /**
     * The heartbeat has a connection of its own, which a server near its limit may refuse. A short
     * lease without a heartbeat would expire in the middle of a step, so this is asked before the
     * first one is kept.
     *
     * @throws \NrLlmException
     */
    private function requireHeartbeatConnection(): void
    {
        if (!$this->heartbeatConnects) {
            $this->locator->probeSecondConnection();
            $this->heartbeatConnects = true;
        }
    }

    private function renewNonceAfterFork(): void
    {
        $nonce = $this->nonceOfThisProcess();
        if ($this->nonce !== $nonce) {
            $this->nonce = $nonce;
            $this->names = [];
        }
    }

    /**
     * The runtime's own nonce, so that names made here and there are recognisably of one process.
     * It changes with a fork, also in a child that has its parent's pid.
     */
    private function nonceOfThisProcess(): string
    {
        $identity = \NrLlmRuntime::identity('typo3');

        return substr($identity, (int)strrpos($identity, ':') + 1);
    }

    private static function seconds(): float
    {
        return hrtime(true) / 1e9;
    }
}
