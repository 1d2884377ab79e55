<?php

declare(strict_types=1);

// The program of bin/chaos: starts the server or the cluster and the actors, injects each round's
// schedule of faults, reads the table continuously, and checks every round.

require __DIR__ . '/servers.inc';
require __DIR__ . '/checker.inc';
require __DIR__ . '/clock.inc';

mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$options = getopt('', ['rounds:', 'seconds:', 'seed:', 'from:', 'cluster', 'out:', 'module:', 'library:', 'quiet', 'skew:', 'clock:', 'step:']);
$seed = (int) ($options['seed'] ?? random_int(1, 999_999));
$cluster = isset($options['cluster']);
$from = (int) ($options['from'] ?? 1);
$rounds = (int) ($options['rounds'] ?? PHP_INT_MAX);
$seconds = (int) ($options['seconds'] ?? (isset($options['rounds']) ? PHP_INT_MAX >> 32 : 60));
$out = $options['out'];

final class Chaos
{
    private const LEASE = 2;
    /**
     * The lease of rounds in which hosts step the clocks that decide, by a second back and forth,
     * so that two clocks may be two seconds apart. The rest of the lease is three seconds, more
     * than the delay of a heartbeat in such a round.
     */
    private const LEASE_WITH_STEPS = 6;
    /**
     * Kinds of faults that delay the heartbeats of others for a moment at most.
     */
    private const GENTLE = ['kill worker', 'kill reaper', 'kill dispatcher', 'kill connections', 'cut'];
    /** How far clocks are stepped where the database's decides, in seconds. */
    private const STEPS = [-86_400 * 365 * 20, -86_400, -3600, -60, -7, -3, -1, 1, 3, 7, 60, 3600, 86_400, 86_400 * 365 * 20];
    /**
     * Defaults of the server that a site may have set, and that would change the effect of
     * statements in a session that does not pin them.
     */
    private const DEFAULTS = [
        'completion_type' => ["'CHAIN'", "'RELEASE'"], 'sql_select_limit' => ['3', '1'], 'max_join_size' => ['5'], 'tx_read_only' => ['1'], 'autocommit' => ['0'],
        'sql_mode' => ["''", "'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES'"], 'tx_isolation' => ["'SERIALIZABLE'", "'READ-UNCOMMITTED'"], 'sql_safe_updates' => ['1'],
        'init_connect' => ["'BEGIN'"], 'time_zone' => ["'+05:30'"], 'wait_timeout' => ['1'], 'innodb_lock_wait_timeout' => ['1', '1000'],
    ];
    /**
     * The maximum number of the actors' connections at rest: for each of the six one of the
     * extension, and one of PHP's own.
     */
    private const CONNECTIONS = 6 * 2;
    private const RUNS = 10;
    /** How long faults happen, and how long it may take after them until every run has ended. */
    private const WINDOW_MS = 3000;
    private const CALM_MS = 60_000;

    /**
     * @var array<string, array{
     *     process: resource, pid: int, script: string, number: int, stopped: bool
     * }>
     */
    private array $actors = [];
    /** @var list<array{process: resource, pipes: array<int, resource>}> one before each node */
    private array $proxies = [];
    private ?mysqli $watcher = null;
    private ?mysqli $locker = null;
    /** @var array<string, string> the server's defaults of this round */
    private array $defaults = [];
    private ?mysqli $dump = null;
    /** @var array<string, array{before: int, wrong: int}> by actor: the clocks with a glitch */
    private array $glitches = [];
    /** @var array<string, WallClock> by actor, in rounds with steps: each is a host of its own */
    private array $clocks = [];
    /** @var array<string, int> */
    public array $faults = [];
    private int $server = 0;
    private string $refused = 'no connection';
    /** @var array<string, array<string, int>> by node of a cluster: its counters over all starts */
    public array $conflicts = [];
    /** @var array<string, array<string, int>> by node: the counters when they were last read */
    private array $counted = [];

    /** @param array<string, mixed> $round */
    private array $round = [];
    private string $file = '';

    public function __construct(private readonly Site $site, private readonly int $seed, private readonly array $options, private readonly string $top)
    {
        $this->round['ports'] = array_map($this->startProxy(...), $site->nodes);
    }

    /** Returns the port of a new proxy before a node. */
    private function startProxy(Node $node): int
    {
        $probe = stream_socket_server('tcp://127.0.0.1:0');
        $port = (int) explode(':', stream_socket_get_name($probe, false))[1];
        fclose($probe);
        $process = proc_open([PHP_BINARY, '-n', __DIR__ . '/proxy.php', (string) $port, (string) $node->port], [['pipe', 'r'], ['pipe', 'w'], STDERR], $pipes);
        $this->proxies[] = ['process' => $process, 'pipes' => $pipes];
        if (fgets($pipes[1]) !== "ready\n") {
            throw new RuntimeException('the proxy did not start');
        }

        return $port;
    }

