<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Database;

use Doctrine\DBAL\Connection;
use NrLlmRuntime\Typo3\Settings\ConnectionSettings;
use TYPO3\CMS\Core\Database\ConnectionPool;

/**
 * TYPO3's own database connections in a process that lives for hours. The server closes idle ones,
 * and TYPO3 does not reconnect: every statement of nr_llm on such a connection fails, and nr_llm
 * reports the failure as "not claimed".
 */
final class DatabaseConnections
{
    public function __construct(private readonly ConnectionPool $pool) {}

    /**
     * Tests TYPO3's open connections, and the one of the run table. A dead one is closed, and
     * opened again by its next statement.
     *
     * @throws \Throwable where the run table's connection cannot be opened
     */
    public function reviveAll(): void
    {
        $names = $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections'] ?? [];
        $runs = $this->pool->getConnectionForTable(ConnectionSettings::RUN_TABLE);
        foreach (array_keys(is_array($names) ? $names : []) as $name) {
            try {
                $connection = $this->pool->getConnectionByName((string)$name);
            } catch (\Throwable) {
                // Not usable, so not open either.
                continue;
            }
            if ($connection !== $runs && $connection->isConnected() && !self::answers($connection)) {
                $connection->close();
            }
        }
        if (!self::answers($runs)) {
            $runs->close();
            $runs->executeQuery('SELECT 1')->fetchOne();
        }
    }

    private static function answers(Connection $connection): bool
    {
        try {
            $connection->executeQuery('SELECT 1')->fetchOne();

            return true;
        } catch (\Throwable) {
            return false;
        }
    }
}
