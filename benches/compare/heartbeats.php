<?php

declare(strict_types=1);

namespace Bench;

// Live workers: one process per run, which renews the run's lease at an interval by the extension,
// until standard input ends.
//   php heartbeats.php SOCKET USER PASSWORD DATABASE TABLE INTERVAL_MS UID...
// Prints `ready` when each worker has sent one heartbeat, and at the end one line of JSON: the
// times of all heartbeats in ns, and how many were refused.

[, $socket, $user, $password, $database, $table, $interval] = $argv;
$uids = array_map('intval', array_slice($argv, 7));
$folder = sys_get_temp_dir() . '/nrllm-heartbeats.' . getmypid();
mkdir($folder);
$children = [];
foreach ($uids as $index => $uid) {
    [$stop, $mine] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, STREAM_IPPROTO_IP);
    $pid = pcntl_fork();
    if ($pid !== 0) {
        fclose($mine);
        $children[$pid] = $stop;
        continue;
    }
    // Closes the pipes of the other workers: held open here, they would never end.
    array_map('fclose', $children);
    fclose($stop);
    $runtime = new \NrLlmRuntime([
        'driver' => 'mysqli', 'host' => 'localhost', 'unix_socket' => $socket, 'user' => $user, 'password' => $password, 'dbname' => $database,
    ], ['table' => $table]);
    $owner = "worker:live:$uid";
    $runtime->renewLease($uid, $owner, 1_900_000_000);
    fwrite($mine, '.');
    $times = [];
    $refused = 0;
    // Spread over the interval, as workers are.
    $due = hrtime(true) + intdiv((int) $interval * 1_000_000 * ($index + 1), count($uids));
    while (true) {
        $wait = max(0, intdiv($due - hrtime(true), 1_000));
        $read = [$mine];
        $none = null;
        if (stream_select($read, $none, $none, intdiv($wait, 1_000_000), $wait % 1_000_000) !== 0) {
            break;
        }
        $start = hrtime(true);
        $held = $runtime->renewLease($uid, $owner, 1_900_000_000 + count($times));
        $times[] = hrtime(true) - $start;
        $refused += (int) !$held;
        $due = max($due + (int) $interval * 1_000_000, hrtime(true));
    }
    file_put_contents("$folder/$uid", json_encode([$times, $refused]));
    exit(0);
}
foreach ($children as $stop) {
    fread($stop, 1);
}
echo "ready\n";
stream_get_contents(STDIN);
array_map('fclose', $children);
$all = [];
$refused = $failed = 0;
foreach (array_keys($children) as $pid) {
    pcntl_waitpid($pid, $status);
    $failed += (int) ($status !== 0);
}
foreach ($uids as $uid) {
    [$times, $no] = json_decode((string) @file_get_contents("$folder/$uid"), true) ?? [[], 0];
    array_push($all, ...$times);
    $refused += $no;
    @unlink("$folder/$uid");
}
rmdir($folder);
echo json_encode(['times' => $all, 'refused' => $refused, 'failed' => $failed]), "\n";
