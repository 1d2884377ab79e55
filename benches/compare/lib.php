<?php

declare(strict_types=1);

namespace Bench;

// Shared by the scripts of the comparison: the server, the run table, a variant in its process,
// statistics.

require_once dirname(__DIR__, 2) . '/phpt/inc/schema.inc';

const OWNER = 'bench:host-name-of-a-worker:4711:0123456789abcdef';
const VARIANTS = [
    'doctrine' => 'a  Doctrine QueryBuilder, row by row (as TYPO3)',
    'plain' => 'b  PDO, prepared, set-based',
    'module' => 'c  this module',
    'ffi' => 'd  FFI bridge',
    'limit' => 'e  libmariadb from C (the limit)',
];

/** The server of this bench, which bin/bench has started and named in the environment. */
final class Server
{
    public readonly \mysqli $link;
    public readonly string $socket;
    public readonly string $user;
    public readonly string $password;

    public function __construct()
    {
        foreach (['SOCKET', 'USER', 'PASSWORD'] as $part) {
            if (getenv("NRLLM_TEST_$part") === false) {
                throw new \LogicException("NRLLM_TEST_$part is not set: run this by bin/bench, which starts a private server");
            }
        }
        [$this->socket, $this->user, $this->password] = [getenv('NRLLM_TEST_SOCKET'), getenv('NRLLM_TEST_USER'), getenv('NRLLM_TEST_PASSWORD')];
        mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
        $this->link = $this->connect();
    }

    public function connect(?string $database = null): \mysqli
    {
        $link = mysqli_init();
        $link->real_connect('localhost', $this->user, $this->password, $database, 0, $this->socket);
        $link->set_charset('utf8mb4');

        return $link;
    }

    public function run(string $sql): void
    {
        $this->link->query($sql);
    }

    public function value(string $sql): string
    {
        return (string) $this->link->query($sql)->fetch_row()[0];
    }

    /**
     * Creates a database with the run table; its name is unique, so that benches may run side by
     * side.
     */
    public function database(string $purpose, array $options = []): string
    {
        $name = sprintf('bench_%s_%d', $purpose, getmypid());
        $this->run("DROP DATABASE IF EXISTS `$name`");
        $this->run("CREATE DATABASE `$name` CHARACTER SET utf8mb4");
        $this->link->select_db($name);
        $this->run(run_table_sql($options + ['queuedAt' => false]));

        return $name;
    }

    /** @return array<string, int> counters of the whole server */
    public function counters(): array
    {
        $counters = [];
        $wanted = "'Questions','Com_stmt_prepare','Com_stmt_execute','Com_stmt_close','Bytes_received','Bytes_sent','Innodb_row_lock_waits','Innodb_row_lock_time',"
            . "'Innodb_deadlocks','Innodb_data_fsyncs','Innodb_os_log_written','Binlog_bytes_written','wsrep_replicated_bytes','Innodb_buffer_pool_read_requests','Innodb_pages_created'";
        foreach ($this->link->query("SHOW GLOBAL STATUS WHERE Variable_name IN ($wanted)") as $row) {
            $counters[$row['Variable_name']] = (int) $row['Value'];
        }

        return $counters;
    }

    /**
     * Waits until the server has purged the remains of the last measurement, so that the next one
     * is not slowed down.
     */
    public function awaitIdle(): void
    {
        $until = microtime(true) + 20;
        while (microtime(true) < $until && (int) $this->value("SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Innodb_history_list_length'") > 50) {
            usleep(20_000);
        }
    }
}

/** The share of reading the counters in the counters. */
function counters_between(array $before, array $after, array $own): array
{
    $between = [];
    foreach ($after as $name => $value) {
        $between[$name] = $value - ($before[$name] ?? 0) - ($own[$name] ?? 0);
    }

    return $between;
}

/** A variant in a separate process. */
final class Worker
{
    /** @var resource */
    private $process;
    /** @var array<int, resource> */
    private array $pipes = [];

    /** @param list<string> $wrapper What the command is run by (valgrind). */
    public function __construct(public readonly string $variant, Server $server, string $database, array $wrapper = [], ?string $errors = null)
    {
        $where = [$server->socket, $server->user, $server->password, $database, 'tx_nrllm_agentrun'];
        $command = $variant === 'limit'
            ? [getenv('NRLLM_BENCH_LIMIT'), ...$where]
            : [...self::php($variant), __DIR__ . '/worker.php', $variant, ...$where];
        $this->process = proc_open([...$wrapper, ...$command], [['pipe', 'r'], ['pipe', 'w'], ...($errors === null ? [] : [['file', $errors, 'w']])], $this->pipes);
        $this->line('ready');
    }

    /** Returns the PHP command as a site runs it: opcache on, without this machine's php.ini. */
    public static function php(string $variant, bool $opcache = true): array
    {
        $command = [PHP_BINARY, '-n', '-d', 'memory_limit=-1'];
        if ($opcache) {
            $load = getenv('NRLLM_BENCH_OPCACHE') === 'built in' ? [] : ['-d', 'zend_extension=opcache'];
            array_push($command, ...$load, ...['-d', 'opcache.enable_cli=1', '-d', 'opcache.jit=off']);
        }
        $extensions = array_filter(explode(' ', (string) getenv('NRLLM_BENCH_EXTENSIONS')));
        if ($variant === 'ffi') {
            array_push($extensions, ...array_filter(explode(' ', (string) getenv('NRLLM_BENCH_FFI_EXTENSIONS'))));
        }
        if ($variant === 'module') {
            $extensions[] = getenv('NRLLM_MODULE');
        }
        foreach ($extensions as $extension) {
            array_push($command, '-d', "extension=$extension");
        }

        return $command;
    }

