<?php

declare(strict_types=1);

namespace Bench;

// Measures how many renewals per second a server executes, by connections: each client renews its
// own run, one renewal after the other, without a pause.
//   php rate.php OUT.json LABEL SECONDS [key|cluster|nodes|noblob]
// Adds its numbers to OUT.json under LABEL. The server is that of bin/bench, with `key` the table
// has one over (status, lease_expires); with `cluster` three Galera nodes, of which one is written
// to, with `noblob` the same with row images that leave unchanged payloads out, and with `nodes`
// all three are written to. Clients are the C program (limit.c) and the extension: on a machine
// with few cores they compete with the server.

require_once __DIR__ . '/lib.php';

[, $out, $label, $seconds] = $argv;
$kind = $argv[4] ?? '';
const CONNECTIONS = [1, 2, 4, 8, 16, 32, 64];

$site = null;
if (in_array($kind, ['', 'key'], true)) {
    $servers = [new Server()];
} else {
    require_once dirname(__DIR__, 2) . '/tests/chaos/servers.inc';
    $folder = sys_get_temp_dir() . '/nrllm-rate.' . getmypid();
    mkdir($folder);
    register_shutdown_function(static function () use ($folder): void {
        \Node::killAll();
        exec('rm -rf ' . escapeshellarg($folder));
    });
    $site = new \Site($folder, true);
    $servers = [];
    foreach ($site->nodes as $node) {
        putenv("NRLLM_TEST_SOCKET=$node->folder/s");
        putenv('NRLLM_TEST_USER=' . \Site::USER);
        putenv('NRLLM_TEST_PASSWORD=' . \Site::PASSWORD);
        $servers[] = new Server();
    }
    $nodes = $servers;
    if ($kind === 'noblob') {
        foreach ($nodes as $node) {
            $node->run("SET GLOBAL binlog_row_image = 'NOBLOB'");
        }
    }
    if ($kind !== 'nodes') {
        $servers = [$servers[0]];
    }
}
$main = $servers[0];
$database = $main->database('rate');
$most = max(CONNECTIONS);
if ($kind === 'key') {
    $main->run('ALTER TABLE tx_nrllm_agentrun ADD KEY nrllm_runtime_lease (status, lease_expires)');
}
fill($main, $most, ['status' => "'running'", 'claimed_by' => "'" . OWNER . "'", 'lease_expires' => '1700000000', 'queued_request' => PAYLOAD]);
$uids = array_map(intval(...), array_column($main->link->query('SELECT uid FROM tx_nrllm_agentrun ORDER BY uid')->fetch_all(), 0));
foreach ($servers as $server) {
    // The other nodes apply the runs a moment later.
    for ($until = microtime(true) + 20; microtime(true) < $until; usleep(50_000)) {
        try {
            if ($server->value("SELECT COUNT(*) FROM `$database`.tx_nrllm_agentrun") === (string) $most) {
                break;
            }
        } catch (\mysqli_sql_exception) {
        }
    }
}
$rates = [];
$lease = 1_700_000_000;
foreach (['limit', 'module'] as $variant) {
    $workers = [];
    foreach (CONNECTIONS as $connections) {
        while (count($workers) < $connections) {
            $workers[] = new Worker($variant, $servers[count($workers) % count($servers)], $database);
        }
        $uid = static fn (int $index): int => $uids[$index];
        // A short run determines how many renewals fit into the time.
        $count = 100;
        for ($round = 0; $round < 2; $round++) {
            $before = array_map(static fn (Server $server): array => $server->counters(), $servers);
            $start = hrtime(true);
            foreach ($workers as $index => $worker) {
                $worker->send("renew $count {$uid($index)} " . OWNER . " $lease 1");
            }
            $times = [];
            foreach ($workers as $index => $worker) {
                $answer = $worker->receive();
                if ($answer['done'] !== $count) {
                    throw new \RuntimeException("$variant renewed {$answer['done']} of $count, the {$index}th of $connections");
                }
                $times[] = $answer['p50'] / 1_000;
            }
            $took = (hrtime(true) - $start) / 1e9;
            $lease += $count + 1;
            $of = static function (string $name) use ($servers, $before, $connections, $count): float {
                $sum = 0;
                foreach ($servers as $index => $server) {
                    $sum += ($server->counters()[$name] ?? 0) - ($before[$index][$name] ?? 0);
                }

                return round($sum / $connections / $count, 2);
            };
            $rate = $connections * $count / $took;
            // Per renewal: flushes of the storage engine, and bytes of the binary log or of a
            // cluster's replication.
            [$fsyncs, $bytes] = [$of('Innodb_data_fsyncs'), max($of('Binlog_bytes_written'), $of('wsrep_replicated_bytes'))];
            $count = max(50, (int) ($rate * (float) $seconds / $connections));
        }
        $row = ['rate' => round($rate), 'p50' => round(median($times), 1), 'fsyncs' => $fsyncs, 'log bytes' => $bytes];
        $rates[$variant][$connections] = $row;
        fwrite(STDERR, "$label, $variant: $connections connections " . json_encode($row) . "\n");
    }
    foreach ($workers as $worker) {
        $worker->close();
    }
}
if ($site !== null) {
    usleep(500_000);
    $sums = array_map(static fn (Server $node): string => $node->link->query("CHECKSUM TABLE `$database`.tx_nrllm_agentrun")->fetch_row()[1], $nodes);
    if (count(array_unique($sums)) !== 1) {
        throw new \RuntimeException('the nodes differ: ' . implode(' ', $sums));
    }
}
$main->run("DROP DATABASE `$database`");
$all = is_file($out) ? json_decode(file_get_contents($out), true, flags: JSON_THROW_ON_ERROR) : [];
$all['about'] = ['server' => $main->value('SELECT VERSION()'), 'cores' => (int) shell_exec('nproc'), 'seconds' => (float) $seconds];
$all['rates'][$label] = $rates;
file_put_contents($out, json_encode($all, JSON_PRETTY_PRINT | JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR) . "\n");
