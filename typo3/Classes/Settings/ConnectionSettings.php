<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Settings;

use Doctrine\DBAL\Tools\DsnParser;

/**
 * The database settings of TYPO3, as the native runtime takes them.
 *
 * The runtime opens a connection of its own, so what TYPO3 does to its connections (initCommands,
 * wrapper class, middlewares) does not reach it. TLS settings are handed over as they are written:
 * the runtime refuses those of the other driver instead of ignoring them.
 *
 * @phpstan-import-type ConnectionArray from \NrLlmRuntime
 */
final class ConnectionSettings
{
    public const RUN_TABLE = 'tx_nrllm_agentrun';
    /** TYPO3's doctrine transport always opens this one, whatever tables are mapped elsewhere. */
    public const TRANSPORT_CONNECTION = 'Default';
    private const DRIVERS = ['mysqli', 'pdo_mysql'];
    /** TYPO3's and Doctrine's own, without a meaning for another connection. */
    private const NOT_OURS = ['url', 'initCommands', 'wrapperClass', 'driverMiddlewares', 'defaultTableOptions', 'tableoptions', 'collate',
        'persistent'];

    /**
     * Returns the name of the connection that a table is mapped to.
     */
    public function connectionName(string $table = self::RUN_TABLE): string
    {
        // TableMapping does not exist until a table is mapped.
        $name = $GLOBALS['TYPO3_CONF_VARS']['DB']['TableMapping'][$table] ?? '';

        return is_string($name) && $name !== '' ? $name : 'Default';
    }

    public function driver(?string $connection = null): string
    {
        $driver = $this->resolved($connection ?? $this->connectionName())['driver'] ?? '';

        return is_string($driver) ? $driver : '';
    }

    /**
     * Returns whether the run table lives where the native runtime can go: MySQL or MariaDB.
     */
    public function isSupported(): bool
    {
        return in_array($this->driver(), self::DRIVERS, true);
    }

    /**
     * Returns the settings of the run table's connection, for NrLlmRuntime's constructor. They hold
     * the password.
     *
     * @return ConnectionArray
     * @throws SettingsException
     */
    public function forRuntime(): array
    {
        return array_diff_key($this->resolved($this->connectionName()), array_flip(self::NOT_OURS));
    }

    /**
     * Returns whether a second connection leads to the same database on the same server as the run
     * table's.
     */
    public function isRunTablesDatabase(string $connection): bool
    {
        if ($connection === $this->connectionName()) {
            return true;
        }
        try {
            return self::address($this->resolved($connection)) === self::address($this->resolved($this->connectionName()));
        } catch (SettingsException) {
            return false;
        }
    }

    /**
     * Returns what initial commands change on TYPO3's connections and not on the runtime's, where
     * it matters: sql_mode and isolation level.
     *
     * @return list<string> a sentence each
     */
    public function initCommandFindings(): array
    {
        $name = $this->connectionName();
        $settings = $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections'][$name] ?? [];
        if (!is_array($settings)) {
            return [];
        }
        $sources = ['initCommands' => $settings['initCommands'] ?? ''];
        $options = is_array($settings['driverOptions'] ?? null) ? $settings['driverOptions'] : [];
        // MYSQLI_INIT_COMMAND and PDO::MYSQL_ATTR_INIT_COMMAND, by number: the driver's extension
        // need not be loaded.
        $sources['driverOptions (init command)'] = $options[($settings['driver'] ?? '') === 'pdo_mysql' ? 1002 : 3] ?? '';
        $findings = [];
        foreach ($sources as $source => $commands) {
            $commands = is_array($commands) ? implode("\n", array_filter($commands, 'is_string')) : (is_string($commands) ? $commands : '');
            $sets = [];
            if (preg_match('/\bsql_mode\b/i', $commands) === 1) {
                $sets[] = 'sql_mode';
            }
            if (preg_match('/\b(tx_isolation|transaction_isolation|isolation\s+level)\b/i', $commands) === 1) {
                $sets[] = 'the isolation level';
            }
            if ($sets !== []) {
                $findings[] = sprintf(
                    '%s of the connection "%s" set %s; the native runtime does not run them: its session has settings of its own.',
                    $source,
                    $name,
                    implode(' and ', $sets),
                );
            }
        }

        return $findings;
    }

    /**
     * @return array<string, mixed>
     * @throws SettingsException
     */
    private function resolved(string $name): array
    {
        $settings = $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections'][$name] ?? null;
        if (!is_array($settings) || $settings === []) {
            throw new SettingsException(sprintf(
                'The database connection "%s" is not configured: see TYPO3_CONF_VARS[DB][Connections] and [DB][TableMapping].',
                $name,
            ));
        }
        $url = $settings['url'] ?? '';
        if (is_string($url) && $url !== '') {
            try {
                $parsed = (new DsnParser())->parse($url);
            } catch (\Throwable) {
                // Not chained: the parser's message may hold the URL, and the URL the password.
                throw new SettingsException(sprintf('The "url" of the database connection "%s" cannot be parsed.', $name));
            }
            // As TYPO3 does it: the URL wins over the single keys.
            $settings = array_merge($settings, $parsed);
        }
        $port = $settings['port'] ?? null;
        if (is_string($port) && preg_match('/^\s*[0-9]{1,5}\s*$/', $port) === 1) {
            $settings['port'] = (int)trim($port);
        }

        return $settings;
    }

    /**
     * @param array<string, mixed> $settings
     */
    private static function address(array $settings): string
    {
        $text = static fn(string $key): string => is_scalar($settings[$key] ?? null) ? (string)$settings[$key] : '';
        $host = strtolower($text('host'));
        // A socket is used with no host or with localhost only, as in PHP's drivers.
        $local = $host === '' || $host === 'localhost';
        $server = $local ? 'socket:' . $text('unix_socket') : 'tcp:' . $host . ':' . ($text('port') !== '' ? $text('port') : '3306');

        return $server . '/' . $text('dbname');
    }
}
