<?php

declare(strict_types=1);

namespace Bench;

require_once __DIR__ . '/lib.php';

/**
 * Counts user instructions and system calls of operations by valgrind's callgrind, which other
 * load does not affect. One process runs them all, because most of its time is its start. Each
 * operation runs a few times, which prepares it, a few times again, and many times. The difference
 * of the last two excludes reading and answering a command.
 *
 * @param array<string, array{string, int, int}> $operations By name: the command, with `%d` for the
 *        number of times, and what few and many are.
 * @return array<string, array{instructions: float, syscalls: float, kinds: array<string, float>}>
 */
function count_operations(Server $server, string $database, string $variant, array $operations): array
{
    $folder = sys_get_temp_dir() . '/nrllm-counts.' . bin2hex(random_bytes(6));
    mkdir($folder);
    // A boundary is a call of getppid(), which nothing else here makes: callgrind starts a new
    // profile at each, and the log of system calls names it.
    $callgrind = ['valgrind', '--tool=callgrind', "--callgrind-out-file=$folder/profile", '--dump-before=getppid', '--trace-syscalls=yes'];
    $worker = new Worker($variant, $server, $database, $callgrind, "$folder/log");
    foreach ($operations as [$command, $few, $many]) {
        foreach ([$few, $few, $many] as $n) {
            $worker->ask('boundary');
            $answer = $worker->ask(sprintf($command, $n));
            if ($answer['done'] !== $n && !str_contains($command, 'worker:other')) {
                throw new \RuntimeException("$variant: '$command' did {$answer['done']} of $n");
            }
        }
    }
    $worker->ask('boundary');
    $worker->close();
    $log = file_get_contents("$folder/log");
    // The first part is the start of the process, and the last one its end.
    $parts = array_slice(preg_split('/^SYSCALL\[\d+,\d+\]\(\s*\d+\) (?:sys_)?getppid\b.*/m', $log), 1, -1);
    if (count($parts) !== 3 * count($operations)) {
        throw new \RuntimeException("$variant: " . count($parts) . " parts in valgrind's log:\n" . substr($log, -2000));
    }
    $runs = [];
    foreach ($parts as $index => $part) {
        $profile = file_get_contents("$folder/profile." . ($index + 2));
        preg_match('/^totals: (\d+)$/m', $profile, $match) || throw new \RuntimeException("valgrind counted nothing:\n" . substr($profile, 0, 2000));
        preg_match_all('/^SYSCALL\[\d+,\d+\]\(\s*\d+\) (?:sys_)?(\w+)/m', $part, $calls);
        $runs[] = ['instructions' => (int) $match[1], 'kinds' => array_count_values($calls[1])];
    }
    array_map(unlink(...), glob("$folder/*"));
    rmdir($folder);
    $results = [];
    foreach (array_keys($operations) as $index => $name) {
        [, $few, $many] = $operations[$name];
        [, $first, $second] = array_slice($runs, 3 * $index, 3);
        $per = static fn (int $less, int $more): float => ($more - $less) / ($many - $few);
        $kinds = [];
        foreach ($second['kinds'] as $kind => $calls) {
            $each = $per($first['kinds'][$kind] ?? 0, $calls);
            // Occasional calls (growing a buffer) are not counted for the operation, and reading a
            // clock is no system call outside valgrind (vDSO).
            if ($each >= 0.5 && !in_array($kind, ['clock_gettime', 'gettimeofday', 'time'], true)) {
                $kinds[$kind] = round($each, 2);
            }
        }
        $results[$name] = ['instructions' => round($per($first['instructions'], $second['instructions'])), 'syscalls' => array_sum($kinds), 'kinds' => $kinds];
    }

    return $results;
}

/**
 * Delays each write of the server by a millisecond, so that the client waits for every reply.
 * Otherwise the load of the machine decides how often a client polls for a reply and whether it
 * waits at all.
 */
function slow_writes(Server $server): void
{
    $server->run('CREATE TRIGGER slow_writes BEFORE UPDATE ON tx_nrllm_agentrun FOR EACH ROW DO SLEEP(0.001)');
}

function fast_writes(Server $server): void
{
    $server->run('DROP TRIGGER slow_writes');
}

/** Creates a run that the bench's owner holds. */
function held_run(Server $server): int
{
    $server->run("INSERT INTO tx_nrllm_agentrun (uuid, status, claimed_by, lease_expires, queued_request) VALUES (UUID(), 'running', '" . OWNER . "', 1900000000, 'x')");

    return (int) $server->link->insert_id;
}

if (realpath($argv[0]) === __FILE__) {
    $server = new Server();
    $database = $server->database('counts');
    $uid = held_run($server);
    slow_writes($server);
    $wanted = array_slice($argv, 1) ?: array_keys(variants());
    foreach ($wanted as $variant) {
        $counted = count_operations($server, $database, $variant, ['renew' => ["count-renew %d $uid " . OWNER . ' 1900000000', 100, 600]])['renew'];
        printf("%-10s renew %8d instructions  %s system calls %s\n", $variant, $counted['instructions'], $counted['syscalls'], json_encode($counted['kinds']));
    }
    $server->run("DROP DATABASE `$database`");
}
