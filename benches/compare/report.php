<?php

declare(strict_types=1);

namespace Bench;

// Makes tables and plots from the numbers of run.php and scale.php.
//   php report.php FOLDER      reads results.json, binary-log.json, cold.json, scale.json and
//                              rate.json there, writes results.md and the plots, prints the tables

require_once __DIR__ . '/lib.php';
require_once __DIR__ . '/plot.php';

const SHORT = ['doctrine' => 'a Doctrine', 'plain' => 'b PDO', 'module' => 'c module', 'ffi' => 'd FFI', 'limit' => 'e libmariadb'];
const MODE = ['default' => 'innodb_flush_log_at_trx_commit=1', 'relaxed' => 'innodb_flush_log_at_trx_commit=2'];

$folder = rtrim($argv[1], '/');
$results = json_decode(file_get_contents("$folder/results.json"), true, flags: JSON_THROW_ON_ERROR);
$scale = is_file("$folder/scale.json") ? json_decode(file_get_contents("$folder/scale.json"), true, flags: JSON_THROW_ON_ERROR) : null;
$rate = is_file("$folder/rate.json") ? json_decode(file_get_contents("$folder/rate.json"), true, flags: JSON_THROW_ON_ERROR) : null;
$log = is_file("$folder/binary-log.json") ? json_decode(file_get_contents("$folder/binary-log.json"), true, flags: JSON_THROW_ON_ERROR) : null;
$cold = is_file("$folder/cold.json") ? json_decode(file_get_contents("$folder/cold.json"), true, flags: JSON_THROW_ON_ERROR) : null;
$about = $results['about'];
$markdown = '';

/** @param list<string> $head @param list<list<string>> $rows */
function table(array $head, array $rows): string
{
    $widths = [];
    foreach ([$head, ...$rows] as $row) {
        foreach ($row as $column => $cell) {
            $widths[$column] = max($widths[$column] ?? 3, mb_strlen($cell));
        }
    }
    $line = static fn (array $row): string => '| ' . implode(' | ', array_map(
        static fn (string $cell, int $width, int $column): string => $column === 0 ? $cell . str_repeat(' ', $width - mb_strlen($cell)) : str_repeat(' ', $width - mb_strlen($cell)) . $cell,
        $row, $widths, array_keys($row),
    )) . " |\n";

    return $line($head) . '|' . implode('|', array_map(static fn (int $width, int $column): string => ($column === 0 ? '-' : '-') . str_repeat('-', $width) . ($column === 0 ? '-' : ':'), $widths, array_keys($widths)))
        . "|\n" . implode('', array_map($line, $rows)) . "\n";
}

$present = array_intersect_key(SHORT, $results['operations']['renew changed']['default']);

