<?php

declare(strict_types=1);

namespace Netresearch\NrLlm\Service\Tool;

use Netresearch\NrLlm\Domain\Enum\AgentRunStatus;
use Netresearch\NrLlm\Domain\ValueObject\AgentRun;

/**
 * Stands in for nr_llm's interface: the methods and signatures of release 0.33.
 */
interface AgentRunRepositoryInterface
{
    public function startRun(
        string $uuid,
        int $configurationUid,
        string $configurationIdentifier,
        int $beUser,
        string $claimedBy = '',
        int $leaseExpires = 0,
    ): int;

    public function enqueueRun(string $uuid, int $configurationUid, string $configurationIdentifier, int $beUser, string $requestJson): int;

    public function claimQueued(int $runUid, string $claimedBy, int $leaseExpires): bool;

    public function renewLease(int $runUid, string $claimedBy, int $leaseExpires): bool;

    public function claimForResume(int $runUid, string $claimedBy, int $leaseExpires): bool;

    public function claimForResumeFromInput(int $runUid, string $claimedBy, int $leaseExpires): bool;

    public function markPendingEffect(int $runUid, string $claimedBy, string $effect, int $leaseExpires): bool;

    public function requeue(int $runUid, string $claimedBy): bool;

    /** @return list<AgentRun> */
    public function findStaleRunning(int $now, int $limit = 50): array;

    public function requeueStale(int $runUid, int $now): bool;

    public function deadLetterStale(int $runUid, int $now, string $terminationReason): bool;

    public function finishRun(
        int $runUid,
        string $status,
        int $iterations,
        bool $truncated,
        int $promptTokens,
        int $completionTokens,
        int $totalTokens,
        float $estimatedCost,
        string $errorClass,
        string $terminationReason = '',
        ?string $ownedBy = null,
    ): bool;

    public function suspendRun(int $runUid, string $stateJson): bool;

    public function suspendRunForInput(int $runUid, string $stateJson): bool;

    public function recordEvent(int $runUid, int $sequence, string $kind, int $round, float $durationMs, string $payloadJson): void;

    public function findByUuid(string $uuid): ?AgentRun;

    /** @return list<AgentRun> */
    public function findAwaiting(int $limit, ?int $beUser = null): array;

    /** @return list<AgentRun> */
    public function findRecentTerminal(int $limit, ?int $beUser = null): array;

    /** @return list<array<string, mixed>> */
    public function findEvents(int $runUid, int $afterSequence = -1): array;

    /**
     * @param list<int> $runUids
     * @return array<int, list<int>>
     */
    public function findApprovalDeciders(array $runUids): array;

    public function maxEventSequence(int $runUid): int;

    /** @return array<string, int> */
    public function countByStatus(int $since = 0): array;

    /** @return array<string, int> */
    public function countByTerminationReason(int $since = 0): array;

    public function countInStatus(AgentRunStatus $status): int;

    public function purgeOlderThan(int $timestamp): int;

    public function purgeUnfinishedOlderThan(int $timestamp): int;
}
