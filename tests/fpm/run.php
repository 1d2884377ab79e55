<?php

declare(strict_types=1);

/**
 * Kept leases under a real php-fpm: a master and two workers, 50 requests that end in every way, a
 * reload and two kinds of stop.
 *   php run.php PHP-FPM MODULE TEMPORARY-FOLDER
 * Prints a line a check, and the closing line.
 */

require dirname(__DIR__, 2) . '/phpt/inc/db.inc';
require __DIR__ . '/fastcgi.php';

[, $binary, $module, $folder] = $argv;
$passed = $failed = 0;
function expect(string $label, bool $holds, string $found = ''): void
{
    global $passed, $failed;
    $holds ? $passed++ : $failed++;
    echo $holds ? "ok      $label\n" : "FAILED  $label" . ($found === '' ? '' : ": $found") . "\n";
}
function now(): float
{
    return hrtime(true) / 1e9;
}
function wait_for(callable $holds, float $seconds = 20): bool
{
    for ($end = now() + $seconds; !$holds();) {
        if (now() > $end) {
            return false;
        }
        usleep(2000);
    }
    return true;
}
function alive(int $pid): bool
{
    // A zombie is gone: only its parent has not asked yet.
    $status = @file_get_contents("/proc/$pid/status");
    return $status !== false && !preg_match('/^State:\s+[ZX]/m', $status);
}
function children(int $pid): array
{
    return array_map('intval', preg_split('/ /', (string) @file_get_contents("/proc/$pid/task/$pid/children"), -1, PREG_SPLIT_NO_EMPTY));
}
function threads(int $pid): int
{
    return count((array) @scandir("/proc/$pid/task")) - 2;
}

$db = new TestDb();
/** A master with two workers. */
final class Fpm
{
    public readonly int $pid;
    private readonly mixed $process;

    public function __construct(private readonly string $socket, string $binary, string $module, string $folder, TestDb $db)
    {
        file_put_contents("$folder/fpm.conf", implode("\n", [
            '[global]', 'daemonize = no', "error_log = $folder/fpm.log", 'process_control_timeout = 10s', '[www]', "listen = $socket",
            ...(posix_geteuid() === 0 ? ['user = root', 'group = root'] : []),
            'pm = static', 'pm.max_children = 2', 'clear_env = no', 'catch_workers_output = yes', '',
        ]));
        $environment = getenv();
        $environment['NRLLM_FPM_CONNECTION'] = json_encode($db->connection(via: 'tcp'));
        $command = [$binary, '-n', '-F', ...(posix_geteuid() === 0 ? ['-R'] : []), '-y', "$folder/fpm.conf", '-d', "extension=$module", '-d', 'display_errors=0'];
        $pipes = [];
        $this->process = proc_open($command, [['file', '/dev/null', 'r'], ['file', "$folder/fpm.out", 'a'], ['file', "$folder/fpm.out", 'a']], $pipes, null, $environment);
        $this->pid = proc_get_status($this->process)['pid'];
        wait_for(fn (): bool => file_exists($this->socket) && count($this->workers()) === 2);
    }

    public function workers(): array
    {
        return children($this->pid);
    }

    public function request(string $what, array $query = []): FastCgi
    {
        return new FastCgi($this->socket, __DIR__ . '/request.php', ['what' => $what] + $query);
    }

    /** Sends it a signal, and answers within how many seconds it and its workers ended. */
    public function stop(int $signal): float
    {
        $all = [$this->pid, ...$this->workers()];
        $start = now();
        posix_kill($this->pid, $signal);
        if (!wait_for(static fn (): bool => array_filter($all, alive(...)) === [])) {
            array_map(static fn (int $pid): bool => posix_kill($pid, SIGKILL), array_filter($all, alive(...)));
            return INF;
        }
        $took = now() - $start;
        proc_close($this->process);
        return $took;
    }
}
$start = static fn (): Fpm => new Fpm("$folder/fpm.sock", $binary, $module, $folder, $db);
$sessions = static fn (): int => (int) $db->value('SELECT COUNT(*) FROM information_schema.processlist WHERE db = ? AND id <> CONNECTION_ID()', [$db->name]);
$run = static fn (): int => $db->running(time() + 100);

