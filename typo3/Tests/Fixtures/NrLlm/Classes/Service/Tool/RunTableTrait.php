<?php

declare(strict_types=1);

namespace Netresearch\NrLlm\Service\Tool;

use Doctrine\DBAL\Connection;
use Netresearch\NrLlm\Domain\Enum\AgentRunStatus;
use Netresearch\NrLlm\Domain\ValueObject\AgentRun;
use TYPO3\CMS\Core\Database\ConnectionPool;

/**
 * The run table by plain SQL over TYPO3's connection, as nr_llm's repository does it: the path that
 * stays where nothing is taken over.
 */
trait RunTableTrait
{
    public function __construct(private readonly ConnectionPool $connectionPool, private readonly AgentStateCodec $codec) {}

    public function startRun(
        string $uuid,
        int $configurationUid,
        string $configurationIdentifier,
        int $beUser,
        string $claimedBy = '',
        int $leaseExpires = 0,
    ): int {
        return $this->insert(['uuid' => $uuid, 'status' => 'running', 'be_user' => $beUser, 'claimed_by' => $claimedBy,
            'lease_expires' => $leaseExpires, 'started_at' => time()]);
    }

    public function enqueueRun(string $uuid, int $configurationUid, string $configurationIdentifier, int $beUser, string $requestJson): int
    {
        return $this->insert(['uuid' => $uuid, 'status' => 'queued', 'be_user' => $beUser, 'queued_request' => $requestJson]);
    }

    public function claimQueued(int $runUid, string $claimedBy, int $leaseExpires): bool
    {
        return $this->guarded(
            ['status' => 'running', 'claimed_by' => $claimedBy, 'lease_expires' => $leaseExpires],
            ['uid' => $runUid, 'status' => 'queued'],
        );
    }

    public function renewLease(int $runUid, string $claimedBy, int $leaseExpires): bool
    {
        return $this->guarded(['lease_expires' => $leaseExpires], ['uid' => $runUid, 'status' => 'running', 'claimed_by' => $claimedBy]);
    }

    public function claimForResume(int $runUid, string $claimedBy, int $leaseExpires): bool
    {
        return $this->guarded(
            ['status' => 'running', 'claimed_by' => $claimedBy, 'lease_expires' => $leaseExpires],
            ['uid' => $runUid, 'status' => 'waiting_for_approval'],
        );
    }

    public function claimForResumeFromInput(int $runUid, string $claimedBy, int $leaseExpires): bool
    {
        return $this->guarded(
            ['status' => 'running', 'claimed_by' => $claimedBy, 'lease_expires' => $leaseExpires],
            ['uid' => $runUid, 'status' => 'waiting_for_input'],
        );
    }

    public function markPendingEffect(int $runUid, string $claimedBy, string $effect, int $leaseExpires): bool
    {
        return $this->guarded(
            ['pending_effect' => $effect, 'lease_expires' => $leaseExpires],
            ['uid' => $runUid, 'status' => 'running', 'claimed_by' => $claimedBy],
        );
    }

    public function requeue(int $runUid, string $claimedBy): bool
    {
        return $this->write("UPDATE tx_nrllm_agentrun SET status = 'queued', requeue_count = requeue_count + 1, claimed_by = '', lease_expires = 0, pending_effect = '', tstamp = ? WHERE uid = ? AND status = 'running' AND claimed_by = ?", [time(), $runUid, $claimedBy]);
    }

    public function findStaleRunning(int $now, int $limit = 50): array
    {
        return $this->runs("status = 'running' AND lease_expires > 0 AND lease_expires < ? ORDER BY lease_expires LIMIT " . $limit, [$now]);
    }

    public function requeueStale(int $runUid, int $now): bool
    {
        return $this->write("UPDATE tx_nrllm_agentrun SET status = 'queued', requeue_count = requeue_count + 1, claimed_by = '', lease_expires = 0, pending_effect = '', tstamp = ? WHERE uid = ? AND status = 'running' AND lease_expires > 0 AND lease_expires < ?", [time(), $runUid, $now]);
    }