    /**
     * Returns the answer to a command.
     *
     * @return array{done: int, n: int, p50: float, total: float, user: int, system: int, peak: int}
     */
    public function ask(string $command): array
    {
        $this->send($command);

        return $this->receive();
    }

    public function send(string $command): void
    {
        fwrite($this->pipes[0], $command . "\n");
        fflush($this->pipes[0]);
    }

    public function hasAnswered(): bool
    {
        $read = [$this->pipes[1]];
        $none = null;

        return stream_select($read, $none, $none, 0) === 1;
    }

    public function receive(): array
    {
        return json_decode($this->line(null), true, flags: JSON_THROW_ON_ERROR);
    }

    private function line(?string $expected): string
    {
        $line = fgets($this->pipes[1]);
        if ($line === false || ($expected !== null && trim($line) !== $expected)) {
            throw new \RuntimeException("variant $this->variant ended or said: " . var_export($line, true));
        }

        return $line;
    }

    public function close(): void
    {
        fwrite($this->pipes[0], "close\n");
        fclose($this->pipes[0]);
        stream_get_contents($this->pipes[1]);
        fclose($this->pipes[1]);
        if (($code = proc_close($this->process)) !== 0) {
            throw new \RuntimeException("variant $this->variant ended with exit code $code");
        }
    }
}

/** Returns the variants that can run here. */
function variants(): array
{
    $variants = VARIANTS;
    if (getenv('NRLLM_BENCH_FFI') !== '1') {
        unset($variants['ffi']);
    }

    return $variants;
}

function median(array $values): float
{
    sort($values);
    $count = count($values);

    return $count % 2 ? (float) $values[intdiv($count, 2)] : ($values[$count / 2 - 1] + $values[$count / 2]) / 2;
}

function percentile(array $values, float $share): float
{
    sort($values);

    return (float) $values[min(count($values) - 1, (int) floor(count($values) * $share))];
}

/**
 * Fills the table with runs, generated by SQL on the server. `columns` are expressions over `seq`,
 * from 1. The uids are consecutive, unlike those that the server assigns to several rows at once.
 */
function fill(Server $server, int $count, array $columns, int $step = 20_000): void
{
    $columns += [
        'uid' => $server->value('SELECT COALESCE(MAX(uid), 0) FROM tx_nrllm_agentrun') . ' + seq',
        'uuid' => "LOWER(CONCAT(LPAD(HEX(seq), 8, '0'), '-0000-4000-8000-', LPAD(HEX(seq * 7919), 12, '0')))",
        'configuration_uid' => '1', 'configuration_identifier' => "'assistant'", 'be_user' => '1 + seq % 50',
        'crdate' => '1700000000 + seq', 'tstamp' => '1700000000 + seq',
    ];
    for ($from = 1; $from <= $count; $from += $step) {
        $to = min($count, $from + $step - 1);
        $server->run('INSERT INTO tx_nrllm_agentrun (' . implode(', ', array_keys($columns)) . ') SELECT ' . implode(', ', $columns) . " FROM seq_{$from}_to_$to");
    }
}

/** Returns a payload as nr_llm stores it, sealed: 20 KiB that do not compress. */
const PAYLOAD = "CONCAT('nrv1:', REPEAT(MD5(seq), 640))";

function note(string $text): void
{
    fwrite(STDERR, date('H:i:s') . " $text\n");
}

/** Runs one measurement and reads the server's counters before and after it. */
function sample(Server $server, Worker $worker, string $command, array $own): array
{
    $before = $server->counters();
    $answer = $worker->ask($command);
    $between = counters_between($before, $server->counters(), $own);
    $n = max(1, $answer['n']);

    return [
        'wall' => $answer['p50'] / 1_000, 'mean' => $answer['total'] / 1_000 / $n,
        'cpu_user' => $answer['user'] / $n, 'cpu_system' => $answer['system'] / $n,
        'statements' => $between['Questions'] / $n, 'round_trips' => ($between['Questions'] + $between['Com_stmt_prepare']) / $n,
        'sent' => $between['Bytes_received'] / $n, 'received' => $between['Bytes_sent'] / $n,
        'fsyncs' => $between['Innodb_data_fsyncs'] / $n, 'redo' => $between['Innodb_os_log_written'] / $n,
        'log' => ($between['Binlog_bytes_written'] ?? 0) / $n,
        'peak' => $answer['peak'], 'done' => $answer['done'],
    ];
}

/**
 * Summarises the samples of one variant: medians, and the peak memory of the first sample, when the
 * process was fresh.
 */
function summary(array $samples): array
{
    $summary = ['samples' => count($samples)];
    foreach (array_keys($samples[0]) as $name) {
        $summary[$name] = median(array_column($samples, $name));
    }
    $summary['wall_best'] = min(array_column($samples, 'wall'));
    $summary['peak'] = $samples[0]['peak'];

    return $summary;
}

/**
 * Returns the variants in another order for each round, so that none always profits from the
 * server's caches after the one before.
 */
function in_turn(array $names, int $round): array
{
    return [...array_slice($names, $round % count($names)), ...array_slice($names, 0, $round % count($names))];
}