$fpm = $start();
expect('a master and two workers, one thread each', count($fpm->workers()) === 2 && array_sum(array_map(threads(...), [$fpm->pid, ...$fpm->workers()])) === 3);
$kinds = ['plain', 'keep', 'busy', 'exit', 'lost', 'busy', 'fatal', 'many', 'busy', 'memory', 'static', 'lost', 'busy'];
$slowest = 0.0;
$wrong = [];
$interrupted = $pids = [];
for ($i = 0; $i < 50; $i++) {
    $what = $kinds[$i % count($kinds)];
    $began = now();
    // At every moment between two heartbeats.
    $lines = iterator_to_array($fpm->request($what, ['uid' => $run(), 'after' => 85 + $i])->lines(), false);
    // The request has ended: its shutdown too.
    $slowest = max($slowest, now() - $began);
    $answer = json_decode((string) ($lines[0] ?? ''), true);
    $pid = (int) ($answer['pid'] ?? 0);
    $pids[$pid] = true;
    if ($answer === null || in_array(null, $lines, true)) {
        $wrong[] = "$what: no answer";
    } elseif (threads($pid) !== 1) {
        $wrong[] = "$what: " . threads($pid) . ' threads after it';
    } elseif ($what === 'busy' && $answer['interrupted'] !== false) {
        $wrong[] = "$what: " . $answer['interrupted'];
    } elseif (isset($answer['state']) && $answer['state'] !== 'held') {
        $wrong[] = "$what: " . $answer['state'];
    } elseif ($what !== 'busy' && $what !== 'plain' && $what !== 'lost' && $answer['threads'] !== 2) {
        $wrong[] = "$what: " . $answer['threads'] . ' threads in it';
    }
    if ($what === 'lost') {
        $interrupted[] = $answer['interrupted'] ?? null;
    }
}
expect('50 requests: each answers, is held while it keeps, and leaves one thread and no interrupt', $wrong === [], implode('; ', $wrong));
expect('a loss is thrown within its own request', array_filter($interrupted) !== [], json_encode($interrupted));
expect('no request is slow', $slowest < 3, "$slowest s");
expect('both workers took part or one did all, none died', count(array_diff(array_keys($pids), $fpm->workers())) === 0);
expect('no connection is left', wait_for(static fn (): bool => $sessions() === 0));
// A heartbeat that is still sent would be seen here.
$leases = static fn (): string => (string) $db->value('SELECT GROUP_CONCAT(lease_expires ORDER BY uid) FROM tx_nrllm_agentrun');
$before = $leases();
usleep(400_000);
expect('no heartbeat after the requests', $leases() === $before);

// Two at once.
$both = [$fpm->request('long', ['uid' => $run()]), $fpm->request('long', ['uid' => $run()])];
$answers = array_map(static fn (FastCgi $request): array => array_map(static fn (?string $line): ?array => json_decode((string) $line, true), iterator_to_array($request->lines(), false)), $both);
expect('two workers keep at the same time', $answers[0][0]['pid'] !== $answers[1][0]['pid'] && $answers[0][1]['state'] === 'held' && $answers[1][1]['state'] === 'held',
    json_encode($answers));

// Reload, with leases kept.
$old = $fpm->workers();
$long = $fpm->request('long', ['uid' => $run()]);
$lines = $long->lines();
$first = json_decode((string) $lines->current(), true);
$began = now();
posix_kill($fpm->pid, SIGUSR2);
$lines->next();
$last = json_decode((string) $lines->current(), true);
expect('a request with a kept lease outlives the reload', ($first['pid'] ?? 0) === ($last['pid'] ?? 1) && $last['state'] === 'held', json_encode([$first, $last]));
while ($lines->valid()) {
    $lines->next();
}
expect('the old workers are gone, in time', wait_for(static fn (): bool => array_filter($old, alive(...)) === []) && now() - $began < 8, (now() - $began) . ' s');
expect('new workers are there', wait_for(static fn (): bool => count($fpm->workers()) === 2 && array_intersect($old, $fpm->workers()) === []));
$answer = json_decode((string) iterator_to_array($fpm->request('keep', ['uid' => $run()])->lines(), false)[0], true);
expect('and keep leases', $answer['state'] === 'held' && $answer['heartbeats'] >= 2 && in_array($answer['pid'], $fpm->workers(), true), json_encode($answer));

// Stop, with leases kept.
$lines = $fpm->request('long', ['uid' => $run()])->lines();
$lines->current();
$took = $fpm->stop(SIGQUIT);
expect('a graceful stop waits for the request and ends', $took < 5, "$took s");
$lines->next();
$last = json_decode((string) $lines->current(), true);
expect('which was held to its end', ($last['state'] ?? null) === 'held', json_encode($last));
expect('no connection is left', wait_for(static fn (): bool => $sessions() === 0));

$fpm = $start();
$lines = $fpm->request('long', ['uid' => $run()])->lines();
$lines->current();
$took = $fpm->stop(SIGTERM);
expect('a quick stop does not wait for it', $took < 2, "$took s");
expect('no connection is left', wait_for(static fn (): bool => $sessions() === 0));

$log = preg_grep('/SIGSEGV|SIGABRT|SIGBUS|panicked|exited on signal (?!15)/', explode("\n", file_get_contents("$folder/fpm.log") . file_get_contents("$folder/fpm.out")));
expect('nothing crashed', $log === [], implode("\n", $log));
echo "$passed passed, $failed failed\n";
exit($failed === 0 ? 0 : 1);
