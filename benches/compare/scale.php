<?php

declare(strict_types=1);

namespace Bench;

// The run table of a large site: the cost of listing, reaping and the status report, and the effect
// of two reapers on the heartbeats of 50 live workers.
//   php scale.php OUT.json [FINISHED RUNNING STALE]

require_once __DIR__ . '/lib.php';

$server = new Server();
[$finished, $running, $stale] = array_map('intval', array_slice($argv, 2) + [1_000_000, 100_000, 10_000]);
const NOW = 1_800_000_000;
const BEATERS = 50;

/** Rows that the server read for one command. */
function rows_read(Server $server, Worker $worker, string $command): int
{
    $read = static fn (): int => (int) $server->value("SELECT SUM(VARIABLE_VALUE) FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME LIKE 'Handler_read%'");
    $first = $read();
    $own = $read() - $first;
    $before = $read();
    $worker->ask($command);

    return $read() - $before - $own;
}

$results = ['finished' => $finished, 'running' => $running, 'stale' => $stale, 'server' => $server->value('SELECT VERSION()')];
// Default durability: a heartbeat waits for the disk, as it does on a site.
$server->run('SET GLOBAL innodb_flush_log_at_trx_commit = 2');
$database = $server->database('scale');
note("filling $finished finished runs");
fill($server, $finished, ['status' => "IF(seq % 10 = 0, 'failed', 'completed')", 'termination_reason' => "IF(seq % 10 = 0, 'provider_failed', 'completed')", 'finished_at' => '1700000100 + seq'], 50_000);
note("filling $running running runs with their payloads");
fill($server, $running, ['status' => "'running'", 'claimed_by' => "CONCAT('worker:live:', seq)", 'lease_expires' => '1900000000', 'queued_request' => PAYLOAD], 5_000);
$last = (int) $server->value('SELECT MAX(uid) FROM tx_nrllm_agentrun');
$first = $last - $running + 1;
// Every tenth or so of the running ones is stale, spread over the table.
$step = intdiv($running, $stale);
$reset = "UPDATE tx_nrllm_agentrun SET status = 'running', claimed_by = CONCAT('worker:dead:', uid), lease_expires = 1700000000 + uid %% 9973, requeue_count = 0 WHERE uid BETWEEN %d AND %d AND (uid - $first) %% $step = 0";
$owned = [];
for ($i = 0; $i < BEATERS; $i++) {
    $uid = $first + intdiv($running, BEATERS) * $i;
    $uid += ($uid - $first) % $step === 0 ? 1 : 0;
    $owned[] = $uid;
    $server->run("UPDATE tx_nrllm_agentrun SET claimed_by = 'worker:live:$uid' WHERE uid = $uid");
}
$server->run('SET GLOBAL innodb_flush_log_at_trx_commit = 1');

foreach (['without key' => null, 'with key' => 'ALTER TABLE tx_nrllm_agentrun ADD KEY status_lease (status, lease_expires)'] as $key => $alter) {
    if ($alter !== null) {
        note('adding the key');
        $server->run($alter);
    }
    $prepare = static function () use ($server, $reset, $first, $last): void {
        for ($from = $first; $from <= $last; $from += 20_000) {
            $server->run(sprintf($reset, $from, min($last, $from + 19_999)));
        }
        $server->awaitIdle();
    };
    $prepare();
    $server->run('ANALYZE TABLE tx_nrllm_agentrun');
    note("listing and status, $key");
    $worker = new Worker('module', $server, $database);
    $worker->ask('list 2 50 ' . NOW);
    $row = [
        'list 50' => $worker->ask('list 25 50 ' . NOW)['p50'] / 1_000,
        'list all' => $worker->ask("list 3 $stale " . NOW)['p50'] / 1_000,
        'status' => $worker->ask('status 3')['p50'] / 1_000,
        'rows examined' => rows_read($server, $worker, 'list 1 50 ' . NOW),
    ];
    $worker->close();
    foreach (['none', 'module', 'doctrine'] as $reapers) {
        note("50 live workers, reapers: $reapers, $key");
        $prepare();
        $heartbeats = proc_open([...Worker::php('module'), __DIR__ . '/heartbeats.php', $server->socket, $server->user, $server->password, $database, 'tx_nrllm_agentrun', '100', ...array_map('strval', $owned)],
            [['pipe', 'r'], ['pipe', 'w']], $pipes);
        fgets($pipes[1]);
        $two = $reapers === 'none' ? [] : [new Worker($reapers, $server, $database), new Worker($reapers, $server, $database)];
        $before = $server->counters();
        $began = hrtime(true);
        foreach ($two as $reaper) {
            $reaper->send('drain 5000 ' . NOW);
        }
        $most = $looked = 0;
        $waiting = array_keys($two);
        do {
            // The server refreshes the table only if it was not read for a tenth of a second.
            if (hrtime(true) - $looked > 110_000_000) {
                $most = max($most, (int) $server->value('SELECT COALESCE(MAX(trx_rows_locked), 0) FROM information_schema.INNODB_TRX'));
                $looked = hrtime(true);
            }
            usleep(5_000);
            $waiting = array_filter($waiting, static fn (int $index): bool => !$two[$index]->hasAnswered());
            $elapsed = (hrtime(true) - $began) / 1e9;
        } while ($two === [] ? $elapsed < 10 : $waiting !== []);
        $drain = (hrtime(true) - $began) / 1_000;
        $drained = 0;
        foreach ($two as $reaper) {
            $drained += $reaper->receive()['done'];
            $reaper->close();
        }
        fclose($pipes[0]);
        $answer = json_decode((string) stream_get_contents($pipes[1]), true, flags: JSON_THROW_ON_ERROR);
        fclose($pipes[1]);
        proc_close($heartbeats);
        $between = counters_between($before, $server->counters(), []);
        if ($answer['failed'] > 0 || ($two !== [] && $drained !== $stale)) {
            throw new \RuntimeException("{$answer['failed']} workers failed, $drained of $stale were handled");
        }
        $row['heartbeats'][$reapers] = [
            'drain' => $two === [] ? 0 : $drain, 'heartbeats' => count($answer['times']), 'lost' => $answer['refused'],
            'p50' => median($answer['times']) / 1_000, 'p99' => percentile($answer['times'], 0.99) / 1_000, 'max' => max($answer['times']) / 1_000,
            'lock waits' => $between['Innodb_row_lock_waits'], 'deadlocks' => $between['Innodb_deadlocks'] ?? 0, 'rows locked' => $most,
        ];
    }
    $results[$key] = $row;
}
$server->run("DROP DATABASE `$database`");
file_put_contents($argv[1], json_encode($results, JSON_PRETTY_PRINT | JSON_THROW_ON_ERROR) . "\n");