    public function end(): void
    {
        $this->killActors();
        foreach ($this->proxies as ['process' => $process]) {
            proc_terminate($process, SIGKILL);
            proc_close($process);
        }
    }

    private function toProxy(string $line, int $which): void
    {
        fwrite($this->proxies[$which % count($this->proxies)]['pipes'][0], "$line\n");
    }

    public function play(int $number): Checker
    {
        // The only source of randomness, so that the seed and the number determine the round.
        $random = new Random\Randomizer(new Random\Engine\Mt19937($this->seed * 100_003 + $number));
        $folder = "{$this->site->folder}/r$number";
        mkdir($folder);
        $database = "chaos_$number";
        $runs = [];
        for ($uid = 1; $uid <= self::RUNS; $uid++) {
            $runs[$uid] = ['uuid' => sprintf('%08x-0000-4000-8000-%012x', $number, $uid), 'payload' => bin2hex($random->getBytes($random->getInt(10, 2000))) . "\u{1F980}'\\\"\n"];
        }
        $cancel = [];
        for ($i = $random->getInt(0, 2); $i > 0; $i--) {
            $cancel[] = ['uid' => $random->getInt(1, self::RUNS), 'at' => $random->getInt(100, self::WINDOW_MS)];
        }
        $this->round = ['folder' => $folder, 'top' => $this->top, 'ports' => $this->round['ports'], 'user' => Site::ACTOR, 'password' => Site::PASSWORD, 'database' => $database,
            'seed' => $this->seed * 100_003 + $number, 'lease' => self::LEASE, 'mode' => $random->getInt(0, 1) === 1 ? 'bus' : 'table', 'clock' => $random->getInt(0, 1) === 1 ? 'database' : 'caller',
            'runs' => array_map(fn(array $run): array => ['uuid' => $run['uuid']], $runs), 'cancel' => $cancel, 'skew' => (int) ($this->options['skew'] ?? 0), 'library' => $this->options['library'] ?? null];
        $this->round['holders'] = [];
        $schedule = $this->withSettings($this->withSteps($this->schedule($random), $number), $number);
        $this->file = "$folder/round.json";
        file_put_contents($this->file, json_encode($this->round, JSON_THROW_ON_ERROR));
        $this->prepare($database, $runs, $random->getInt(0, 1));
        $this->setDefaults();

        $this->spawn('worker0', 'worker', 0);
        $this->spawn('worker1', 'worker', 1);
        $this->spawn('worker2', 'worker', 2);
        $this->spawn('reaper0', 'reaper', 1);
        $this->spawn('reaper1', 'reaper', 2);
        $this->spawn('dispatcher0', 'dispatcher', 0);

        $checker = new Checker($runs, $this->round['mode'] === 'bus');
        $began = hrtime(true);
        $watched = 0;
        $ended = false;
        do {
            $ms = intdiv(hrtime(true) - $began, 1_000_000);
            while ($schedule !== [] && $schedule[0]['at'] <= $ms) {
                $this->inject(array_shift($schedule), $schedule);
            }
            $this->respawn();
            if ($ms - $watched >= 100) {
                $watched = $ms;
                $rows = $this->look($database);
                $ended = $rows !== null && $checker->watch($rows);
            }
            usleep(20_000);
            // A round goes on until the last fault has been lifted and every run has ended.
        } while (($schedule !== [] || !$ended) && $ms < self::WINDOW_MS + self::CALM_MS);
        $checker->atRest($this->connections(10, fn(array $found): bool => count($found) <= self::CONNECTIONS && array_filter($found, Checker::holdsWithoutACall(...)) === []), self::CONNECTIONS);
        $this->endActors();
        $checker->afterTheEnd($this->connections(10, fn(array $found): bool => $found === []));
        // Again after all actors have ended, so that a late write is seen.
        $rows = null;
        for ($tries = 0; $rows === null && $tries < 100; $tries++) {
            $rows = $this->look($database);
            $rows === null && usleep(100_000);
        }
        if ($rows === null) {
            throw new RuntimeException('the watcher cannot read the table after the round');
        }
        $checker->watch($rows);
        foreach ($this->site->cluster ? array_keys($this->site->nodes) : [] as $index) {
            $this->countConflicts($index);
        }
        $notes = [];
        foreach (glob("$folder/ledger.*") as $ledger) {
            foreach (file($ledger, FILE_IGNORE_NEW_LINES) as $line) {
                $notes[] = json_decode($line, true, 32, JSON_THROW_ON_ERROR);
            }
        }
        $checker->check($notes, array_combine(array_map(intval(...), array_column($rows, 'uid')), $rows));
        $this->quietly(fn(mysqli $link) => $link->query("DROP DATABASE $database"), 0);

        return $checker;
    }

