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
    /** Names are remembered after a run has ended, so that a late guard still asks for the right owner; so many of them. */
    private const REMEMBERED = 1000;

    /** @var array<int, array{lease: \NrLlmLease, nonce: string}> by run */
    private array $kept = [];
    /** @var array<int, array{given: string, stored: string}> by run, the latest last */
    private array $owners = [];
    /** @var array<string, string> given => stored, of this process */
    private array $names = [];
    /** That of the process that the names are of; empty before the first. */
    private string $nonce = '';

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
     * The lease a claim, fence or renewal writes: the configured length where leases are kept, else what the caller wanted.
     */
    public function leaseExpires(int $callers): int
    {
        return $this->isOn() ? time() + $this->settings->leaseSeconds() : $callers;
    }

    /**
     * The name under which a claim of this process is stored.
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
     * The stored name for one that a guard gives. A name that this process never claimed under (read from a row, say) stays as it is.
     */
    public function nameForGuard(string $given, ?int $runUid = null): string
    {
        if ($runUid !== null && isset($this->owners[$runUid]) && $this->owners[$runUid]['given'] === $given) {
            return $this->owners[$runUid]['stored'];
        }

        return isset($this->names[$given]) && $this->nonce === $this->nonceOfThisProcess() ? $this->names[$given] : $given;
    }

    /**
     * After a won claim: remembers the owner and keeps the lease.
     *
     * @return bool false: the run is lost already (another owner, or cancelled), so the claim is not won after all
     */
    public function claimed(int $runUid, string $given, string $stored, int $callersLeaseExpires): bool
    {
        unset($this->owners[$runUid]);
        if (count($this->owners) >= self::REMEMBERED) {
            unset($this->owners[array_key_first($this->owners)]);
        }
        $this->owners[$runUid] = ['given' => $given, 'stored' => $stored];
        $this->end($runUid);
        if (!$this->isOn()) {
            return true;
        }
        try {
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
            // No heartbeat, so the short lease would run out during a longer step: the caller's own length, renewed at its steps.
            $this->logger->error('The lease of agent run {run} is not kept in the background: {reason}', [
                'run' => $runUid, 'owner' => $stored, 'reason' => $error->getMessage(),
            ]);
            try {
                $this->locator->runtime()->renewLease($runUid, $stored, max($callersLeaseExpires, time() + 1));
            } catch (\Throwable) {
                // The next renewal of nr_llm meets the same database and decides.
            }

            return true;
        }
        $this->kept[$runUid] = ['lease' => $lease, 'nonce' => $this->nonceOfThisProcess()];

        return true;
    }

    /**
     * The kept lease of a run, null where none is kept by this process.
     *
     * @return \NrLlmLease|null
     */
    public function lease(int $runUid): ?object
    {
        $kept = $this->kept[$runUid] ?? null;
        if ($kept !== null && $kept['nonce'] !== $this->nonceOfThisProcess()) {
            // Inherited by fork: the parent goes on beating, this process has to ask the database.
            unset($this->kept[$runUid]);

            return null;
        }

        return $kept['lease'] ?? null;
    }

    /**
     * Whether the last successful beat is younger than a third of the lease, so that another renewal would add nothing.
     *
     * @param \NrLlmLease $lease
     */
    public function isRecent(object $lease): bool
    {
        return $lease->state() === 'held' && $lease->remainingMs() * 3 > $this->settings->leaseSeconds() * 2000;
    }

    /**
     * Stops the beats of a run: settled, suspended, requeued or lost.
     */
    public function end(int $runUid): void
    {
        $kept = $this->kept[$runUid] ?? null;
        unset($this->kept[$runUid]);
        if ($kept !== null && $kept['nonce'] === $this->nonceOfThisProcess()) {
            $kept['lease']->release();
        }
    }

    /**
     * Stops all beats: no run can be under way any more. A run that its worker gave up without settling it would else be kept alive.
     *
     * @return int how many there were
     */
    public function endAll(): int
    {
        $runs = array_keys($this->kept);
        foreach ($runs as $runUid) {
            $this->end($runUid);
        }

        return count($runs);
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
     * The runtime's own nonce, so that names made here and there can be told to be of one process. It is another one after a fork, also in a
     * child that has its parent's pid.
     */
    private function nonceOfThisProcess(): string
    {
        $identity = \NrLlmRuntime::identity('typo3');

        return substr($identity, (int)strrpos($identity, ':') + 1);
    }
}
