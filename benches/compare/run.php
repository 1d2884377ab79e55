<?php

declare(strict_types=1);

namespace Bench;

// The side-by-side comparison: every variant does the same, in turns, on one server, so that other
// load affects all alike. bin/bench runs it.
//   php run.php OUT.json [quick]
// Measures for each operation: wall time and CPU time in the client's process, its peak memory, and
// from the server's own counters statements, round trips and bytes on the wire. No other client is
// active meanwhile.

require_once __DIR__ . '/lib.php';
require_once __DIR__ . '/counts.php';

const PLANS = [
    'full' => ['batch' => 200, 'rounds' => 25, 'reaps' => [50 => 15, 500 => 15, 5_000 => 15, 50_000 => 3], 'classify' => 200_000, 'starts' => 40],
    'quick' => ['batch' => 100, 'rounds' => 6, 'reaps' => [50 => 4, 500 => 3, 5_000 => 1], 'classify' => 50_000, 'starts' => 15],
];
const MODES = ['default' => 1, 'relaxed' => 2];

$plan = PLANS[$argv[2] ?? 'full'];
// The load of other programs: the bench has not begun.
$load = round(sys_getloadavg()[0], 1);
$server = new Server();
$results = [];
$counted = $server->counters();
$own = counters_between($counted, $server->counters(), []);

// ---- operations on one run ----------------------------------------------------------------------
$batch = $plan['batch'];
$database = $server->database('ops');
fill($server, 2_000, ['status' => "'completed'", 'finished_at' => '1700000100 + seq']);
fill($server, 500, ['status' => "'running'", 'claimed_by' => "CONCAT('worker:live:', seq)", 'lease_expires' => '1900000000 + seq', 'queued_request' => PAYLOAD]);
$uid = held_run($server);
$server->run("UPDATE tx_nrllm_agentrun SET queued_request = CONCAT('nrv1:', REPEAT(MD5(uid), 640)) WHERE uid = $uid");
fill($server, $batch, ['status' => "'queued'", 'queued_request' => PAYLOAD]);
$first = (int) $server->value('SELECT MAX(uid) FROM tx_nrllm_agentrun') - $batch + 1;
$mine = "uid BETWEEN $first AND " . ($first + $batch - 1);
$queued = "UPDATE tx_nrllm_agentrun SET status = 'queued', claimed_by = '', lease_expires = 0, requeue_count = 0 WHERE $mine";
$held = "UPDATE tx_nrllm_agentrun SET status = 'running', claimed_by = '" . OWNER . "', lease_expires = 1900000000, requeue_count = 0 WHERE $mine";
$operations = [
    'renew changed' => ["renew $batch $uid " . OWNER . ' %d 1', null],
    'renew unchanged' => ["renew $batch $uid " . OWNER . ' 1900000000 0', null],
    'renew lost' => ["renew $batch $uid worker:other 1900000000 1", null],
    'mark' => ["mark $batch $uid " . OWNER . ' %d', null],
    'claim' => ["claim $batch $first " . OWNER . ' 1900000000', $queued],
    'recover' => ["recover $batch $first " . OWNER, $held],
];
$workers = [];
foreach (array_keys(variants()) as $variant) {
    $workers[$variant] = new Worker($variant, $server, $database);
}
foreach (MODES as $mode => $flush) {
    $server->run("SET GLOBAL innodb_flush_log_at_trx_commit = $flush");
    foreach ($operations as $operation => [$command, $prepare]) {
        note("$operation, innodb_flush_log_at_trx_commit=$flush");
        $samples = [];
        for ($round = -1; $round < $plan['rounds']; $round++) {
            foreach (in_turn(array_keys($workers), $round + 1) as $variant) {
                if ($prepare !== null) {
                    $server->run($prepare);
                }
                $sample = sample($server, $workers[$variant], sprintf($command, 1_800_000_000 + ($round + 2) * 1_000), $own);
                $expected = $operation === 'renew lost' ? 0 : $batch;
                if ($sample['done'] !== $expected) {
                    throw new \RuntimeException("$variant did {$sample['done']} of $expected: $operation");
                }
                // The first round fills caches.
                if ($round >= 0) {
                    $samples[$variant][] = $sample;
                }
            }
        }
        $results['operations'][$operation][$mode] = array_map(summary(...), $samples);
    }
}

// ---- counts that no other load disturbs ---------------------------------------------------------
note('instructions and system calls');
slow_writes($server);
$waiting = [
    'renew' => ["count-renew %d $uid " . OWNER . ' 1900000000', 100, 600],
    'mark' => ["mark %d $uid " . OWNER . ' 1900000000', 100, 600],
];
$classifying = [];
foreach (['unloaded', 'plain', 'serverError'] as $family) {
    $classifying["classify $family"] = ["count-classify %d $family", 100, 1_100];
}
foreach (array_keys(variants()) as $variant) {
    $operations = in_array($variant, ['doctrine', 'limit'], true) ? $waiting : $waiting + $classifying;
    foreach (count_operations($server, $database, $variant, $operations) as $operation => $counted) {
        $results['counts'][$operation][$variant] = $counted;
    }
}
fast_writes($server);