// ---- the figures to reach -----------------------------------------------------------------------
$figures = [];
$figure = static function (string $what, string $wanted, string $measured, ?bool $reached) use (&$figures): void {
    $figures[] = [$what, $wanted, $measured, $reached === null ? '' : ($reached ? 'yes' : 'NO')];
};
foreach ($results['reap'] as $size => $modes) {
    foreach ($modes as $mode => $variants) {
        $times = static fn (string $variant): float => $variants[$variant]['wall'];
        $label = "reap of $size, $mode durability";
        $wanted = $size == 50 ? 8 : 15;
        if ($size <= 5_000) {
            $ratio = $times('doctrine') / $times('module');
            $figure("$label: faster than a", "$wanted times", sprintf('%.1f times', $ratio), $ratio >= $wanted);
        }
        if ($size == 500 || $size == 5_000) {
            $ratio = $times('module') / $times('plain');
            $figure("$label: against b", 'at most 1.05', sprintf('%.2f', $ratio), $ratio <= 1.05);
        }
        if ($mode === 'default') {
            $allowed = 16 * 1_024 + $size;
            $figure("reap of $size: peak memory", 'at most ' . amount($allowed, 'KiB'), amount($variants['module']['peak'], 'KiB') . ' (a: ' . amount($variants['doctrine']['peak'], 'KiB') . ')',
                $variants['module']['peak'] <= $allowed);
        }
    }
}
foreach (['renew changed', 'renew unchanged'] as $operation) {
    $figure("$operation: round trips", '1', amount($results['operations'][$operation]['default']['module']['round_trips'], ''), abs($results['operations'][$operation]['default']['module']['round_trips'] - 1) < 0.02);
    foreach ($results['operations'][$operation] as $mode => $variants) {
        $ratio = $variants['module']['wall'] / $variants['limit']['wall'];
        $figure("$operation, $mode durability: against e", 'at most 1.25', sprintf('%.2f', $ratio), $ratio <= 1.25);
        $ratio = $variants['doctrine']['wall'] / $variants['module']['wall'];
        $figure("$operation, $mode durability: faster than a", '2 times', sprintf('%.1f times', $ratio), $ratio >= 2);
    }
}
$counts = $results['counts'];
[$ours, $limit] = [$counts['renew']['module'], $counts['renew']['limit']];
// A reply in two pieces, once in hundreds of calls, is not counted for a call.
[$ours['syscalls'], $limit['syscalls']] = [round($ours['syscalls'], 1), round($limit['syscalls'], 1)];
$figure('renew: system calls', "e's {$limit['syscalls']} and one", (string) $ours['syscalls'], $ours['syscalls'] <= $limit['syscalls'] + 1);
$figure('renew: user instructions', "4 times e's " . number_format($limit['instructions'], 0, '.', ' '), sprintf('%s (%.2f times)', number_format($ours['instructions'], 0, '.', ' '), $ours['instructions'] / $limit['instructions']), $ours['instructions'] <= 4 * $limit['instructions']);
$figure('classifyFailure, plain exception', 'at most 1 000 ns', amount($results['classify']['unloaded']['module']['ns'], 'ns') . ', ' . amount($results['classify']['plain']['module']['ns'], 'ns') . ' with all classes loaded',
    max($results['classify']['unloaded']['module']['ns'], $results['classify']['plain']['module']['ns']) <= 1_000);
$worst = max(array_map(static fn (array $family): float => $family['module']['ns'] / $family['plain']['ns'], $results['classify']));
$figure('classifyFailure: against the ladder in PHP, worst family', 'at most 1', sprintf('%.2f', $worst), $worst <= 1);
if (isset($results['lease read']['module'])) {
    $figure('lease read', 'under 200 ns', amount($results['lease read']['module'], 'ns'), $results['lease read']['module'] < 200);
}
$start = $results['start'];
$figure('start of PHP with the module', 'under 2 ms more', amount($start['with'] - $start['without'], 'µs'), $start['with'] - $start['without'] < 2_000);
$figure('threads and sockets of that start', $start['threads and sockets without'], $start['threads and sockets with'], $start['threads and sockets without'] === $start['threads and sockets with']);
if (isset($log['setups']['MIXED'])) {
    $mixed = $log['setups']['MIXED'];
    foreach (['renew' => 'renew', 'mark' => 'mark', 'heartbeat' => 'renew'] as $operation => $beside) {
        $ratio = $mixed[$operation]['module']['log'] / $mixed[$beside]['plain']['log'];
        $figure("binary log, MIXED: $operation, bytes against b's $beside", 'at most 1.3', sprintf('%.2f', $ratio), $ratio <= 1.3);
    }
    $reap = $mixed['reap of 500, a run'];
    $figure('binary log, MIXED: reap of 500, bytes a run', 'at most 60 B', amount(round($reap['module']['log']), 'B'), $reap['module']['log'] <= 60);
    $ratio = $reap['module']['wall'] / $reap['plain']['wall'];
    $figure('binary log, MIXED: reap of 500, time against b in REPEATABLE READ', 'at most 1.1', sprintf('%.2f', $ratio), $ratio <= 1.1);
    $bytes = $log['setups']['ROW']['heartbeat']['module']['log'] ?? null;
    if ($bytes !== null) {
        $figure('binary log, ROW: a heartbeat', 'at most 1 KiB', amount(round($bytes), 'B'), $bytes <= 1_024);
    }
}
if ($cold !== null) {
    $figure('first renewal of a process: round trips after the handshake', 'at most 4', (string) $cold['round trips']['module'], $cold['round trips']['module'] <= 4);
}
if ($scale !== null) {
    $figure('50 stale among 100 000 running listed, with the key', 'under 2 ms', amount($scale['with key']['list 50'], 'µs'), $scale['with key']['list 50'] < 2_000);
    foreach (['without key', 'with key'] as $key) {
        $heartbeats = $scale[$key]['heartbeats']['module'];
        $figure("heartbeats beside 2 reapers, $key: row lock waits", '0', (string) $heartbeats['lock waits'], $heartbeats['lock waits'] === 0);
        $figure("heartbeats beside 2 reapers, $key: worst heartbeat", 'under 250 ms', amount($heartbeats['max'], 'µs'), $heartbeats['max'] < 250_000);
    }
}
$markdown .= "# Results\n\nMade by `bin/bench`" . ($about['plan'] === 'quick' ? ' `--quick`' : '') . " on {$about['date']}: {$about['machine']}, {$about['cores']} cores (load average {$about['load']} when it began, other work included), PHP {$about['php']}, "
    . "{$about['server']}, Linux {$about['kernel']}, module {$about['module']}. Medians; the raw numbers are in [results.json](results.json)"
    . ($scale === null ? '' : ', [scale.json](scale.json)') . ($rate === null ? '' : ', [rate.json](rate.json)') . ($log === null ? '' : ', [binary-log.json](binary-log.json)') . ($cold === null ? '' : ', [cold.json](cold.json)') . ". What the columns mean: [benchmarks.md](../../benchmarks.md).\n\n## The figures to reach\n\n";
