<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Reap;

use Doctrine\DBAL\Connection;
use Doctrine\DBAL\Exception\InvalidFieldNameException;
use NrLlmRuntime\Typo3\Settings\ConnectionSettings;
use TYPO3\CMS\Core\Database\ConnectionPool;

/**
 * The sweep for stranded runs over TYPO3's own connection, for sites without the native runtime:
 * `--wake-stranded` does the same there.
 */
final class StrandedRunSweep
{
    /** nr_llm's backoff before attempt n+1 (P 13). */
    private const BACKOFF_SECONDS = 30;
    private const BACKOFF_CAP_SECONDS = 600;
    private const EXAMINED_PER_LIMIT = 10;
    private const EXAMINED_AT_MOST = 5000;

    public function __construct(private readonly ConnectionPool $connections) {}

    /**
     * Marks queued runs that no worker was notified of for this long, and returns them. A run is
     * marked in its tstamp, guarded by the value read, so that sweeps at the same time share the
     * runs.
     *
     * @return list<array{
     *     uid: int, uuid: string, requeueCount: int, queuedSeconds: int, wokenUp: false
     * }>
     */
    public function claim(int $olderThanSeconds, int $limit, ?int $now = null): array
    {
        $now ??= time();
        $connection = $this->connections->getConnectionForTable(ConnectionSettings::RUN_TABLE);
        $claimed = [];
        foreach ($this->candidates($connection, $now - $olderThanSeconds, $limit) as $row) {
            $count = (int)$row['requeue_count'];
            $since = max((int)$row['tstamp'], (int)($row['queued_at'] ?? 0));
            if ($since + self::backoff($count) + $olderThanSeconds >= $now) {
                continue;
            }
            $marked = $connection->executeStatement(
                'UPDATE ' . $connection->quoteIdentifier(ConnectionSettings::RUN_TABLE)
                    . " SET tstamp = ? WHERE uid = ? AND status = 'queued' AND tstamp = ?",
                [$now, (int)$row['uid'], (int)$row['tstamp']],
            );
            if ((int)$marked !== 1) {
                continue;
            }
            $claimed[] = ['uid' => (int)$row['uid'], 'uuid' => (string)$row['uuid'], 'requeueCount' => $count,
                'queuedSeconds' => $now - $since, 'wokenUp' => false];
            if (count($claimed) >= $limit) {
                break;
            }
        }

        return $claimed;
    }

    public static function backoff(int $requeueCount): int
    {
        return $requeueCount < 1 ? 0
            : (int)min(self::BACKOFF_SECONDS * 2 ** min($requeueCount - 1, 10), self::BACKOFF_CAP_SECONDS);
    }

    /**
     * @return list<array<string, mixed>>
     */
    private function candidates(Connection $connection, int $before, int $limit): array
    {
        $table = $connection->quoteIdentifier(ConnectionSettings::RUN_TABLE);
        $rows = min(max($limit, 1) * self::EXAMINED_PER_LIMIT, self::EXAMINED_AT_MOST);
        $sql = 'SELECT uid, uuid, requeue_count, tstamp%s FROM ' . $table . " WHERE status = 'queued' AND tstamp < ? AND queued_request IS "
            . "NOT NULL AND queued_request <> '' ORDER BY crdate, uid LIMIT " . $rows;
        try {
            return $connection->executeQuery(sprintf($sql, ', queued_at'), [$before])->fetchAllAssociative();
        } catch (InvalidFieldNameException) {
            return $connection->executeQuery(sprintf($sql, ''), [$before])->fetchAllAssociative();
        }
    }
}