    /** @return list<array<string, mixed>> */
    private function schedule(Random\Randomizer $random): array
    {
        $kinds = $this->site->cluster
            ? ['kill worker', 'kill worker', 'stop worker', 'kill reaper', 'stop reaper', 'kill connections', 'lock rows', 'kill node', 'cut node off', 'cut node off', 'cut', 'deaf']
            : ['kill worker', 'kill worker', 'stop worker', 'stop worker', 'kill reaper', 'stop reaper', 'kill dispatcher', 'restart server', 'kill connections', 'lock rows', 'cut', 'slow', 'hold', 'deaf', 'connection limit'];
        $schedule = [];
        for ($i = $random->getInt(3, 6); $i > 0; $i--) {
            $schedule[] = ['at' => $random->getInt(200, self::WINDOW_MS), 'kind' => $kinds[$random->getInt(0, count($kinds) - 1)], 'which' => $random->getInt(0, 5), 'size' => $random->getInt(0, 1000)];
        }
        usort($schedule, fn(array $a, array $b): int => $a['at'] <=> $b['at']);

        return $schedule;
    }

    /**
     * Adds steps of the actors' clocks to two thirds of the rounds with the database's clock, and
     * to one third of those with the caller's. In the latter a step shortens the lease: there the
     * steps are short, the lease is longer, and faults that delay heartbeats are left out.
     *
     * @param list<array<string, mixed>> $schedule
     * @return list<array<string, mixed>>
     */
    private function withSteps(array $schedule, int $number): array
    {
        // A generator of its own, so that the other faults of the round do not depend on the steps.
        $random = new Random\Randomizer(new Random\Engine\Mt19937($this->seed * 100_003 + $number + 1_000_000_007));
        $step = isset($this->options['step']) ? (int) $this->options['step'] : null;
        $this->clocks = [];
        if ($step !== null) {
            $this->round['clock'] = 'caller';
        }
        $database = $this->round['clock'] === 'database';
        if ($step === null && ($this->round['skew'] !== 0 || $random->getInt(0, 2) >= ($database ? 2 : 1))) {
            return $schedule;
        }
        foreach (['worker0', 'worker1', 'worker2', 'reaper0', 'reaper1'] as $host) {
            $this->clocks[$host] = new WallClock($this->options['clock'], "{$this->round['folder']}/clock.$host");
        }
        if (!$database) {
            $this->round['lease'] = self::LEASE_WITH_STEPS;
            $schedule = array_values(array_filter($schedule, fn(array $fault): bool => in_array($fault['kind'], self::GENTLE, true)));
        }
        if ($step !== null) {
            // All on one side, in the direction that makes leases look older than they are.
            foreach ($step > 0 ? [0, 1] : [0, 1, 2] as $which) {
                $schedule[] = ['at' => 800, 'kind' => $step > 0 ? 'clock step reaper' : 'clock step worker', 'which' => $which, 'size' => $step];
            }
        } else {
            $sizes = $database ? self::STEPS : [-1, 1];
            for ($i = $random->getInt(2, 6); $i > 0; $i--) {
                $schedule[] = ['at' => $random->getInt(200, self::WINDOW_MS), 'kind' => $random->getInt(0, 2) === 0 ? 'clock step reaper' : 'clock step worker', 'which' => $random->getInt(0, 5),
                    'size' => $sizes[$random->getInt(0, count($sizes) - 1)]];
            }
        }
        usort($schedule, fn(array $a, array $b): int => $a['at'] <=> $b['at']);

        return $schedule;
    }

    /**
     * Adds conditions of a site: defaults of its server, children with copies of sockets, replies
     * that stop in their middle, migrations and dumps. With a generator of its own, and not in
     * rounds with a wrong clock.
     *
     * @param list<array<string, mixed>> $schedule
     * @return list<array<string, mixed>>
     */
    private function withSettings(array $schedule, int $number): array
    {
        $this->defaults = $this->glitches = [];
        if (isset($this->options['step']) || $this->round['skew'] !== 0) {
            return $schedule;
        }
        $random = new Random\Randomizer(new Random\Engine\Mt19937($this->seed * 100_003 + $number + 2_000_000_011));
        for ($i = $random->getInt(0, 3); $i > 0; $i--) {
            $name = array_keys(self::DEFAULTS)[$random->getInt(0, count(self::DEFAULTS) - 1)];
            $this->defaults[$name] = self::DEFAULTS[$name][$random->getInt(0, count(self::DEFAULTS[$name]) - 1)];
            $this->faults["default $name"] = ($this->faults["default $name"] ?? 0) + 1;
        }
        foreach (['worker0', 'worker1', 'reaper0'] as $actor) {
            if ($random->getInt(0, 2) === 0) {
                $this->round['holders'][] = $actor;
            }
        }
        // Where clocks step and the caller's decides, nothing else may delay heartbeats.
        $gentle = $this->clocks !== [] && $this->round['clock'] === 'caller';
        $kinds = $gentle ? [] : ['stall', 'stall', 'alter table', 'alter table', 'lock tables'];
        if ($this->clocks !== []) {
            array_push($kinds, 'clock glitch worker', 'clock glitch worker');
        }
        for ($i = $random->getInt(0, 3); $i > 0; $i--) {
            $schedule[] = ['at' => $random->getInt(200, self::WINDOW_MS), 'kind' => $kinds[$random->getInt(0, count($kinds) - 1)], 'which' => $random->getInt(0, 5), 'size' => $random->getInt(0, 1000)];
        }
        usort($schedule, fn(array $a, array $b): int => $a['at'] <=> $b['at']);

        return $schedule;
    }

