<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Functional;

use NrLlmRuntime\Typo3\Tests\Support\Database;
use NrLlmRuntime\Typo3\Tests\Support\SiteTestCase;

/**
 * TYPO3's ways of writing a connection down, with the runtime behind them.
 */
final class ConnectionTest extends SiteTestCase
{
    public function testEveryWayToWriteTheConnectionLeadsToTheRunTable(): void
    {
        $uid = $this->db->run();
        $plain = $this->db->connection();
        $socket = Database::environment('SOCKET');
        $url = sprintf(
            'pdo-mysql://%s:%s@127.0.0.1:%d/%s',
            rawurlencode($plain['user']),
            rawurlencode($plain['password']),
            $plain['port'],
            $plain['dbname'],
        );
        $cases = [
            'mysqli, port as a number' => $plain,
            'pdo_mysql' => ['driver' => 'pdo_mysql'] + $plain,
            'port as a string' => ['port' => (string)$plain['port']] + $plain,
            'the socket without a host' => ['host' => '', 'port' => 1, 'unix_socket' => $socket] + $plain,
            'the socket of localhost' => ['host' => 'localhost', 'unix_socket' => $socket] + $plain,
            'a socket beside 127.0.0.1 is ignored' => ['unix_socket' => '/nowhere/sock'] + $plain,
            'a URL wins over the single keys' => ['url' => $url, 'host' => 'nowhere.invalid', 'user' => 'other', 'password' => 'x',
                'dbname' => 'y'] + $plain,
            'no charset' => array_diff_key($plain, ['charset' => 1]),
            'an empty charset' => ['charset' => ''] + $plain,
            'what is not the runtime\'s business' => $plain + [
                'initCommands' => "SET sql_mode=''", 'wrapperClass' => 'Un\Known', 'driverMiddlewares' => ['x' => []],
                'persistent' => true,
                'tableoptions' => ['charset' => 'utf8'], 'collate' => 'utf8_general_ci',
            ],
        ];
        foreach ($cases as $case => $connection) {
            $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'] = $connection;
            $this->site = null;
            self::forgetWhatWasLogged();
            [$runs] = $this->repository();
            self::assertTrue($runs->claimQueued($uid, 'worker:web-01:1', time() + 100), $case);
            self::assertTrue($runs->requeue($uid, 'worker:web-01:1'), $case);
        }
        $GLOBALS['TYPO3_CONF_VARS']['DB'] = [
            'Connections' => ['Default' => ['dbname' => 'nrllm_not_there'] + $plain, 'Runs' => $plain],
            'TableMapping' => ['tx_nrllm_agentrun' => 'Runs'],
        ];
        $this->site = null;
        [$runs] = $this->repository();
        self::assertTrue($runs->claimQueued($uid, 'worker:web-01:1', time() + 100), 'a mapped table');
    }

    public function testOddCharactersInAPassword(): void
    {
        $password = 'p@ss:w/o#rd?%41&+ ü';
        $user = 'odd_' . bin2hex(random_bytes(4));
        $quoted = $this->db->pdo->quote($password);
        foreach (['localhost', '%'] as $host) {
            $this->db->pdo->exec("CREATE USER '$user'@'$host' IDENTIFIED BY $quoted");
            $this->db->pdo->exec("GRANT ALL ON {$this->db->name}.* TO '$user'@'$host'");
        }
        try {
            $plain = ['user' => $user, 'password' => $password] + $this->db->connection();
            $url = sprintf('mysqli://%s:%s@127.0.0.1:%d/%s', $user, rawurlencode($password), $plain['port'], $plain['dbname']);
            foreach (['keys' => $plain, 'url' => ['url' => $url] + $this->db->connection()] as $case => $connection) {
                $uid = $this->db->run();
                $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'] = $connection;
                $this->site = null;
                [$runs] = $this->repository();
                self::assertTrue($runs->claimQueued($uid, 'worker:web-01:1', time() + 100), $case);
            }
        } finally {
            $this->db->pdo->exec("DROP USER '$user'@'localhost', '$user'@'%'");
        }
    }

    public function testTheDatabasesClockCanWriteTheLease(): void
    {
        $this->db->configure(['clock' => 'database', 'keeper' => '0']);
        [$runs] = $this->repository();
        $uid = $this->db->run();
        self::assertTrue($runs->claimQueued($uid, 'worker:web-01:1', time() + 500));
        self::assertEqualsWithDelta(
            500,
            $this->db->one("SELECT lease_expires - UNIX_TIMESTAMP() FROM tx_nrllm_agentrun WHERE uid = $uid"),
            2,
        );
    }
}
