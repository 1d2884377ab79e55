<?php

declare(strict_types=1);

namespace Bench;

// Measures the cost of an operation where the server keeps a binary log: time, bytes of the log and
// of the storage engine's redo log. bin/bench starts one server per setup and runs this script on
// each, configured as sites are: durable, every commit waits for the disk.
//   php binary_log.php OUT.json LABEL [quick] [restricted]      adds the setup LABEL to OUT.json
// `restricted`: the extension uses an account that may not set binlog_row_image.

require_once __DIR__ . '/lib.php';
require_once __DIR__ . '/counts.php';

const ROUNDS = ['full' => ['batch' => 100, 'rounds' => 10, 'reaps' => 15], 'quick' => ['batch' => 50, 'rounds' => 3, 'reaps' => 3]];
const STALE = 500;

[, $out, $label] = $argv;
$plan = ROUNDS[in_array('quick', $argv, true) ? 'quick' : 'full'];
$load = round(sys_getloadavg()[0], 1);
$server = new Server();
$own = counters_between($server->counters(), $server->counters(), []);
$database = $server->database('log');
if (in_array('restricted', $argv, true)) {
    $server->run("CREATE OR REPLACE USER 'restricted'@'localhost' IDENTIFIED BY 'restricted'");
    $server->run("GRANT SELECT, INSERT, UPDATE, DELETE ON `$database`.* TO 'restricted'@'localhost'");
    putenv('NRLLM_TEST_USER=restricted');
    putenv('NRLLM_TEST_PASSWORD=restricted');
}
fill($server, 2_000, ['status' => "'completed'", 'finished_at' => '1700000100 + seq']);
fill($server, 500, ['status' => "'running'", 'claimed_by' => "CONCAT('worker:live:', seq)", 'lease_expires' => '1900000000 + seq', 'queued_request' => PAYLOAD]);
$uid = held_run($server);
$server->run("UPDATE tx_nrllm_agentrun SET queued_request = CONCAT('nrv1:', REPEAT(MD5(uid), 640)) WHERE uid = $uid");
$batch = $plan['batch'];
fill($server, $batch, ['status' => "'queued'", 'queued_request' => PAYLOAD]);
$first = (int) $server->value('SELECT MAX(uid) FROM tx_nrllm_agentrun') - $batch + 1;
fill($server, STALE, ['status' => "'completed'", 'queued_request' => PAYLOAD]);
$last = (int) $server->value('SELECT MAX(uid) FROM tx_nrllm_agentrun');
$stale = $last - STALE + 1;
$mine = "uid BETWEEN $first AND " . ($first + $batch - 1);
$queued = "UPDATE tx_nrllm_agentrun SET status = 'queued', claimed_by = '', lease_expires = 0, requeue_count = 0 WHERE $mine";
$held = "UPDATE tx_nrllm_agentrun SET status = 'running', claimed_by = '" . OWNER . "', lease_expires = 1900000000, requeue_count = 0 WHERE $mine";
$died = "UPDATE tx_nrllm_agentrun SET status = 'running', claimed_by = CONCAT('worker:dead:', uid), lease_expires = 1700000000 + uid % 977, requeue_count = 0 "
    . "WHERE uid BETWEEN $stale AND $last";
// Command, statement that prepares it, rounds, runs of one call.
$operations = [
    'renew' => ["renew $batch $uid " . OWNER . ' %d 1', null, $plan['rounds'], 1],
    'heartbeat' => ["heartbeats 5 $uid " . OWNER, null, 1, 1],
    'mark' => ["mark $batch $uid " . OWNER . ' %d', null, $plan['rounds'], 1],
    'claim' => ["claim $batch $first " . OWNER . ' 1900000000', $queued, $plan['rounds'], 1],
    'recover' => ["recover $batch $first " . OWNER, $held, $plan['rounds'], 1],
    'reap of 500, a run' => ['reap ' . STALE . ' 1800000000', $died, $plan['reaps'], STALE],
];
$names = array_keys(variants());
$workers = [];
foreach ($names as $variant) {
    $workers[$variant] = new Worker($variant, $variant === 'module' || $variant === 'ffi' ? new Server() : $server, $database);
}
$measured = [];
foreach ($operations as $operation => [$command, $prepare, $rounds, $runs]) {
    note("$label: $operation");
    $samples = [];
    for ($round = -1; $round < $rounds; $round++) {
        foreach (in_turn($names, $round + 1) as $variant) {
            if ($operation === 'heartbeat' && $variant !== 'module' && $variant !== 'ffi') {
                continue;
            }
            // Row by row takes so much longer that a third of the rounds is enough.
            if ($variant === 'doctrine' && $runs > 1 && $round % 3 !== 0) {
                continue;
            }
            if ($prepare !== null) {
                $server->run($prepare);
                $server->awaitIdle();
            }
            $sample = sample($server, $workers[$variant], sprintf($command, 1_800_000_000 + ($round + 2) * 1_000), $own);
            // The first round fills caches.
            if ($round >= 0) {
                foreach ($runs > 1 ? ['wall', 'log', 'redo', 'cpu_user', 'cpu_system'] : [] as $name) {
                    $sample[$name] /= $runs;
                }
                $samples[$variant][] = $sample;
            }
        }
    }
    $measured[$operation] = array_map(summary(...), $samples);
}
foreach ($workers as $worker) {
    $worker->close();
}
$server->run("DROP DATABASE `$database`");
$all = is_file($out) ? json_decode(file_get_contents($out), true, flags: JSON_THROW_ON_ERROR) : [];
$all['about'] = ['date' => date('Y-m-d'), 'cores' => (int) shell_exec('nproc'), 'load' => $load, 'php' => PHP_VERSION, 'server' => $server->value('SELECT VERSION()')];
$all['setups'][$label] = $measured;
file_put_contents($out, json_encode($all, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_THROW_ON_ERROR) . "\n");
