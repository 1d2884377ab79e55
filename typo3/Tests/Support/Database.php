<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Support;

use TYPO3\CMS\Core\Information\Typo3Version;

/**
 * A fresh database on the private server of the test run, and TYPO3's settings that lead to it.
 */
final class Database
{
    public readonly \PDO $pdo;
    public readonly string $name;
    private int $made = 0;
    private ?\PDO $taken = null;
    /** @var list<string> */
    private array $accounts = [];

    public function __construct()
    {
        $this->name = 'nrllm_typo3_' . bin2hex(random_bytes(5));
        $this->pdo = self::connect();
        $this->pdo->exec('CREATE DATABASE ' . $this->name . ' CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci');
        $this->pdo->exec('USE ' . $this->name);
        foreach (array_filter(array_map('trim', explode(
            ';',
            (string)file_get_contents(dirname(__DIR__) . '/Fixtures/schema.sql'),
        ))) as $statement) {
            $this->pdo->exec($statement);
        }
        $this->configure();
    }

    /**
     * Another transaction that locks these runs, until it is rolled back or the result is
     * gone.
     */
    public function lock(int ...$uids): \PDO
    {
        $other = self::connect();
        $other->exec('USE ' . $this->name);
        $other->beginTransaction();
        foreach ($uids as $uid) {
            // One by one: a range of a small table would be read, and locked, as a whole.
            $other->query('SELECT uid FROM tx_nrllm_agentrun WHERE uid = ' . $uid . ' FOR UPDATE')->fetchAll();
        }

        return $other;
    }

    /**
     * Ends all connections to this database but the test's own, as a server does with idle ones.
     */
    public function killOthers(string $user = ''): void
    {
        $own = (int)$this->one('SELECT CONNECTION_ID()');
        foreach ($this->all('SELECT ID FROM information_schema.PROCESSLIST WHERE DB = \'' . $this->name . '\' AND ID <> ' . $own
            . ($user === '' ? '' : " AND USER = '$user'")) as $row) {
            try {
                $this->pdo->exec('KILL ' . (int)$row['ID']);
            } catch (\PDOException) {
                // Gone already.
            }
        }
    }

    /**
     * Settings of an account that may have so many connections at a time (0: as many as it wants).
     *
     * @return array<string, mixed>
     */
    public function limited(int $connections): array
    {
        $user = 'limited_' . bin2hex(random_bytes(4));
        $this->pdo->exec("CREATE USER '$user'@'%' IDENTIFIED BY 'x' WITH MAX_USER_CONNECTIONS $connections");
        $this->pdo->exec("GRANT ALL ON {$this->name}.* TO '$user'@'%'");
        $this->accounts[] = $user;

        return ['user' => $user, 'password' => 'x'] + $this->connection();
    }

    /**
     * Makes the server refuse the account that limited() made last: its connections are ended, and
     * this test holds the only one that it may have.
     */
    public function refuse(): void
    {
        $user = $this->accounts[array_key_last($this->accounts)];
        $this->pdo->exec("ALTER USER '$user'@'%' WITH MAX_USER_CONNECTIONS 1");
        for ($until = microtime(true) + 5; $this->taken === null && microtime(true) < $until; usleep(1000)) {
            $this->killOthers($user);
            try {
                $this->taken = new \PDO('mysql:host=127.0.0.1;port=' . self::environment('PORT'), $user, 'x');
            } catch (\PDOException) {
                // A connection of the account was quicker; it is ended next.
            }
        }
    }

    /**
     * Ends what refuse() began.
     */
    public function accept(): void
    {
        $this->taken = null;
        $this->pdo->exec("ALTER USER '" . $this->accounts[array_key_last($this->accounts)] . "'@'%' WITH MAX_USER_CONNECTIONS 0");
    }

    private static function connect(): \PDO
    {
        return new \PDO('mysql:unix_socket=' . self::environment('SOCKET'), self::environment('USER'), self::environment('PASSWORD'), [
            \PDO::ATTR_ERRMODE => \PDO::ERRMODE_EXCEPTION,
            \PDO::ATTR_STRINGIFY_FETCHES => false,
            \PDO::ATTR_EMULATE_PREPARES => false,
        ]);
    }

    public static function environment(string $name): string
    {
        $value = getenv('NRLLM_TEST_' . $name);
        if ($value === false || $value === '') {
            throw new \RuntimeException('NRLLM_TEST_' . $name . ' is not set: run these tests with bin/test typo3.');
        }

        return $value;
    }

    /**
     * What TYPO3 has after its setup, plus the doctrine transport for nr_llm's message alone.
     *
     * @param array<string, mixed> $extension settings of the package
     */
    public function configure(array $extension = [], ?array $routing = null): void
    {
        Typo3Version::$version = '13.4.18';
        $GLOBALS['TYPO3_CONF_VARS'] = [
            'DB' => ['Connections' => ['Default' => $this->connection()]],
            'EXTENSIONS' => ['nrllm_runtime' => $extension],
            'SYS' => ['messenger' => ['routing' => $routing ?? ['Netresearch\NrLlm\Service\Agent\Queue\AgentRunQueuedMessage' => 'doctrine']]],
        ];
    }

    /**
     * @return array<string, mixed>
     */
    public function connection(): array
    {
        return [
            'driver' => 'mysqli', 'host' => '127.0.0.1', 'port' => (int)self::environment('PORT'), 'user' => self::environment('USER'),
            'password' => self::environment('PASSWORD'), 'dbname' => $this->name, 'charset' => 'utf8mb4',
            'defaultTableOptions' => ['charset' => 'utf8mb4', 'collation' => 'utf8mb4_unicode_ci'],
        ];
    }

    /**
     * @param array<string, mixed> $columns
     * @return int the run's uid
     */
    public function run(array $columns = []): int
    {
        $columns += [
            'uuid' => sprintf('00000000-0000-4000-8000-%012d', ++$this->made),
            'status' => 'queued', 'queued_request' => '{"messages":[]}', 'crdate' => time() - 3600, 'tstamp' => time() - 3600,
        ];
        $names = array_keys($columns);
        $this->pdo->prepare('INSERT INTO tx_nrllm_agentrun (' . implode(',', $names) . ') VALUES ('
            . implode(',', array_fill(0, count($names), '?')) . ')')
            ->execute(array_values($columns));

        return (int)$this->pdo->lastInsertId();
    }

    /**
     * A run whose worker died.
     *
     * @param array<string, mixed> $columns
     */
    public function stale(array $columns = []): int
    {
        return $this->run($columns + ['status' => 'running', 'claimed_by' => 'worker:dead:1', 'lease_expires' => time() - 100]);
    }

    /**
     * @return array<string, mixed>
     */
    public function row(int $uid): array
    {
        return $this->all('SELECT * FROM tx_nrllm_agentrun WHERE uid = ' . $uid)[0];
    }

    /**
     * @return list<array<string, mixed>>
     */
    public function all(string $sql): array
    {
        return $this->pdo->query($sql)->fetchAll(\PDO::FETCH_ASSOC);
    }

    public function one(string $sql): mixed
    {
        return $this->pdo->query($sql)->fetchColumn();
    }

    public function drop(): void
    {
        $this->pdo->exec('DROP DATABASE IF EXISTS ' . $this->name);
        foreach ($this->accounts as $user) {
            $this->pdo->exec("DROP USER IF EXISTS '$user'@'%'");
        }
    }
}
