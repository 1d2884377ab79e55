<?php

declare(strict_types=1);

namespace Bench;

require_once __DIR__ . '/lib.php';

/**
 * Counts user instructions and system calls of one operation by valgrind's callgrind, which other
 * load does not affect. A variant runs the operation a few times and many times, in separate
 * processes; the difference excludes the start.
 *
 * @return array{instructions: float, syscalls: float, kinds: array<string, float>}
 */
function count_operation(Server $server, string $database, string $variant, string $command, int $few = 100, int $many = 600): array
{
    $runs = [];
    foreach ([$few, $many] as $n) {
        $log = tempnam(sys_get_temp_dir(), 'nrllm-bench');
        $worker = new Worker($variant, $server, $database, ['valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null', '--trace-syscalls=yes'], $log);
        $answer = $worker->ask(sprintf($command, $n));
        if ($answer['done'] !== $n && !str_contains($command, 'worker:other')) {
            throw new \RuntimeException("$variant: '$command' did {$answer['done']} of $n");
        }
        $worker->close();
        $text = file_get_contents($log);
        unlink($log);
        preg_match('/Collected : (\d+)/', $text, $match) || throw new \RuntimeException("valgrind counted nothing:\n" . substr($text, -2000));
        preg_match_all('/^SYSCALL\[\d+,\d+\]\(\s*\d+\) (?:sys_)?(\w+)/m', $text, $calls);
        $runs[] = ['instructions' => (int) $match[1], 'kinds' => array_count_values($calls[1])];
    }
    [$first, $second] = $runs;
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

    return ['instructions' => round($per($first['instructions'], $second['instructions'])), 'syscalls' => array_sum($kinds), 'kinds' => $kinds];
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
        $counted = count_operation($server, $database, $variant, "count-renew %d $uid " . OWNER . ' 1900000000');
        printf("%-10s renew %8d instructions  %s system calls %s\n", $variant, $counted['instructions'], $counted['syscalls'], json_encode($counted['kinds']));
    }
    $server->run("DROP DATABASE `$database`");
}
