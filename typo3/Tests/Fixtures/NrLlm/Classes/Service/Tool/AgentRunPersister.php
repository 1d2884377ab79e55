<?php

declare(strict_types=1);

namespace Netresearch\NrLlm\Service\Tool;

use Netresearch\NrLlm\Domain\ValueObject\AgentRun;
use Psr\Log\LoggerInterface;

/**
 * Stands in for nr_llm's persister, the one consumer of the repository: every Throwable becomes
 * "lost", "not won" or "not found".
 */
final readonly class AgentRunPersister
{
    public function __construct(public AgentRunRepositoryInterface $repository, private ?LoggerInterface $logger = null) {}

    public function find(string $uuid): ?AgentRun
    {
        return $this->softly(fn(): ?AgentRun => $this->repository->findByUuid($uuid), null);
    }

    public function claim(AgentRun $run, string $identity, int $leaseExpires): bool
    {
        return $this->softly(fn(): bool => $this->repository->claimQueued($run->uid, $identity, $leaseExpires), false);
    }

    public function renew(int $runUid, string $identity, int $leaseExpires): bool
    {
        return $this->softly(fn(): bool => $this->repository->renewLease($runUid, $identity, $leaseExpires), false);
    }

    public function fence(int $runUid, string $identity, string $effect, int $leaseExpires): bool
    {
        return $this->softly(fn(): bool => $this->repository->markPendingEffect($runUid, $identity, $effect, $leaseExpires), false);
    }

    public function requeue(int $runUid, string $identity): bool
    {
        return $this->softly(fn(): bool => $this->repository->requeue($runUid, $identity), false);
    }

    public function finish(int $runUid, string $status, string $errorClass = '', string $reason = '', ?string $ownedBy = null): bool
    {
        return $this->softly(fn(): bool => $this->repository->finishRun(
            $runUid,
            $status,
            1,
            false,
            2,
            3,
            5,
            0.01,
            $errorClass,
            $reason,
            $ownedBy,
        ), false);
    }

    private function softly(\Closure $call, mixed $otherwise): mixed
    {
        try {
            return $call();
        } catch (\Throwable $error) {
            $this->logger?->warning('Agent run store: ' . $error->getMessage());

            return $otherwise;
        }
    }
}
