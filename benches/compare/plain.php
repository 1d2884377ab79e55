<?php

declare(strict_types=1);

namespace Bench;

use PDO;
use PDOStatement;

/**
 * Variant b: the fastest plain PHP. PDO with native prepared statements, each prepared once; runs
 * are reaped by lists, without their payloads; matched rows are counted, so that a renewal is one
 * round trip. The guards and the locking are the extension's.
 */
final class PlainVariant implements Variant
{
    private const OWNED = 'CAST(CONVERT(claimed_by USING utf8mb4) AS BINARY) = CAST(? AS BINARY)';
    private const STALE = "status = 'running' AND lease_expires > 0 AND lease_expires < ";
    private const REQUEUED = "status = 'queued', claimed_by = '', lease_expires = 0, pending_effect = '', requeue_count = requeue_count + 1, tstamp = ";
    private const CHUNK = 500;

    private readonly PDO $pdo;
    private readonly string $table;
    /** @var array<string, PDOStatement> */
    private array $statements = [];

    public function __construct(Target $target)
    {
        $this->table = "`$target->table`";
        $this->pdo = new PDO("mysql:unix_socket=$target->socket;dbname=$target->database;charset=utf8mb4", $target->user, $target->password, [
            PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
            PDO::ATTR_EMULATE_PREPARES => false,
            PDO::MYSQL_ATTR_FOUND_ROWS => true,
        ]);
        // TYPO3's own isolation level where the server logs statements, since READ COMMITTED would
        // log rows; otherwise the level that locks least.
        $statements = $this->pdo->query("SELECT @@log_bin AND @@binlog_format <> 'ROW'")->fetchColumn();
        $this->pdo->exec('SET SESSION TRANSACTION ISOLATION LEVEL ' . ($statements ? 'REPEATABLE READ' : 'READ COMMITTED'));
    }

    public function renew(int $uid, string $owner, int $lease): bool
    {
        $statement = $this->statements['renew'] ??= $this->pdo->prepare(
            "UPDATE $this->table FORCE INDEX (PRIMARY) SET lease_expires = ?, tstamp = ? WHERE uid = ? AND status = 'running' AND " . self::OWNED,
        );
        $statement->execute([$lease, time(), $uid, $owner]);

        return $statement->rowCount() > 0;
    }

    public function mark(int $uid, string $owner, string $effect, int $lease): bool
    {
        $statement = $this->statements['mark'] ??= $this->pdo->prepare(
            "UPDATE $this->table FORCE INDEX (PRIMARY) SET pending_effect = ?, lease_expires = ?, tstamp = ? WHERE uid = ? AND status = 'running' AND "
                . self::OWNED,
        );
        $statement->execute([$effect, $lease, time(), $uid, $owner]);

        return $statement->rowCount() > 0;
    }

    public function claim(int $uid, string $owner, int $lease): bool
    {
        $statement = $this->statements['claim'] ??= $this->pdo->prepare(
            "UPDATE $this->table FORCE INDEX (PRIMARY) SET status = 'running', claimed_by = ?, lease_expires = ?, started_at = ?, tstamp = ? "
                . "WHERE uid = ? AND status = 'queued'",
        );
        $now = time();
        $statement->execute([$owner, $lease, $now, $now, $uid]);

        return $statement->rowCount() > 0;
    }

    public function recover(int $uid, string $owner, \Throwable $error): string
    {
        $failure = Ladder::classify($error);
        $this->pdo->exec('START TRANSACTION');
        $lock = $this->statements['lock'] ??= $this->pdo->prepare(
            'SELECT ' . self::OWNED . " AS owned, status, requeue_count, pending_effect, COALESCE(OCTET_LENGTH(queued_request), 0) > 0 AS runnable "
                . "FROM $this->table FORCE INDEX (PRIMARY) WHERE uid = ? FOR UPDATE",
        );
        $lock->execute([$owner, $uid]);
        $row = $lock->fetch(PDO::FETCH_ASSOC);
        $lock->closeCursor();
        if ($row === false || !$row['owned'] || $row['status'] !== 'running') {
            $this->pdo->exec('ROLLBACK');
            return 'lease_lost';
        }
        if (!$failure->isRetryable() || $row['pending_effect'] === 'non_idempotent_write' || !$row['runnable'] || $row['requeue_count'] >= 3) {
            $this->pdo->exec('ROLLBACK');
            return 'dead_lettered';
        }
        $requeue = $this->statements['requeue'] ??= $this->pdo->prepare(
            "UPDATE $this->table FORCE INDEX (PRIMARY) SET " . self::REQUEUED . "? WHERE uid = ? AND status = 'running'",
        );
        $requeue->execute([time(), $uid]);
        $this->pdo->exec('COMMIT');

        return 'requeued';
    }

    public function reap(int $limit, int $now): array
    {
        $stale = self::STALE . "($now)";
        $listed = $this->pdo->query(
            "SELECT uid, uuid, claimed_by, lease_expires, requeue_count FROM $this->table WHERE $stale ORDER BY lease_expires, uid LIMIT " . ($limit + 1),
        )->fetchAll(PDO::FETCH_ASSOC);
        $requeued = $deadLettered = [];
        foreach (array_chunk(array_slice($listed, 0, $limit), self::CHUNK) as $chunk) {
            $uids = implode(',', array_column($chunk, 'uid'));
            $this->pdo->exec('START TRANSACTION');
            $locked = $this->pdo->query(
                "SELECT uid, uuid, claimed_by, lease_expires, requeue_count, pending_effect, COALESCE(OCTET_LENGTH(queued_request), 0) > 0 AS runnable "
                    . "FROM $this->table FORCE INDEX (PRIMARY) WHERE uid IN ($uids) AND $stale ORDER BY uid FOR UPDATE SKIP LOCKED",
            )->fetchAll(PDO::FETCH_ASSOC);
            $requeue = $dead = [];
            foreach ($locked as $row) {
                $reason = match (true) {
                    $row['pending_effect'] === 'non_idempotent_write', !$row['runnable'] => 'not_retryable',
                    $row['requeue_count'] >= 3 => 'retries_exhausted',
                    default => null,
                };
                if ($reason === null) {
                    $requeue[] = $row['uid'];
                    $requeued[] = $row;
                } else {
                    $dead[$reason][] = $row['uid'];
                    $deadLettered[] = ['reason' => $reason] + $row;
                }
            }
            if ($requeue !== []) {
                $this->pdo->exec(
                    "UPDATE $this->table FORCE INDEX (PRIMARY) SET " . self::REQUEUED . time() . ' WHERE uid IN (' . implode(',', $requeue) . ") AND $stale",
                );
            }
            foreach ($dead as $reason => $these) {
                $this->pdo->exec(
                    "UPDATE $this->table FORCE INDEX (PRIMARY) SET status = 'failed', termination_reason = '$reason', error_class = '', suspended_state = '', "
                        . "queued_request = '', claimed_by = '', lease_expires = 0, finished_at = " . time() . ', tstamp = ' . time()
                        . ' WHERE uid IN (' . implode(',', $these) . ") AND $stale",
                );
            }
            $this->pdo->exec('COMMIT');
        }

        return [count($requeued), count($deadLettered), 0];
    }

    public function classify(\Throwable $error): object
    {
        return Ladder::classify($error);
    }
}