    /** Sets the round's defaults, and resets all others, for sessions that begin from now on. */
    private function setDefaults(): void
    {
        foreach (array_keys($this->site->nodes) as $index) {
            for ($until = hrtime(true) + 30_000_000_000; !$this->setDefaultsOf($index); usleep(50_000)) {
                hrtime(true) < $until || throw new RuntimeException("the defaults could not be set: {$this->refused}");
            }
        }
    }

    private function setDefaultsOf(int $index): bool
    {
        $values = $this->defaults + array_fill_keys(array_keys(self::DEFAULTS), 'DEFAULT');
        $values['init_connect'] = $values['init_connect'] === 'DEFAULT' ? "''" : $values['init_connect'];
        // Lowered by a fault of an earlier round that could not be lifted.
        $values['max_connections'] = '100';
        $set = implode(', ', array_map(fn(string $name, string $value): string => "GLOBAL $name = $value", array_keys($values), $values));

        return $this->quietly(fn(mysqli $link) => $link->query("SET $set"), $index);
    }

    /**
     * Returns the actors' connections on all nodes as soon as they satisfy a condition, or after
     * so many seconds.
     *
     * @return list<array{id: int, command: string, idleMs: int, transaction: bool}>
     */
    private function connections(int $seconds, Closure $right): array
    {
        for ($until = hrtime(true) + $seconds * 1_000_000_000;; usleep(100_000)) {
            $found = [];
            foreach (array_keys($this->site->nodes) as $index) {
                $answered = $this->quietly(function (mysqli $link) use (&$found): void {
                    array_push($found, ...array_map(fn(array $row): array => ['id' => (int) $row['ID'], 'command' => $row['COMMAND'], 'idleMs' => (int) $row['TIME_MS'], 'transaction' => $row['trx_id'] !== null],
                        $link->query("SELECT p.ID, p.COMMAND, p.TIME_MS, t.trx_id FROM information_schema.PROCESSLIST AS p LEFT JOIN information_schema.INNODB_TRX AS t ON t.trx_mysql_thread_id = p.ID
                            WHERE p.USER = '" . Site::ACTOR . "'")->fetch_all(MYSQLI_ASSOC)));
                }, $index);
                if (!$answered) {
                    $found = null;
                    break;
                }
            }
            if ($found !== null && ($right($found) || hrtime(true) > $until)) {
                return $found;
            }
            hrtime(true) < $until + 30_000_000_000 || throw new RuntimeException('the server does not list its connections after the round');
        }
    }

    /**
     * @param array<string, mixed> $fault
     * @param list<array<string, mixed>> $schedule
     */
    private function inject(array $fault, array &$schedule): void
    {
        ['kind' => $kind, 'which' => $which, 'size' => $size] = $fault;
        $then = function (int $after, string $kind) use ($fault, &$schedule): void {
            $schedule[] = ['at' => $fault['at'] + $after, 'kind' => $kind, 'which' => $fault['which'], 'size' => $fault['size']];
            usort($schedule, fn(array $a, array $b): int => $a['at'] <=> $b['at']);
        };
        $lifts = ['continue worker', 'continue reaper', 'start server', 'unlock rows', 'fast', 'go', 'no connection limit', 'start node', 'connect node', 'unlock tables', 'clock glitch over', 'set defaults'];
        if (!in_array($kind, $lifts, true)) {
            $this->faults[$kind] = ($this->faults[$kind] ?? 0) + 1;
        }
        switch ($kind) {
            case 'kill worker':
            case 'kill reaper':
            case 'kill dispatcher':
                $role = substr($kind, 5);
                $actor = $role . ($role === 'dispatcher' ? 0 : $which % ($role === 'worker' ? 3 : 2));
                posix_kill($this->actors[$actor]['pid'], SIGKILL);
                break;
            case 'stop worker':
            case 'stop reaper':
                $role = substr($kind, 5);
                $actor = $role . $which % ($role === 'worker' ? 3 : 2);
                posix_kill($this->actors[$actor]['pid'], SIGSTOP);
                // Longer than the lease, or only for a moment.
                $then($size < 700 ? self::LEASE * 1000 + 500 + $size * 2 : $size, "continue $role");
                break;
            case 'continue worker':
            case 'continue reaper':
                $role = substr($kind, 9);
                posix_kill($this->actors[$role . $which % ($role === 'worker' ? 3 : 2)]['pid'], SIGCONT);
                break;
            case 'clock step worker':
            case 'clock step reaper':
                $role = substr($kind, 11);
                $this->clocks[$role . $which % ($role === 'worker' ? 3 : 2)]->set($size);
                break;
            case 'restart server':
                $this->site->nodes[0]->kill();
                $then(100 + $size, 'start server');
                break;
            case 'start server':
                $this->site->nodes[0]->runs() || $this->site->nodes[0]->start();
                // A site has them in its server's configuration.
                $then(0, 'set defaults');
                break;
            case 'set defaults':
                $this->setDefaultsOf($which % count($this->site->nodes)) || $then(100, 'set defaults');
                break;
            case 'kill node':
            case 'cut node off':
                // One node at a time: two of three are the majority.
                if ($this->server !== 0) {
                    $this->faults[$kind]--;
                    break;
                }
                $this->server = 1 + $which % 3;
                $this->watcher = null;
                $node = $this->site->nodes[$which % 3];
                if ($kind === 'kill node') {
                    $this->countConflicts($which % 3);
                    $node->kill();
                    unset($this->counted['n' . $which % 3]);
                    $then(1500 + $size, 'start node');
                } else {
                    $node->signal(SIGSTOP);
                    // Shorter and longer than the time after which the other nodes exclude it.
                    $then(500 + $size * 5, 'connect node');
                }
                break;
            case 'start node':
            case 'connect node':
                $node = $this->site->nodes[$which % 3];
                // A node under a read lock applies nothing, and the others wait for it.
                $this->dump = null;
                $kind === 'start node' ? $node->start() : $node->signal(SIGCONT);
                $this->site->awaitReady($node);
                $this->server = 0;
                $this->setDefaultsOf($which % 3);
                break;
            case 'kill connections':
                $this->quietly(function (mysqli $link) use ($size): void {
                    foreach ($link->query('SHOW PROCESSLIST')->fetch_all(MYSQLI_ASSOC) as $row) {
                        if (in_array($row['User'], [Site::USER, Site::ACTOR], true) && (int) $row['Id'] !== $link->thread_id && $row['db'] === $this->round['database'] && ($size < 400 || $row['Id'] % 2 === 0)) {
                            try {
                                $link->query("KILL {$row['Id']}");
                            } catch (mysqli_sql_exception) {
                                // The connection has ended by itself.
                            }
                        }
                    }
                }, $which);
                break;
            case 'lock rows':
                $this->locker = null;
                $this->quietly(function (mysqli $link) use ($which): void {
                    $link->query('SET SESSION innodb_lock_wait_timeout = 1');
                    $link->begin_transaction();
                    $uids = implode(', ', array_unique([1 + $which, 1 + ($which * 3) % self::RUNS, self::RUNS]));
                    $link->query("SELECT uid FROM tx_nrllm_agentrun WHERE uid IN ($uids) ORDER BY uid FOR UPDATE");
                    $this->locker = $link;
                }, $which);
                $then(300 + $size * 3, 'unlock rows');
                break;
            case 'unlock rows':
                $this->locker = null;
                break;
            case 'cut':
                $this->toProxy('cut', $which);
                break;
            case 'slow':
                $this->toProxy('slow ' . (5 + intdiv($size, 10)), $which);
                $then(1500, 'fast');
                break;
            case 'fast':
                $this->toProxy('slow 0', $which);
                break;
            case 'hold':
            case 'deaf':
                $this->toProxy($kind, $which);
                $then(200 + $size * 3, 'go');
                break;
            case 'stall':
                $this->toProxy('stall ' . 5 + $size % 200, $which);
                $then(200 + $size * 3, 'go');
                break;
            case 'go':
                $this->toProxy('go', $which);
                break;
            case 'alter table':
                $change = ['ADD COLUMN IF NOT EXISTS queued_at int unsigned NOT NULL DEFAULT 0', 'DROP COLUMN IF EXISTS queued_at', 'ADD KEY IF NOT EXISTS lease (status, lease_expires)', 'DROP KEY IF EXISTS lease'][$which % 4];
                $this->quietly(function (mysqli $link) use ($change): void {
                    $link->query('SET SESSION lock_wait_timeout = 1');
                    $link->query("ALTER TABLE tx_nrllm_agentrun $change");
                }, $which);
                break;
            case 'lock tables':
                $this->dump = null;
                $this->quietly(function (mysqli $link): void {
                    $link->query('SET SESSION lock_wait_timeout = 1');
                    $link->query('FLUSH TABLES WITH READ LOCK');
                    $this->dump = $link;
                }, $which);
                $then(200 + $size * 2, 'unlock tables');
                break;
            case 'unlock tables':
                $this->dump = null;
                break;
            case 'clock glitch worker':
                $host = 'worker' . $which % 3;
                if (!isset($this->glitches[$host])) {
                    $clock = $this->clocks[$host];
                    $this->glitches[$host] = ['before' => $clock->seconds, 'wrong' => $clock->seconds + $this->glitch()];
                    $clock->set($this->glitches[$host]['wrong']);
                    $then(200 + $size, 'clock glitch over');
                }
                break;
            case 'clock glitch over':
                $host = 'worker' . $which % 3;
                // A step in between has set the clock, which ended the glitch.
                if ($this->clocks[$host]->seconds === $this->glitches[$host]['wrong']) {
                    $this->clocks[$host]->set($this->glitches[$host]['before']);
                }
                unset($this->glitches[$host]);
                break;
            case 'connection limit':
                $this->quietly(fn(mysqli $link) => $link->query('SET GLOBAL max_connections = 10'), 0);
                $this->toProxy('cut', $which);
                $then(800 + $size, 'no connection limit');
                break;
            case 'no connection limit':
                for ($i = 0; $i < 200; $i++) {
                    if ($this->quietly(fn(mysqli $link) => $link->query('SET GLOBAL max_connections = 100'), 0)) {
                        break;
                    }
                    // Full, or just starting again: then with the usual limit.
                    $this->toProxy('cut', $which);
                    usleep(50_000);
                }
                break;
            default:
                throw new LogicException($kind);
        }
    }

    /**
     * Seconds of a wrong reading of the clock. With the caller's clock a worker that is killed
     * during it leaves a lease that is longer by so much.
     */
    private function glitch(): int
    {
        return $this->round['clock'] === 'database' ? 365 * 86_400 : 10;
    }

    /** A node counts from its start, so it is read before it is killed and after each round. */
    private function countConflicts(int $index): void
    {
        foreach ($this->site->nodes[$index]->conflicts() ?? [] as $name => $count) {
            $name = substr($name, strlen('wsrep_local_'));
            $before = $this->counted["n$index"][$name] ?? 0;
            // Less than before: the node has restarted by itself.
            $this->conflicts["n$index"][$name] = ($this->conflicts["n$index"][$name] ?? 0) + ($count < $before ? $count : $count - $before);
            $this->counted["n$index"][$name] = $count;
        }
    }

    private function quietly(Closure $do, int $which): bool
    {
        $link = $this->site->nodes[$which % count($this->site->nodes)]->connect($this->round['database']);
        try {
            $link === null || $do($link);

            return $link !== null;
        } catch (mysqli_sql_exception $error) {
            $this->refused = $error->getMessage();

            return false;
        }
    }

    /** @return list<array<string, string|null>>|null */
    private function look(string $database): ?array
    {
        try {
            if ($this->watcher === null) {
                foreach ($this->site->nodes as $index => $node) {
                    // Not by one that is down or cut off.
                    if ($this->server !== $index + 1 && ($this->watcher = $node->connect($database)) !== null) {
                        break;
                    }
                }
                if ($this->watcher === null) {
                    return null;
                }
                // Nodes may lag behind each other: the watcher waits for what is committed
                // anywhere.
                $this->site->cluster && $this->watcher->query('SET SESSION wsrep_sync_wait = 1');
            }

            // A migration may add this column, and drop it, in the middle of a round.
            return array_map(fn(array $row): array => array_diff_key($row, ['queued_at' => 1]), $this->watcher->query('SELECT * FROM tx_nrllm_agentrun ORDER BY uid')->fetch_all(MYSQLI_ASSOC));
        } catch (mysqli_sql_exception) {
            $this->watcher = null;

            return null;
        }
    }

    /** @param array<int, array{uuid: string, payload: string}> $runs */
    private function prepare(string $database, array $runs, int $sync): void
    {
        foreach ($this->site->nodes as $node) {
            if (!$node->runs()) {
                $node->start();
            }
            $this->site->awaitReady($node);
        }
        $this->watcher = null;
        for ($until = hrtime(true) + 60_000_000_000;; usleep(200_000)) {
            try {
                $this->fill($database, $runs);
                break;
            } catch (mysqli_sql_exception $error) {
                // A cluster with a node that is joining delays such statements, and may refuse
                // them: retry from the start.
                in_array($error->getCode(), [1047, 1205, 1213, 2006, 2013], true) && hrtime(true) < $until || throw $error;
            }
        }
        if ($this->site->cluster) {
            foreach ($this->site->nodes as $node) {
                // The node may not have applied the new database yet.
                $other = $node->connect() ?? throw new RuntimeException('a node does not answer before the round');
                $other->query('SET GLOBAL wsrep_sync_wait = ' . $sync);
                $other->query('SET SESSION wsrep_sync_wait = 1');
                for ($until = hrtime(true) + 20_000_000_000;; usleep(20_000)) {
                    try {
                        $other->select_db($database);
                        $other->query('SELECT COUNT(*) FROM tx_nrllm_agentrun');
                        break;
                    } catch (mysqli_sql_exception $error) {
                        hrtime(true) < $until || throw $error;
                    }
                }
            }
        }
    }

    /**
     * The round's database, with its runs.
     *
     * @param array<int, array{uuid: string, payload: string}> $runs
     */
    private function fill(string $database, array $runs): void
    {
        $link = $this->site->nodes[0]->connect() ?? throw new mysqli_sql_exception('the server does not answer before the round', 2006);
        $link->query("DROP DATABASE IF EXISTS $database");
        $link->query("CREATE DATABASE $database CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci");
        $link->select_db($database);
        $sql = preg_replace('/^--.*$|^ *queued_at .*$/m', '', (string) file_get_contents("{$this->top}/examples/schema.sql"));
        foreach (explode(';', $sql) as $statement) {
            trim($statement) === '' || $link->query($statement);
        }
        $insert = $link->prepare("INSERT INTO tx_nrllm_agentrun (uid, uuid, status, queued_request, suspended_state, tstamp, crdate) VALUES (?, ?, 'queued', ?, '', ?, ?)");
        foreach ($runs as $uid => $run) {
            $insert->execute([$uid, $run['uuid'], $run['payload'], time(), time()]);
        }
    }

    private function spawn(string $actor, string $script, int $number): void
    {
        // The third worker uses FFI where the library is given, beside those of the extension.
        $ffi = isset($this->options['library']) && $actor === 'worker2';
        $command = [PHP_BINARY, ...array_merge(...array_map(fn(string $name): array => ['-d', "extension=$name"], explode(' ', getenv('NRLLM_CHAOS_EXTENSIONS') ?: ''))), ...['-d', 'ffi.enable=1'],
            ...$ffi ? [] : ['-d', 'extension=' . $this->options['module']], __DIR__ . "/$script.php", $this->file, $actor, (string) $number];
        $command = array_values(array_filter($command, fn(string $word, int $at): bool => !($word === 'extension=' || ($word === '-d' && ($command[$at + 1] ?? '') === 'extension=')), ARRAY_FILTER_USE_BOTH));
        array_splice($command, 1, 0, '-n');
        $process = proc_open($command, [['file', '/dev/null', 'r'], ['file', "{$this->round['folder']}/output.$actor", 'a'], ['file', "{$this->round['folder']}/output.$actor", 'a']], $pipes, null,
            isset($this->clocks[$actor]) ? $this->clocks[$actor]->environment() : null);
        $this->actors[$actor] = ['process' => $process, 'pid' => proc_get_status($process)['pid'], 'script' => $script, 'number' => $number];
    }

    private function respawn(): void
    {
        foreach ($this->actors as $actor => ['process' => $process, 'script' => $script, 'number' => $number]) {
            if (!proc_get_status($process)['running']) {
                proc_close($process);
                $this->spawn($actor, $script, $number);
            }
        }
    }

    private function endActors(): void
    {
        foreach ($this->actors as ['pid' => $pid]) {
            posix_kill($pid, SIGCONT);
            posix_kill($pid, SIGTERM);
        }
        for ($until = hrtime(true) + 5_000_000_000; hrtime(true) < $until; usleep(20_000)) {
            if (array_filter($this->actors, fn(array $actor): bool => proc_get_status($actor['process'])['running']) === []) {
                break;
            }
        }
        $this->killActors();
    }

    private function killActors(): void
    {
        foreach ($this->actors as ['process' => $process, 'pid' => $pid]) {
            if (proc_get_status($process)['running']) {
                posix_kill($pid, SIGKILL);
            }
            proc_close($process);
        }
        $this->actors = [];
    }

    /** The output of PHP: no actor may end in a warning or a fatal error. */
    public function output(): string
    {
        return implode('', array_map(fn(string $file): string => (string) file_get_contents($file), glob("{$this->round['folder']}/output.*")));
    }

    public function folder(): string
    {
        return $this->round['folder'];
    }
}

$folder = sys_get_temp_dir() . '/nrllm-chaos.' . bin2hex(random_bytes(4));
mkdir($folder, 0755);
$chaos = null;
register_shutdown_function(function () use (&$chaos, $folder): void {
    $chaos?->end();
    Node::killAll();
    exec('rm -rf ' . escapeshellarg($folder));
});
pcntl_async_signals(true);
foreach ([SIGINT, SIGTERM, SIGHUP] as $signal) {
    pcntl_signal($signal, fn() => exit(130));
}
$began = hrtime(true);
$site = new Site($folder, $cluster);
$chaos = new Chaos($site, $seed, $options, dirname(__DIR__, 2));
printf("%s on MariaDB %s, seed %d%s\n", $cluster ? 'three nodes' : 'one server', $site->version, $seed, (isset($options['library']) ? ', one worker of three over FFI' : '') . (isset($options['skew']) ? ", reapers {$options['skew']} s ahead" : '') . (isset($options['step']) ? ", clocks stepped by {$options['step']} s" : ''));

$totals = ['checked' => [], 'seen' => [], 'errors' => [], 'failed' => []];
$played = 0;
// After every round, so that a report exists also when a later round ends the harness.
$report = function () use (&$totals, &$played, $chaos, $site, $seed, $from, $cluster, $options, $began, $out): void {
    ksort($totals['checked']);
    ksort($totals['seen']);
    ksort($totals['errors']);
    ksort($chaos->faults);
    $facts = ['seed' => $seed, 'from' => $from, 'rounds' => $played, 'cluster' => $cluster, 'ffi' => isset($options['library']), 'step' => isset($options['step']) ? (int) $options['step'] : null, 'server' => $site->version, 'seconds' => round((hrtime(true) - $began) / 1e9, 1), 'faults' => $chaos->faults] + $totals
        + ($cluster ? ['conflicts' => $chaos->conflicts] : []);
    @mkdir($out, 0755, true);
    file_put_contents("$out/report-$seed-$from" . ($cluster ? '-cluster' : '') . '.json', json_encode($facts, JSON_PRETTY_PRINT | JSON_THROW_ON_ERROR) . "\n");
};
$started = hrtime(true);
for ($number = $from; $played < $rounds && hrtime(true) - $started < $seconds * 1_000_000_000; $number++) {
    $since = hrtime(true);
    $checker = $chaos->play($number);
    $played++;
    $output = trim($chaos->output());
    if ($output !== '') {
        $checker->violations[] = "PHP is quiet: $output";
    }
    $checker->checked['PHP is quiet'] = 1;
    $shown = [];
    exec(implode(' ', array_map(escapeshellarg(...), [PHP_BINARY, '-n', dirname(__DIR__) . '/secrets.php', $chaos->folder()])), $shown);
    $checker->checked['no password is shown'] = 1;
    if ($shown !== []) {
        $checker->violations[] = 'no password is shown: ' . implode(', ', $shown);
    }
    foreach (['checked', 'seen'] as $what) {
        foreach ($checker->$what as $key => $count) {
            $totals[$what][$key] = ($totals[$what][$key] ?? 0) + $count;
        }
    }
    foreach ($checker->errors as $code => $counts) {
        foreach ($counts as $whose => $count) {
            $totals['errors'][$code][$whose] = ($totals['errors'][$code][$whose] ?? 0) + $count;
        }
    }
    if ($checker->violations !== []) {
        $totals['failed'][$number] = array_slice(array_values(array_unique($checker->violations)), 0, 20);
        $kept = "$out/failed-$seed-$number";
        @mkdir($out, 0755, true);
        exec('rm -rf ' . escapeshellarg($kept) . ' && cp -R ' . escapeshellarg($chaos->folder()) . ' ' . escapeshellarg($kept));
        printf("FAILED round %d (%s):\n  %s\n", $number, $kept, implode("\n  ", $totals['failed'][$number]));
    } elseif (!isset($options['quiet'])) {
        printf("round %d: %.1f s, %d attempts\n", $number, (hrtime(true) - $since) / 1e9, $checker->seen['claimed'] ?? 0);
    }
    exec('rm -rf ' . escapeshellarg($chaos->folder()));
    $report();
    if (count($totals['failed']) >= 10) {
        echo "too many failures: stopped\n";
        break;
    }
}
$report();
$list = fn(array $counts): string => implode(', ', array_map(fn(string $key, int $count): string => "$key $count", array_keys($counts), $counts));
echo "faults: ", $list($chaos->faults), "\nseen: ", $list($totals['seen']), "\nchecked: ", $list($totals['checked']), "\n";
echo 'errors: ', implode(', ', array_map(fn(int $code, array $counts): string => "$code (module {$counts['module']}, PHP {$counts['PHP']})", array_keys($totals['errors']), $totals['errors'])), "\n";
if ($cluster) {
    ksort($chaos->conflicts);
    echo 'conflicts counted by the nodes: ', implode(', ', array_map(fn(string $node, array $counts): string => "$node (" . $list($counts) . ')', array_keys($chaos->conflicts), $chaos->conflicts)), "\n";
}
printf("again: bin/chaos%s%s --seed %d --from %d --rounds %d\n", $cluster ? ' --cluster' : '', isset($options['step']) ? " --step {$options['step']}" : '', $seed, $from, $played);
printf("%d passed, %d failed\n", $played - count($totals['failed']), count($totals['failed']));
exit($totals['failed'] === [] && $played > 0 ? 0 : 1);
