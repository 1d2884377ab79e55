<?php

declare(strict_types=1);

namespace Bench;

use Doctrine\DBAL\Connection;
use Doctrine\DBAL\DriverManager;
use Doctrine\DBAL\ParameterType;
use Doctrine\DBAL\Query\QueryBuilder;

/** A run as the repository returns it to its callers. */
final readonly class Run
{
    public function __construct(
        public int $uid,
        public string $uuid,
        public string $status,
        public int $configurationUid,
        public string $configurationIdentifier,
        public int $beUser,
        public int $iterations,
        public bool $truncated,
        public int $promptTokens,
        public int $completionTokens,
        public int $totalTokens,
        public float $estimatedCost,
        public string $errorClass,
        public string $terminationReason,
        public ?string $suspendedState,
        public ?string $queuedRequest,
        public string $claimedBy,
        public int $leaseExpires,
        public int $requeueCount,
        public string $pendingEffect,
        public int $startedAt,
        public int $finishedAt,
        public int $tstamp,
        public int $crdate,
    ) {}
}

/**
 * Variant a: the way of TYPO3. Doctrine's QueryBuilder over mysqli with named parameters and quoted
 * identifiers; one statement per run; whole rows are loaded to decide; a renewal that changed no
 * row is verified by a second query. Payloads are not decrypted, unlike in nr_llm.
 */
final class DoctrineVariant implements Variant
{
    private readonly Connection $connection;

    public function __construct(Target $target)
    {
        $this->connection = DriverManager::getConnection([
            'driver' => 'mysqli', 'host' => 'localhost', 'unix_socket' => $target->socket, 'user' => $target->user, 'password' => $target->password,
            'dbname' => $target->database, 'charset' => 'utf8mb4',
        ]);
        $this->connection->executeQuery('SELECT 1')->fetchOne();
        $this->table = $target->table;
    }

    private readonly string $table;

    public function renew(int $uid, string $owner, int $lease): bool
    {
        $query = $this->update(['lease_expires' => $lease, 'tstamp' => time()]);
        $this->owned($query, $uid, $owner);

        return $query->executeStatement() > 0 || $this->isHeld($uid, $owner);
    }

    public function mark(int $uid, string $owner, string $effect, int $lease): bool
    {
        $query = $this->update(['pending_effect' => $effect, 'lease_expires' => $lease, 'tstamp' => time()]);
        $this->owned($query, $uid, $owner);

        return $query->executeStatement() > 0 || $this->isHeld($uid, $owner);
    }

    public function claim(int $uid, string $owner, int $lease): bool
    {
        $now = time();
        $query = $this->update(['status' => 'running', 'claimed_by' => $owner, 'lease_expires' => $lease, 'started_at' => $now, 'tstamp' => $now]);
        $query->where(
            $query->expr()->eq($this->quote('uid'), $query->createNamedParameter($uid, ParameterType::INTEGER)),
            $query->expr()->eq($this->quote('status'), $query->createNamedParameter('queued')),
        );

        return $query->executeStatement() === 1;
    }

    public function recover(int $uid, string $owner, \Throwable $error): string
    {
        $failure = Ladder::classify($error);
        $query = $this->connection->createQueryBuilder();
        $row = $query->select('*')->from($this->quote($this->table))
            ->where($query->expr()->eq($this->quote('uid'), $query->createNamedParameter($uid, ParameterType::INTEGER)))
            ->executeQuery()->fetchAssociative();
        $run = $row === false ? null : self::hydrate($row);
        if ($run === null || !$failure->isRetryable() || $run->pendingEffect === 'non_idempotent_write' || $run->requeueCount >= 3) {
            return 'dead_lettered';
        }
        $update = $this->requeued();
        $this->owned($update, $uid, $owner);

        return $update->executeStatement() === 1 ? 'requeued' : 'lease_lost';
    }

