<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Status;

use Doctrine\DBAL\Exception\InvalidFieldNameException;
use Doctrine\DBAL\Exception\TableNotFoundException;
use NrLlmRuntime\Typo3\Database\SchemaProblem;
use NrLlmRuntime\Typo3\Runtime\RuntimeLocator;
use NrLlmRuntime\Typo3\Settings\ConnectionSettings;
use TYPO3\CMS\Core\Database\ConnectionPool;

/**
 * The numbers of the run table: the runtime's where there is one, else by plain SQL, so that the
 * status reports as much as it can with every binding and without one. No payload is read.
 */
final class StatusReader
{
    private const WORKERS = 'tx_nrllm_worker_heartbeat';
    private const UNKNOWN = [
        'counts' => [], 'deadLetters' => [], 'expiredLeases' => null, 'unleasedRunning' => null, 'oldestLease' => null,
        'oldestQueuedSeconds' => null, 'stranded' => null, 'clockSkewMs' => null, 'leaseKey' => null, 'server' => '', 'isolation' => '',
        'binlog' => null, 'unknownQueueWait' => null, 'liveWorkers' => null,
    ];

    public function __construct(
        private readonly RuntimeLocator $locator,
        private readonly ConnectionPool $connections,
        private readonly SchemaProblem $schema,
    ) {}

    /**
     * Reads what can be read. A database or a runtime that cannot be used is part of the answer,
     * not an exception: monitoring has to report it.
     *
     * @return array{
     *     counts: array<string, int>, deadLetters: array<string, int>, expiredLeases: ?int,
     *     unleasedRunning: ?int, oldestLease: ?int, oldestQueuedSeconds: ?int,
     *     unknownQueueWait: ?int, stranded: ?int, clockSkewMs: ?int, leaseKey: ?bool,
     *     server: string, isolation: string, binlog: ?array{
     *         format: ?string, rowImage: ?string, bytesPerHeartbeat: int, remedy: ?string
     *     },
     *     liveWorkers: ?int, databaseProblem: string, runtimeProblem: string
     * } null where it is not known on this path, in this release of nr_llm, or now; the problems
     * are empty where there is none
     */
    public function read(string $transport, int $workerMaxAge, ?int $now = null): array
    {
        $now ??= time();
        $status = null;
        $problem = '';
        if ($this->locator->isAvailable()) {
            try {
                $status = $this->native();
            } catch (\Throwable $error) {
                $problem = $this->schema->explain($error);
            }
        }
        try {
            $status ??= $this->bySql($now);
            $status['unknownQueueWait'] = $this->unknownQueueWait();
            $status['liveWorkers'] = $this->liveWorkers($transport, $now, $workerMaxAge);
            $status['databaseProblem'] = '';
        } catch (\Throwable $error) {
            $status = self::UNKNOWN;
            $status['databaseProblem'] = $this->schema->explain($error);
        }
        // Where the database itself is the cause, one problem says it.
        $status['runtimeProblem'] = $status['databaseProblem'] === '' ? $problem : '';

        return $status;
    }

    /**
     * @return array<string, mixed>
     */
    private function native(): array
    {
        $native = $this->locator->runtime()->status();

        return [
            'counts' => $native['counts'],
            'deadLetters' => $native['deadLetters'],
            'expiredLeases' => $native['expiredLeases'],
            'unleasedRunning' => $native['unleasedRunning'],
            'oldestLease' => $native['oldestLease'],
            'oldestQueuedSeconds' => $native['oldestQueuedSeconds'],
            'stranded' => $native['stranded'],
            'clockSkewMs' => $native['clockSkewMs'],
            'leaseKey' => $native['leaseKey'],
            'server' => $native['server'],
            'isolation' => $native['isolation'],
            'binlog' => $native['binlog'],
        ];
    }

    /**
     * @return array<string, mixed>
     */
    private function bySql(int $now): array
    {
        $numbers = static fn(array $pairs): array => array_map('intval', $pairs);
        $oldest = $this->one("SELECT MIN(lease_expires) FROM %s WHERE status = 'running' AND lease_expires > 0");
        $queued = $this->queuedSince();

        return [
            'counts' => $numbers($this->pairs('SELECT status, COUNT(*) FROM %s GROUP BY status')),
            'deadLetters' => $numbers($this->pairs("SELECT termination_reason, COUNT(*) FROM %s WHERE status = 'failed' GROUP BY termination_reason")),
            'expiredLeases' => (int)$this->one("SELECT COUNT(*) FROM %s WHERE status = 'running' AND lease_expires > 0 AND lease_expires < ?", [$now]),
            'unleasedRunning' => (int)$this->one("SELECT COUNT(*) FROM %s WHERE status = 'running' AND lease_expires = 0"),
            'oldestLease' => $oldest === null ? null : (int)$oldest,
            'oldestQueuedSeconds' => $queued === null ? null : max(0, $now - $queued),
            'stranded' => null,
            'clockSkewMs' => null,
            'leaseKey' => null,
            'server' => '',
            'isolation' => '',
            'binlog' => null,
        ];
    }

    /**
     * Since when the oldest queued run waits: from when it was last queued, where that is recorded.
     */
    private function queuedSince(): ?int
    {
        try {
            $since = $this->one("SELECT MIN(CASE WHEN queued_at > 0 THEN queued_at ELSE tstamp END) FROM %s WHERE status = 'queued'");
        } catch (InvalidFieldNameException) {
            $since = $this->one("SELECT MIN(tstamp) FROM %s WHERE status = 'queued'");
        }

        return $since === null ? null : (int)$since;
    }

    /**
     * Queued runs of which it is not known since when: where the column exists and has not been
     * filled it.
     */
    private function unknownQueueWait(): int
    {
        try {
            return (int)$this->one("SELECT COUNT(*) FROM %s WHERE status = 'queued' AND queued_at = 0");
        } catch (InvalidFieldNameException) {
            return 0;
        }
    }

    /**
     * Workers, not rows, with a sign of life at most so old. Their clocks may be ahead of this one
     * by as much; a sign of life from further in the future would keep a worker alive that is long
     * gone.
     *
     * @return int|null null: this release of nr_llm does not record its workers, or not in a way
     *     that is known
     */
    private function liveWorkers(string $transport, int $now, int $maxAge): ?int
    {
        try {
            $connection = $this->connections->getConnectionForTable(self::WORKERS);

            return (int)$connection->executeQuery(
                'SELECT COUNT(DISTINCT worker_id) FROM ' . $connection->quoteIdentifier(self::WORKERS)
                    . ' WHERE transport = ? AND last_seen BETWEEN ? AND ?',
                [$transport, max(0, $now - $maxAge), $now + min($maxAge, PHP_INT_MAX - $now)],
            )->fetchOne();
        } catch (TableNotFoundException | InvalidFieldNameException) {
            return null;
        }
    }

    /**
     * @param list<int> $parameters
     */
    private function one(string $sql, array $parameters = []): mixed
    {
        $connection = $this->connections->getConnectionForTable(ConnectionSettings::RUN_TABLE);
        $value = $connection->executeQuery(
            sprintf($sql, $connection->quoteIdentifier(ConnectionSettings::RUN_TABLE)),
            $parameters,
        )->fetchOne();

        return $value === false ? null : $value;
    }

    /**
     * @return array<string, mixed>
     */
    private function pairs(string $sql): array
    {
        $connection = $this->connections->getConnectionForTable(ConnectionSettings::RUN_TABLE);

        return $connection->executeQuery(sprintf($sql, $connection->quoteIdentifier(ConnectionSettings::RUN_TABLE)))->fetchAllKeyValue();
    }
}