// ---- pure parts ---------------------------------------------------------------------------------
note('classification');
$families = ['unloaded', 'plain', 'connection', 'network', 'configuration', 'auth', 'rateLimit', 'serverError', 'clientError', 'circuitOpen', 'chain'];
$pure = array_values(array_diff(array_keys(variants()), ['doctrine', 'limit']));
foreach ($workers as $worker) {
    $worker->close();
}
// Fresh processes, in which none of the known classes is loaded yet.
$workers = [];
foreach ($pure as $variant) {
    $workers[$variant] = new Worker($variant, $server, $database);
}
foreach ($families as $family) {
    $samples = [];
    for ($round = 0; $round < 5; $round++) {
        foreach (in_turn($pure, $round) as $variant) {
            $samples[$variant][] = $workers[$variant]->ask('classify ' . ($variant === 'ffi' ? intdiv($plan['classify'], 50) : $plan['classify']) . " $family")['p50'];
        }
    }
    foreach ($samples as $variant => $times) {
        $results['classify'][$family][$variant] = ['ns' => median($times), 'best' => min($times), 'samples' => count($times)];
    }
}
foreach (array_intersect($pure, ['module', 'ffi']) as $variant) {
    note("lease read, $variant");
    $results['lease read'][$variant] = $workers[$variant]->ask("keep 500000 $uid " . OWNER)['p50'];
}
foreach ($workers as $worker) {
    $worker->close();
}
$server->run("DROP DATABASE `$database`");

// ---- reaping ------------------------------------------------------------------------------------
foreach ($plan['reaps'] as $size => $rounds) {
    $database = $server->database("reap$size");
    note("filling $size stale runs");
    fill($server, 2_000, ['status' => "'completed'", 'finished_at' => '1700000100 + seq']);
    fill($server, 500, ['status' => "'running'", 'claimed_by' => "CONCAT('worker:live:', seq)", 'lease_expires' => '1900000000 + seq', 'queued_request' => PAYLOAD]);
    fill($server, $size, ['status' => "'running'", 'claimed_by' => "CONCAT('worker:dead:', seq)", 'lease_expires' => '1700000000 + seq % 977', 'queued_request' => PAYLOAD], 5_000);
    $last = (int) $server->value('SELECT MAX(uid) FROM tx_nrllm_agentrun');
    $first = $last - $size + 1;
    foreach (MODES as $mode => $flush) {
        $server->run("SET GLOBAL innodb_flush_log_at_trx_commit = $flush");
        note("reap of $size, innodb_flush_log_at_trx_commit=$flush");
        $samples = $workers = [];
        for ($round = 0; $round < $rounds; $round++) {
            foreach (in_turn(array_keys(variants()), $round) as $variant) {
                // Row by row takes so much longer that a third of the rounds is enough.
                if ($variant === 'doctrine' && $round % 3 !== 0) {
                    continue;
                }
                for ($from = $first; $from <= $last; $from += 10_000) {
                    $server->run("UPDATE tx_nrllm_agentrun SET status = 'running', claimed_by = CONCAT('worker:dead:', uid), lease_expires = 1700000000 + uid % 977, requeue_count = 0 "
                        . "WHERE uid BETWEEN $from AND " . min($last, $from + 9_999));
                }
                $server->awaitIdle();
                $workers[$variant] ??= new Worker($variant, $server, $database);
                $sample = sample($server, $workers[$variant], "reap $size 1800000000", $own);
                if ($sample['done'] !== $size) {
                    throw new \RuntimeException("$variant reaped {$sample['done']} of $size");
                }
                $samples[$variant][] = $sample;
            }
        }
        foreach ($workers as $worker) {
            $worker->close();
        }
        $results['reap'][$size][$mode] = array_map(summary(...), $samples);
    }
    $server->run("DROP DATABASE `$database`");
}

// ---- what loading the module adds to a PHP start ------------------------------------------------
note('start of PHP');
$plain = [PHP_BINARY, '-n', '-r', ';'];
$loaded = [PHP_BINARY, '-n', '-d', 'extension=' . getenv('NRLLM_MODULE'), '-r', ';'];
$times = [];
for ($round = 0; $round < $plan['starts']; $round++) {
    foreach (['without' => $plain, 'with' => $loaded] as $which => $command) {
        $start = hrtime(true);
        proc_close(proc_open($command, [], $pipes));
        $times[$which][] = (hrtime(true) - $start) / 1_000;
    }
}
$census = 'echo count(glob("/proc/self/task/*")), " ", count(array_filter(glob("/proc/self/fd/*"), fn ($f) => str_starts_with((string) @readlink($f), "socket:")));';
$seen = static fn (array $command): string => (string) stream_get_contents(popen(implode(' ', array_map('escapeshellarg', [...array_slice($command, 0, -1), $census])), 'r'));
$results['start'] = ['without' => median($times['without']), 'with' => median($times['with']), 'threads and sockets without' => $seen($plain), 'threads and sockets with' => $seen($loaded)];

$results['about'] = [
    'plan' => $argv[2] ?? 'full', 'date' => date('Y-m-d'), 'machine' => php_uname('m'), 'cores' => (int) shell_exec('nproc'), 'load' => $load,
    'php' => PHP_VERSION, 'server' => $server->value('SELECT VERSION()'), 'kernel' => preg_replace('/^(\d+\.\d+).*/', '$1', php_uname('r')),
    'module' => preg_match('/^version = "(.*)"/m', file_get_contents(dirname(__DIR__, 2) . '/Cargo.toml'), $match) ? $match[1] : '',
    'batch' => $batch, 'rounds' => $plan['rounds'], 'buffer pool' => $server->value('SELECT @@innodb_buffer_pool_size'),
];
file_put_contents($argv[1], json_encode($results, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_THROW_ON_ERROR) . "\n");