$markdown .= table(['figure', 'wanted', 'measured', 'reached'], $figures) . "Why some are not reached: [benchmarks.md](../../benchmarks.md#what-is-not-reached-and-why).\n\n";

// ---- operations ---------------------------------------------------------------------------------
foreach (MODE as $mode => $setting) {
    $markdown .= "## One run, $mode durability ($setting)\n\nWall time of one call (median), CPU time of the client, statements, round trips, bytes sent and received, bytes of the redo log.\n\n";
    $rows = [];
    foreach ($results['operations'] as $operation => $modes) {
        foreach ($modes[$mode] as $variant => $row) {
            $rows[] = [$operation, SHORT[$variant], amount($row['wall'], 'µs'), amount($row['cpu_user'] + $row['cpu_system'], 'µs'), amount(round($row['statements'], 1), ''), amount(round($row['round_trips'], 1), ''),
                amount(round($row['sent']), 'B'), amount(round($row['received']), 'B'), amount(round($row['redo']), 'B')];
        }
    }
    $markdown .= table(['operation', 'variant', 'wall', 'client CPU', 'statements', 'round trips', 'sent', 'received', 'redo'], $rows);
}
foreach (MODE as $mode => $setting) {
    $markdown .= "## Reaping, $mode durability ($setting)\n\nEvery run with a payload of 20 KiB; all are put back on the queue.\n\n";
    $rows = [];
    foreach ($results['reap'] as $size => $modes) {
        foreach ($modes[$mode] as $variant => $row) {
            $rows[] = [number_format((float) $size, 0, '.', ' '), SHORT[$variant], amount($row['wall'], 'µs'), amount($row['cpu_user'] + $row['cpu_system'], 'µs'), amount($row['statements'], ''), amount($row['round_trips'], ''),
                amount($row['sent'], 'B'), amount($row['received'], 'B'), amount($row['redo'], 'B'), amount(max(0, $row['peak']), 'KiB')];
        }
    }
    $markdown .= table(['runs', 'variant', 'wall', 'client CPU', 'statements', 'round trips', 'sent', 'received', 'redo', 'peak memory'], $rows);
}
$markdown .= "## Classification\n\nOne call, its value object included. `unloaded`: none of the classes that the taxonomy knows is loaded.\n\n";
$rows = [];
foreach ($results['classify'] as $family => $variants) {
    $rows[] = [$family, ...array_map(static fn (string $variant): string => isset($variants[$variant]) ? amount($variants[$variant]['ns'], 'ns') : '-', ['plain', 'module', 'ffi'])];
}
$markdown .= table(['family', 'ladder in PHP', 'c module', 'd FFI'], $rows);
$markdown .= "## Counts\n\nBy valgrind's callgrind, one call: instructions in user space, and system calls.\n\n";
$rows = [];
foreach ($counts as $operation => $variants) {
    foreach ($variants as $variant => $row) {
        $rows[] = [$operation, SHORT[$variant], number_format($row['instructions'], 0, '.', ' '), amount($row['syscalls'], ''), implode(', ', array_map(static fn (string $kind, float $calls): string => $calls == 1 ? $kind : "$kind × $calls", array_keys($row['kinds']), $row['kinds']))];
    }
}
$markdown .= table(['operation', 'variant', 'instructions', 'system calls', 'which'], $rows);
if ($log !== null) {
    $markdown .= "## The binary log\n\nOne operation on a run with a payload of 20 KiB, every commit durable (`innodb_flush_log_at_trx_commit=1`, `sync_binlog=1`), on {$log['about']['server']}, PHP {$log['about']['php']}, "
        . "{$log['about']['cores']} cores (load average {$log['about']['load']}), {$log['about']['date']}: bytes of the binary log, bytes of the storage engine's redo log, wall time (median).\n\n";
    $rows = [];
    foreach ($log['setups'] as $label => $measured) {
        foreach ($measured as $operation => $variants) {
            foreach ($variants as $variant => $row) {
                $rows[] = [$label, $operation, SHORT[$variant], amount(round($row['log']), 'B'), amount(round($row['redo']), 'B'), $operation === 'heartbeat' ? '-' : amount($row['wall'], 'µs')];
            }
        }
    }
    $markdown .= table(['binary log', 'operation', 'variant', 'log', 'redo', 'wall'], $rows);
}
if ($cold !== null) {
    $markdown .= "## The first call of a process\n\nOne renewal that has to connect first, in a cron process and in a request to PHP-FPM, on {$cold['about']['server']} with a binary log (MIXED, durable), "
        . "{$cold['about']['rounds']} rounds (load average {$cold['about']['load']}): the call with its connection, the process or request as a whole (medians), round trips after the handshake, bytes with the handshake.\n\n";
    $rows = [];
    foreach ($cold['calls'] as $way => $variants) {
        foreach ($variants as $variant => $row) {
            $rows[] = [$way, SHORT[$variant], amount($row['call'], 'µs'), amount($row['whole'], 'µs'), (string) $cold['round trips'][$variant], amount(round($row['sent']), 'B'), amount(round($row['received']), 'B')];
        }
    }
    $markdown .= table(['in', 'variant', 'call', 'whole', 'round trips', 'sent', 'received'], $rows);
}
if ($scale !== null) {
    $markdown .= "## Scale\n\n" . number_format($scale['finished'], 0, '.', ' ') . ' finished runs, ' . number_format($scale['running'], 0, '.', ' ') . ' running, ' . number_format($scale['stale'], 0, '.', ' ')
        . " of them stale; 50 live workers that send heartbeats meanwhile, two reapers that drain the stale ones.\n\n";
    $rows = [];
    foreach (['without key', 'with key'] as $key) {
        $row = $scale[$key];
        $rows[] = [$key, amount($row['list 50'], 'µs'), amount($row['list all'], 'µs'), amount($row['status'], 'µs'), number_format($row['rows examined'], 0, '.', ' ')];
    }
    $markdown .= table(['key (status, lease_expires)', 'list 50', 'list all stale', 'status()', 'rows read to list 50'], $rows);
    $rows = [];
    foreach (['without key', 'with key'] as $key) {
        foreach ($scale[$key]['heartbeats'] as $who => $row) {
            $rows[] = [$key, ['none' => 'no reaper', 'module' => '2 reapers, c', 'doctrine' => '2 reapers, a'][$who], $who === 'none' ? '-' : amount($row['drain'], 'µs'), number_format($row['heartbeats'], 0, '.', ' '),
                amount($row['p50'], 'µs'), amount($row['p99'], 'µs'), amount($row['max'], 'µs'), (string) $row['lock waits'], (string) $row['deadlocks'], number_format($row['rows locked'], 0, '.', ' '), (string) $row['lost']];
        }
    }
    $markdown .= table(['key', 'beside', 'drained in', 'heartbeats', 'p50', 'p99', 'worst', 'row lock waits', 'deadlocks', 'most rows locked', 'heartbeats refused'], $rows);
}
if ($rate !== null) {
    $markdown .= "## Renewals a second\n\nAs many as the server takes, by connections; each client renews a run of its own without a pause. Server and clients share the {$rate['about']['cores']} cores.\n\n";
    $connections = array_keys(reset($rate['rates'])['module']);
    $rows = [];
    foreach ($rate['rates'] as $label => $variants) {
        foreach ($variants as $variant => $row) {
            $rows[] = [$label, SHORT[$variant], ...array_map(static fn (array $cell): string => number_format($cell['rate'], 0, '.', ' '), array_values($row))];
        }
    }
    $markdown .= table(['server', 'clients', ...array_map(static fn (int $number): string => $number === 1 ? '1 connection' : (string) $number, $connections)], $rows);
    $rows = [];
    foreach ($rate['rates'] as $label => $variants) {
        $rows[] = [$label, ...array_map(static fn (array $cell): string => amount($cell['p50'], 'µs') . ', ' . amount($cell['fsyncs'], ''), array_values($variants['module'])), amount(max(array_column($variants['module'], 'log bytes')), 'B')];
    }
    $markdown .= "What a renewal of the module took (median), how many `fsync`s of the storage engine came on one, and bytes of the binary log, or between the nodes.\n\n"
        . table(['server', ...array_map(static fn (int $number): string => $number === 1 ? '1 connection' : (string) $number, $connections), 'log'], $rows);
}
file_put_contents("$folder/results.md", $markdown);