    public function deadLetterStale(int $runUid, int $now, string $terminationReason): bool
    {
        return $this->write("UPDATE tx_nrllm_agentrun SET status = 'failed', termination_reason = ?, queued_request = '', suspended_state = '', claimed_by = '', lease_expires = 0, finished_at = ?, tstamp = ? WHERE uid = ? AND status = 'running' AND lease_expires > 0 AND lease_expires < ?", [$terminationReason, time(), time(), $runUid, $now]);
    }

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
    ): bool {
        return $this->write(
            "UPDATE tx_nrllm_agentrun SET status = ?, iterations = ?, error_class = ?, termination_reason = ?, queued_request = '', suspended_state = '', claimed_by = '', lease_expires = 0, finished_at = ?, tstamp = ? WHERE uid = ? AND status NOT IN ('completed', 'failed', 'cancelled')"
            . ($ownedBy === null ? '' : ' AND claimed_by = ?'),
            [$status, $iterations, $errorClass, $terminationReason, time(), time(), $runUid, ...($ownedBy === null ? [] : [$ownedBy])],
        );
    }

    public function suspendRun(int $runUid, string $stateJson): bool
    {
        return $this->guarded(['status' => 'waiting_for_approval', 'suspended_state' => $stateJson, 'claimed_by' => '',
            'lease_expires' => 0], ['uid' => $runUid, 'status' => 'running']);
    }

    public function suspendRunForInput(int $runUid, string $stateJson): bool
    {
        return $this->guarded(
            ['status' => 'waiting_for_input', 'suspended_state' => $stateJson, 'claimed_by' => '', 'lease_expires' => 0],
            ['uid' => $runUid, 'status' => 'running'],
        );
    }

    public function recordEvent(int $runUid, int $sequence, string $kind, int $round, float $durationMs, string $payloadJson): void {}

    public function findByUuid(string $uuid): ?AgentRun
    {
        return $this->runs('uuid = ?', [$uuid])[0] ?? null;
    }

    public function findAwaiting(int $limit, ?int $beUser = null): array
    {
        return $this->runs("status = 'waiting_for_approval' LIMIT " . $limit, []);
    }

    public function findRecentTerminal(int $limit, ?int $beUser = null): array
    {
        return $this->runs("status IN ('completed', 'failed', 'cancelled') LIMIT " . $limit, []);
    }

    public function findEvents(int $runUid, int $afterSequence = -1): array
    {
        return [];
    }

    public function findApprovalDeciders(array $runUids): array
    {
        return [];
    }

    public function maxEventSequence(int $runUid): int
    {
        return -1;
    }

    public function countByStatus(int $since = 0): array
    {
        return array_map(
            'intval',
            $this->connection()->executeQuery('SELECT status, COUNT(*) FROM tx_nrllm_agentrun GROUP BY status')->fetchAllKeyValue(),
        );
    }

    public function countByTerminationReason(int $since = 0): array
    {
        return array_map(
            'intval',
            $this->connection()->executeQuery('SELECT termination_reason, COUNT(*) FROM tx_nrllm_agentrun GROUP BY termination_reason')->fetchAllKeyValue(),
        );
    }

    public function countInStatus(AgentRunStatus $status): int
    {
        return $this->countByStatus()[$status->value] ?? 0;
    }

    public function purgeOlderThan(int $timestamp): int
    {
        return 0;
    }

    public function purgeUnfinishedOlderThan(int $timestamp): int
    {
        return 0;
    }

    private function connection(): Connection
    {
        return $this->connectionPool->getConnectionForTable('tx_nrllm_agentrun');
    }

    /** @param array<string, mixed> $columns */
    private function insert(array $columns): int
    {
        $this->connection()->insert('tx_nrllm_agentrun', $columns + ['crdate' => time(), 'tstamp' => time()]);

        return (int)$this->connection()->lastInsertId();
    }

    /**
     * @param array<string, mixed> $set
     * @param array<string, mixed> $where
     */
    private function guarded(array $set, array $where): bool
    {
        if ((int)$this->connection()->update('tx_nrllm_agentrun', $set + ['tstamp' => time()], $where) === 1) {
            return true;
        }

        // Nothing changed is not lost: the second renewal of a second writes the same values.
        return isset($where['claimed_by']) && (int)$this->connection()->executeQuery(
            'SELECT COUNT(*) FROM tx_nrllm_agentrun WHERE uid = ? AND status = ? AND claimed_by = ?',
            [$where['uid'], $where['status'], $where['claimed_by']],
        )->fetchOne() === 1;
    }

    /** @param list<mixed> $parameters */
    private function write(string $sql, array $parameters): bool
    {
        return (int)$this->connection()->executeStatement($sql, $parameters) === 1;
    }

    /**
     * @param list<mixed> $parameters
     * @return list<AgentRun>
     */
    private function runs(string $where, array $parameters): array
    {
        $rows = $this->connection()->executeQuery('SELECT * FROM tx_nrllm_agentrun WHERE ' . $where, $parameters)->fetchAllAssociative();

        // Hydrating decrypts: one row that does not hides the others, as in nr_llm.
        return array_map(fn(array $row): AgentRun => new AgentRun(
            (int)$row['uid'],
            $row['uuid'],
            AgentRunStatus::from($row['status']),
            (string)$row['queued_request'] === '' ? null : $this->codec->decode($row['queued_request'], 'nrllm:agent-state:queued-request'),
            $row['claimed_by'],
            (int)$row['lease_expires'],
            (int)$row['requeue_count'],
            $row['pending_effect'],
        ), $rows);
    }
}