    public function reap(int $limit, int $now): array
    {
        $query = $this->connection->createQueryBuilder();
        $rows = $query->select('*')->from($this->quote($this->table))
            ->where(
                $query->expr()->eq($this->quote('status'), $query->createNamedParameter('running')),
                $query->expr()->gt($this->quote('lease_expires'), $query->createNamedParameter(0, ParameterType::INTEGER)),
                $query->expr()->lt($this->quote('lease_expires'), $query->createNamedParameter($now, ParameterType::INTEGER)),
            )
            ->orderBy($this->quote('lease_expires'), 'ASC')->setMaxResults($limit)
            ->executeQuery()->fetchAllAssociative();
        $runs = array_map(self::hydrate(...), $rows);
        $requeued = $deadLettered = $skipped = [];
        foreach ($runs as $run) {
            $reason = match (true) {
                $run->pendingEffect === 'non_idempotent_write', $run->queuedRequest === null => 'not_retryable',
                $run->requeueCount >= 3 => 'retries_exhausted',
                default => null,
            };
            $update = $reason === null ? $this->requeued() : $this->deadLettered($reason);
            $update->where(
                $update->expr()->eq($this->quote('uid'), $update->createNamedParameter($run->uid, ParameterType::INTEGER)),
                $update->expr()->eq($this->quote('status'), $update->createNamedParameter('running')),
                $update->expr()->gt($this->quote('lease_expires'), $update->createNamedParameter(0, ParameterType::INTEGER)),
                $update->expr()->lt($this->quote('lease_expires'), $update->createNamedParameter($now, ParameterType::INTEGER)),
            );
            if ($update->executeStatement() === 0) {
                $skipped[] = $run->uuid;
            } elseif ($reason === null) {
                $requeued[] = $run->uuid;
            } else {
                $deadLettered[] = $run->uuid;
            }
        }

        return [count($requeued), count($deadLettered), count($skipped)];
    }

    public function classify(\Throwable $error): object
    {
        return Ladder::classify($error);
    }

    private function quote(string $identifier): string
    {
        return $this->connection->quoteIdentifier($identifier);
    }

    /** @param array<string, int|string> $values */
    private function update(array $values): QueryBuilder
    {
        $query = $this->connection->createQueryBuilder()->update($this->quote($this->table));
        foreach ($values as $column => $value) {
            $query->set($this->quote($column), $query->createNamedParameter($value, is_int($value) ? ParameterType::INTEGER : ParameterType::STRING));
        }

        return $query;
    }

    private function requeued(): QueryBuilder
    {
        $query = $this->update(['status' => 'queued', 'claimed_by' => '', 'lease_expires' => 0, 'pending_effect' => '', 'tstamp' => time()]);

        return $query->set($this->quote('requeue_count'), $this->quote('requeue_count') . ' + 1');
    }

    private function deadLettered(string $reason): QueryBuilder
    {
        return $this->update(['status' => 'failed', 'termination_reason' => $reason, 'error_class' => '', 'suspended_state' => '', 'queued_request' => '',
            'claimed_by' => '', 'lease_expires' => 0, 'finished_at' => time(), 'tstamp' => time()]);
    }

    private function owned(QueryBuilder $query, int $uid, string $owner): void
    {
        $query->where(
            $query->expr()->eq($this->quote('uid'), $query->createNamedParameter($uid, ParameterType::INTEGER)),
            $query->expr()->eq($this->quote('status'), $query->createNamedParameter('running')),
            $query->expr()->eq($this->quote('claimed_by'), $query->createNamedParameter($owner)),
        );
    }

    private function isHeld(int $uid, string $owner): bool
    {
        $query = $this->connection->createQueryBuilder()->select('COUNT(' . $this->quote('uid') . ')')->from($this->quote($this->table));
        $this->owned($query, $uid, $owner);

        return (int) $query->executeQuery()->fetchOne() > 0;
    }

    /** @param array<string, mixed> $row */
    private static function hydrate(array $row): Run
    {
        return new Run(
            (int) $row['uid'], (string) $row['uuid'], (string) $row['status'], (int) $row['configuration_uid'], (string) $row['configuration_identifier'],
            (int) $row['be_user'], (int) $row['iterations'], (bool) $row['truncated'], (int) $row['total_prompt_tokens'],
            (int) $row['total_completion_tokens'], (int) $row['total_tokens'], (float) $row['estimated_cost'], (string) $row['error_class'],
            (string) $row['termination_reason'], ($row['suspended_state'] ?? '') === '' ? null : (string) $row['suspended_state'],
            ($row['queued_request'] ?? '') === '' ? null : (string) $row['queued_request'], (string) $row['claimed_by'], (int) $row['lease_expires'],
            (int) $row['requeue_count'], (string) $row['pending_effect'], (int) $row['started_at'], (int) $row['finished_at'], (int) $row['tstamp'],
            (int) $row['crdate'],
        );
    }
}