// ---- plots --------------------------------------------------------------------------------------
$of = static function (array $groups, string $field) use ($present): array {
    $plotted = [];
    foreach ($groups as $name => $variants) {
        foreach (array_intersect_key($present, $variants) as $variant => $_) {
            $plotted[$name][$variant] = max(1e-3, (float) $variants[$variant][$field]);
        }
    }

    return $plotted;
};
$machine = "{$about['server']}, PHP {$about['php']}, {$about['cores']} cores; median, logarithmic scale, shorter is better";
$default = static fn (array $groups): array => array_map(static fn (array $modes): array => $modes['default'], $groups);
file_put_contents("$folder/operations.svg", bars('One run: wall time of a call', $machine, 'µs', $of(array_map(static fn (array $modes): array => $modes['relaxed'], $results['operations']), 'wall'), $present));
$sizes = [];
foreach ($default($results['reap']) as $size => $variants) {
    $sizes[number_format((float) $size, 0, '.', ' ') . ' stale runs'] = $variants;
}
file_put_contents("$folder/reap.svg", bars('Reaping stale runs with payloads of 20 KiB: wall time', $machine, 'µs', $of($sizes, 'wall'), $present));
file_put_contents("$folder/memory.svg", bars('Reaping stale runs with payloads of 20 KiB: peak memory of the client', $machine, 'KiB', $of($sizes, 'peak'), $present));
$classes = array_map(static fn (array $variants): array => array_map(static fn (array $row): float => $row['ns'], $variants), $results['classify']);
file_put_contents("$folder/classify.svg", bars('Classification of a failure, one call', $machine, 'ns', $classes, array_intersect_key(['plain' => 'ladder in PHP', 'module' => 'c module', 'ffi' => 'd FFI'], $classes['plain'])));
if ($scale !== null) {
    $groups = [];
    foreach (['without key', 'with key'] as $key) {
        foreach (['p50' => 'median', 'p99' => '99 %', 'max' => 'worst'] as $field => $name) {
            $groups["$name, $key"] = array_filter(['doctrine' => $scale[$key]['heartbeats']['doctrine'][$field] ?? 0, 'module' => $scale[$key]['heartbeats']['module'][$field], 'limit' => $scale[$key]['heartbeats']['none'][$field]]);
        }
    }
    file_put_contents("$folder/scale.svg", bars('50 live heartbeats while two reapers drain 10 000 stale of 100 000 running runs', $machine, 'µs', $groups, ['doctrine' => 'beside reapers a', 'module' => 'beside reapers c', 'limit' => 'no reaper']));
}
echo $markdown;
