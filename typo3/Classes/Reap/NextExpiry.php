<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Reap;

use NrLlmRuntime\Typo3\Settings\ConnectionSettings;
use NrLlmRuntime\Typo3\Settings\RuntimeSettings;
use TYPO3\CMS\Core\Database\ConnectionPool;

/**
 * When a resident reaper has to act.
 *
 * A lease that expires in second E is stale from second E + 1 on. The reaper sleeps until the next
 * expiry that it knows, and a second at most: a lease may be taken while it sleeps. So a run is
 * reaped within two seconds of its lease's expiry, whatever the lease's length.
 */
final class NextExpiry
{
    private const LONGEST_SECONDS = 1.0;
    private const SHORTEST_SECONDS = 0.02;

    public function __construct(
        private readonly ConnectionPool $connections,
        private readonly RuntimeSettings $settings,
    ) {}

    /**
     * Returns the number of stale runs, and the seconds until another one may be stale.
     *
     * @return array{stale: int, seconds: float}
     * @throws \Throwable where the database cannot be asked
     */
    public function look(): array
    {
        $connection = $this->connections->getConnectionForTable(ConnectionSettings::RUN_TABLE);
        $now = microtime(true);
        if ($this->settings->clock() === RuntimeSettings::CLOCK_DATABASE) {
            $now = (float)$connection->executeQuery('SELECT UNIX_TIMESTAMP(NOW(6))')->fetchOne();
        }
        $row = $connection->executeQuery(
            'SELECT SUM(CASE WHEN lease_expires < ? THEN 1 ELSE 0 END), MIN(CASE WHEN lease_expires >= ? THEN lease_expires END) FROM '
                . $connection->quoteIdentifier(ConnectionSettings::RUN_TABLE) . " WHERE status = 'running' AND lease_expires > 0",
            [(int)$now, (int)$now],
        )->fetchNumeric();
        [$stale, $next] = is_array($row) ? $row : [0, null];

        return ['stale' => (int)$stale, 'seconds' => self::delay($next === null ? null : (int)$next, $now)];
    }

    /**
     * Pure, so that it can be tested without a clock.
     *
     * @param int|null $next the first expiry that is not stale yet
     */
    public static function delay(?int $next, float $now): float
    {
        return $next === null ? self::LONGEST_SECONDS
            : max(self::SHORTEST_SECONDS, min($next + 1 - $now + self::SHORTEST_SECONDS, self::LONGEST_SECONDS));
    }
}
