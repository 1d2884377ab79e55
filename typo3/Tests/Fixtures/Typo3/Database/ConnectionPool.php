<?php

declare(strict_types=1);

namespace TYPO3\CMS\Core\Database;

use Doctrine\DBAL\Connection;
use Doctrine\DBAL\DriverManager;
use Doctrine\DBAL\Tools\DsnParser;

/**
 * Stands in for TYPO3's pool: connections by name, tables mapped to names, URL before single keys,
 * port as a number.
 */
class ConnectionPool
{
    /** @var array<string, Connection> */
    private array $connections = [];

    public function getConnectionForTable(string $table): Connection
    {
        return $this->getConnectionByName($GLOBALS['TYPO3_CONF_VARS']['DB']['TableMapping'][$table] ?? 'Default');
    }

    public function getConnectionByName(string $name): Connection
    {
        $settings = $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections'][$name];
        if (($settings['url'] ?? '') !== '') {
            $settings = array_merge($settings, (new DsnParser())->parse($settings['url']));
        }
        // A test's way to have another DBMS by name, on the server that there is.
        $settings['driver'] = $settings['fixtureDriver'] ?? $settings['driver'];
        unset($settings['url'], $settings['initCommands'], $settings['fixtureDriver']);
        if (isset($settings['port'])) {
            $settings['port'] = (int)$settings['port'];
        }

        return $this->connections[$name] ??= DriverManager::getConnection($settings);
    }
}
