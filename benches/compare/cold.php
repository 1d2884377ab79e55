<?php

declare(strict_types=1);

namespace Bench;

// Measures a process's first call, which has to connect: of a cron process, fresh each time, and of
// a request to PHP-FPM, whose process is warm and whose connection ends with the request. The
// variants take turns; a PDO connection without any settings of its own is beside the extension.
//   php cold.php OUT.json [quick] [PHP-FPM]      writes the results; without PHP-FPM's path, the
//                                                requests are left out

require_once __DIR__ . '/lib.php';
require_once __DIR__ . '/counts.php';
require_once dirname(__DIR__, 2) . '/tests/fpm/fastcgi.php';

/** A PHP-FPM master with one worker, configured as the processes of a variant. */
final class Fpm
{
    private readonly string $folder;
    /** @var resource */
    private $process;

    public function __construct(string $binary, string $variant)
    {
        $this->folder = sys_get_temp_dir() . '/nrllm-cold-' . getmypid() . "-$variant";
        mkdir($this->folder, 0o700);
        file_put_contents("$this->folder/fpm.conf", implode("\n", [
            '[global]', 'daemonize = no', "error_log = $this->folder/log", '[www]', "listen = $this->folder/socket",
            ...(posix_geteuid() === 0 ? ['user = root', 'group = root'] : []), 'pm = static', 'pm.max_children = 1', 'clear_env = no', '',
        ]));
        $command = [$binary, '-F', ...(posix_geteuid() === 0 ? ['-R'] : []), '-y', "$this->folder/fpm.conf", ...array_slice(Worker::php($variant), 1)];
        $pipes = [];
        $this->process = proc_open($command, [['file', '/dev/null', 'r'], ['file', '/dev/null', 'w'], ['file', "$this->folder/errors", 'w']], $pipes);
        for ($until = microtime(true) + 20; !file_exists("$this->folder/socket"); usleep(10_000)) {
            if (microtime(true) > $until) {
                throw new \RuntimeException("PHP-FPM does not start: see $this->folder");
            }
        }
    }

    /** @param list<string> $arguments */
    public function call(array $arguments): string
    {
        $lines = new \FastCgi("$this->folder/socket", __DIR__ . '/cold_call.php', ['arguments' => $arguments]);

        return implode("\n", iterator_to_array($lines->lines(), false));
    }

    public function close(): void
    {
        proc_terminate($this->process);
        proc_close($this->process);
        array_map(unlink(...), glob("$this->folder/*"));
        rmdir($this->folder);
    }
}

/**
 * Runs one cold call and returns its time, the time of the whole process or request, and the
 * server's counters.
 *
 * @param callable(): string $call
 */
function cold_sample(Server $server, callable $call, array $own): array
{
    $before = $server->counters();
    $start = hrtime(true);
    $answer = json_decode($call(), true, flags: JSON_THROW_ON_ERROR);
    $whole = (hrtime(true) - $start) / 1_000;
    // The server counts a connection's last statements when it has seen its end.
    usleep(2_000);
    $between = counters_between($before, $server->counters(), $own);
    if ($answer['done'] !== true) {
        throw new \RuntimeException('the cold call renewed nothing');
    }

    return ['call' => $answer['ns'] / 1_000, 'whole' => $whole, 'sent' => $between['Bytes_received'], 'received' => $between['Bytes_sent']];
}

/**
 * Returns the round trips of a cold call after the handshake, counted by a relay: those of the call
 * minus those of a connection without a statement.
 */
function cold_trips(Server $server, callable $command): int
{
    $listen = sys_get_temp_dir() . '/nrllm-cold-' . getmypid() . '.sock';
    $process = proc_open([PHP_BINARY, '-n', __DIR__ . '/cold_proxy.php', $listen, $server->socket], [1 => ['pipe', 'w']], $pipes);
    fgets($pipes[1]);
    $trips = [];
    foreach (['connect', null] as $variant) {
        shell_exec($command($variant, $listen));
        $trips[] = (int) fgets($pipes[1]);
    }
    proc_terminate($process);
    proc_close($process);
    unlink($listen);

    return $trips[1] - $trips[0];
}

$out = $argv[1];
$arguments = array_slice($argv, 2);
$rounds = in_array('quick', $arguments, true) ? 15 : 60;
$fpm = array_values(array_diff($arguments, ['quick']))[0] ?? '';
$load = round(sys_getloadavg()[0], 1);
$server = new Server();
$own = counters_between($server->counters(), $server->counters(), []);
$database = $server->database('cold');
fill($server, 2_000, ['status' => "'completed'", 'finished_at' => '1700000100 + seq']);
$uid = held_run($server);
$names = array_values(array_diff(array_keys(variants()), ['doctrine', 'limit']));
$pools = [];
foreach ($fpm === '' ? [] : $names as $variant) {
    $pools[$variant] = new Fpm($fpm, $variant);
}
$command_of = static fn (string $variant, array $call): string => implode(' ', array_map(escapeshellarg(...), [...Worker::php($variant), __DIR__ . '/cold_call.php', ...$call]));
$trips = [];
foreach ($names as $variant) {
    $trips[$variant] = cold_trips($server, static fn (?string $other, string $socket): string
        => $command_of($variant, [$other ?? $variant, $socket, $server->user, $server->password, $database, (string) $uid, OWNER, '1800000000']));
}
$samples = [];
note('cold calls');
for ($round = -1; $round < $rounds; $round++) {
    foreach (in_turn($names, $round + 1) as $variant) {
        $call = [$variant, $server->socket, $server->user, $server->password, $database, (string) $uid, OWNER, (string) (1_800_000_000 + $round)];
        $command = $command_of($variant, $call);
        $ways = ['cron process' => static fn (): string => (string) shell_exec($command)];
        if ($pools !== []) {
            $ways['FPM request'] = static fn (): string => $pools[$variant]->call($call);
        }
        foreach ($ways as $way => $run) {
            $sample = cold_sample($server, $run, $own);
            // The first round fills caches.
            if ($round >= 0) {
                $samples[$way][$variant][] = $sample;
            }
        }
    }
}
foreach ($pools as $pool) {
    $pool->close();
}
$server->run("DROP DATABASE `$database`");
$medians = static fn (array $samples): array => array_combine(array_keys($samples[0]), array_map(static fn (string $name): float => median(array_column($samples, $name)), array_keys($samples[0])));
$results = [
    'about' => ['date' => date('Y-m-d'), 'cores' => (int) shell_exec('nproc'), 'load' => $load, 'php' => PHP_VERSION, 'server' => $server->value('SELECT VERSION()'), 'rounds' => $rounds],
    'round trips' => $trips,
    'calls' => array_map(static fn (array $variants): array => array_map($medians, $variants), $samples),
];
file_put_contents($out, json_encode($results, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_THROW_ON_ERROR) . "\n");
