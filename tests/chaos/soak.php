<?php

declare(strict_types=1);

// bin/chaos --soak SECONDS: one worker process under watch; its memory, descriptors, threads,
// prepared statements and connections stay flat.
require __DIR__ . '/servers.inc';

mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$options = getopt('', ['soak:', 'module:', 'out:', 'seed:', 'rounds:', 'seconds:', 'from:', 'quiet', 'cluster', 'library:']);
$seconds = max(10, (int) $options['soak']);
$folder = sys_get_temp_dir() . '/nrllm-chaos.' . bin2hex(random_bytes(4));
mkdir($folder, 0755);
$process = null;
register_shutdown_function(function () use (&$process, $folder): void {
    if ($process !== null) {
        proc_terminate($process, SIGKILL);
        proc_close($process);
    }
    Node::killAll();
    exec('rm -rf ' . escapeshellarg($folder));
});
pcntl_async_signals(true);
foreach ([SIGINT, SIGTERM, SIGHUP] as $signal) {
    pcntl_signal($signal, fn() => exit(130));
}
$site = new Site($folder, false);
$link = $site->nodes[0]->connect();
$link->query('CREATE DATABASE soak CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci');
$link->select_db('soak');
$sql = preg_replace('/^--.*$|^ *queued_at .*$/m', '', (string) file_get_contents(dirname(__DIR__, 2) . '/examples/schema.sql'));
foreach (explode(';', $sql) as $statement) {
    trim($statement) === '' || $link->query($statement);
}
file_put_contents("$folder/round.json", json_encode(['folder' => $folder, 'top' => dirname(__DIR__, 2), 'ports' => [$site->nodes[0]->port], 'user' => Site::USER, 'password' => Site::PASSWORD,
    'database' => 'soak', 'seed' => 1, 'lease' => 60, 'mode' => 'bus', 'clock' => 'caller', 'runs' => [], 'cancel' => [], 'holders' => []], JSON_THROW_ON_ERROR));
$load = [];
foreach (explode(' ', trim((string) getenv('NRLLM_CHAOS_EXTENSIONS'))) as $name) {
    $name === '' || array_push($load, '-d', "extension=$name");
}
$process = proc_open([PHP_BINARY, '-n', ...$load, '-d', "extension={$options['module']}", __DIR__ . '/soaked.php', "$folder/round.json", 'soaked'],
    [['file', '/dev/null', 'r'], ['file', "$folder/output", 'w'], ['file', "$folder/output", 'a']], $pipes);
$pid = proc_get_status($process)['pid'];
$samples = [];
$began = hrtime(true);
while (($at = (hrtime(true) - $began) / 1e9) < $seconds && proc_get_status($process)['running']) {
    $status = (string) @file_get_contents("/proc/$pid/status");
    $number = fn(string $key): int => preg_match("/^$key:\s+(\d+)/m", $status, $match) ? (int) $match[1] : 0;
    $server = array_column($link->query("SHOW GLOBAL STATUS WHERE Variable_name IN ('Prepared_stmt_count', 'Threads_connected')")->fetch_all(), 1, 0);
    // The first seconds are a warm-up: caches fill, the heartbeat thread starts.
    if ($at > $seconds / 5) {
        $samples[] = ['at' => round($at, 1), 'memory (MiB)' => round($number('VmRSS') / 1024, 2), 'descriptors' => count(glob("/proc/$pid/fd/*")), 'threads' => $number('Threads'),
            'prepared statements' => (int) $server['Prepared_stmt_count'], 'connections' => (int) $server['Threads_connected'] - 1];
    }
    usleep((int) max(100_000, $seconds * 1e6 / 400));
}
$alive = proc_get_status($process)['running'];
posix_kill($pid, SIGTERM);
for ($i = 0; $i < 250 && proc_get_status($process)['running']; $i++) {
    usleep(20_000);
}
$output = (string) file_get_contents("$folder/output");
$loops = 0;
foreach (glob("$folder/ledger.*") as $file) {
    foreach (file($file) as $line) {
        $loops = json_decode($line, true)['count'] ?? $loops;
    }
}
$failed = [];
$alive && $output === '' && $loops > 0 || $failed[] = "the process ended or complained: $output";
$half = intdiv(count($samples), 2);
$highest = [];
foreach (array_keys($samples[0] ?? []) as $key) {
    if ($key === 'at') {
        continue;
    }
    $first = max(array_column(array_slice($samples, 0, $half), $key));
    $second = max(array_column(array_slice($samples, $half), $key));
    $highest[$key] = "$first, then $second";
    // A leak grows with the loops; the allocator's own variation is below a MiB.
    $second <= $first + ($key === 'memory (MiB)' ? 1.0 : ($key === 'descriptors' || $key === 'threads' ? 1 : 8)) || $failed[] = "$key: $first at most in the first half, $second in the second";
}
@mkdir($options['out'], 0755, true);
$colours = ['memory (MiB)' => '#1f77b4', 'descriptors' => '#d62728', 'threads' => '#2ca02c', 'prepared statements' => '#9467bd', 'connections' => '#ff7f0e'];
$top = max([1, ...array_map(fn(array $sample): float => max(array_diff_key($sample, ['at' => 0])), $samples)]) * 1.1;
$svg = '<svg xmlns="http://www.w3.org/2000/svg" width="860" height="400" font-family="sans-serif" font-size="12"><rect width="860" height="400" fill="white"/><path d="M50 20V340H650" fill="none" stroke="black"/>';
$y = 40;
foreach ($colours as $key => $colour) {
    $points = implode(' ', array_map(fn(array $sample): string => round(50 + 600 * $sample['at'] / $seconds, 1) . ',' . round(340 - 320 * $sample[$key] / $top, 1), $samples));
    $svg .= "<polyline points=\"$points\" fill=\"none\" stroke=\"$colour\"/><text x=\"665\" y=\"$y\" fill=\"$colour\">$key</text>";
    $y += 20;
}
foreach ([0, 0.25, 0.5, 0.75, 1] as $part) {
    $svg .= '<text x="45" y="' . (344 - 320 * $part / 1.1) . '" text-anchor="end">' . round($top / 1.1 * $part) . '</text><text x="' . (50 + 600 * $part) . '" y="358" text-anchor="middle">' . round($seconds * $part) . ' s</text>';
}
file_put_contents("{$options['out']}/soak.svg", $svg . "<text x=\"50\" y=\"385\">one process, $loops loops of all operations; MariaDB {$site->version}</text></svg>\n");
file_put_contents("{$options['out']}/soak.json", json_encode(['seconds' => $seconds, 'loops' => $loops, 'server' => $site->version, 'samples' => $samples], JSON_THROW_ON_ERROR) . "\n");
echo "$loops loops in $seconds s; highest in the first and in the second half: ", implode('; ', array_map(fn(string $key): string => "$key $highest[$key]", array_keys($highest))), "\n";
array_map(fn(string $line) => print "FAILED  $line\n", $failed);
printf("%d passed, %d failed\n", 1 - (int) ($failed !== []), (int) ($failed !== []));
exit($failed === [] ? 0 : 1);
