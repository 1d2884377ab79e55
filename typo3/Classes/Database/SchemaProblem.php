<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Database;

use Doctrine\DBAL\Exception\InvalidFieldNameException;
use Doctrine\DBAL\Exception\TableNotFoundException;
use NrLlmRuntime\Typo3\Settings\ConnectionSettings;
use TYPO3\CMS\Core\Database\ConnectionPool;

/**
 * Explains errors about a table or column that is missing in an administrator's words: the remedy
 * on a TYPO3 site is its own schema update, not an option of the runtime.
 */
final class SchemaProblem
{
    private const COLUMNS = ['uuid', 'status', 'claimed_by', 'lease_expires', 'requeue_count', 'pending_effect', 'queued_request',
        'suspended_state', 'started_at', 'finished_at', 'error_class', 'termination_reason', 'tstamp', 'crdate'];
    private const MESSAGE_TABLE = 'sys_messenger_messages';

    public function __construct(private readonly ConnectionPool $pool, private readonly ConnectionSettings $settings) {}

    /**
     * Returns the error's message, or the missing table or column with the remedy where that is the
     * cause.
     */
    public function explain(\Throwable $error): string
    {
        if ($error instanceof \NrLlmConfigurationException || $error instanceof TableNotFoundException
            || $error instanceof InvalidFieldNameException) {
            $missing = $this->missing();
            if ($missing !== '') {
                return $missing;
            }
        }

        return $error->getMessage();
    }

    /**
     * Returns what the database lacks and the remedy, '' where it lacks nothing or cannot be asked.
     */
    public function missing(): string
    {
        $table = ConnectionSettings::RUN_TABLE;
        $connection = $this->pool->getConnectionForTable($table);
        $name = $this->settings->connectionName();
        try {
            foreach (self::COLUMNS as $column) {
                $connection->executeQuery('SELECT ' . $connection->quoteIdentifier($column) . ' FROM '
                    . $connection->quoteIdentifier($table) . ' WHERE 1 = 0')->fetchOne();
            }
            $table = self::MESSAGE_TABLE;
            $name = ConnectionSettings::TRANSPORT_CONNECTION;
            $connection = $this->pool->getConnectionByName($name);
            $connection->executeQuery('SELECT id FROM ' . $connection->quoteIdentifier($table) . ' WHERE 1 = 0')->fetchOne();
        } catch (TableNotFoundException) {
            return sprintf('The table %s does not exist in the database of the connection "%s". Create it: vendor/bin/typo3 extension:setup '
                . '(or Admin Tools > Maintenance > Analyze Database Structure).', $table, $name);
        } catch (InvalidFieldNameException) {
            return sprintf('The table %s lacks the column %s. Update the schema: vendor/bin/typo3 extension:setup (or Admin Tools > '
                . 'Maintenance > Analyze Database Structure).', $table, $column ?? 'id');
        } catch (\Throwable) {
            return '';
        }

        return '';
    }
}
