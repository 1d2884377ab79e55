--TEST--
dueRuns(): queued runs with a request whose backoff has elapsed, by crdate and uid; nothing is written
--EXTENSIONS--
nrllm_runtime
mysqli
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$now = 1800000000;
foreach ([true, false] as $queuedAt) {
    echo $queuedAt ? "with queued_at\n" : "without queued_at\n";
    $db = new TestDb(['queuedAt' => $queuedAt]);
    $runtime = $db->runtime();
    $runs = [
        'c' => $db->insert(['crdate' => 3, 'tstamp' => $now - 30, 'requeue_count' => 1]),
        'a' => $db->insert(['crdate' => 1, 'tstamp' => $now]),
        'b' => $db->insert(['crdate' => 2, 'tstamp' => $now - 600, 'requeue_count' => 4294967295]),
        'd' => $db->insert(['crdate' => 3, 'tstamp' => $now - 120, 'requeue_count' => 3]),
        '1 s too early' => $db->insert(['crdate' => 1, 'tstamp' => $now - 29, 'requeue_count' => 1]),
        '1 s too early, 3' => $db->insert(['crdate' => 1, 'tstamp' => $now - 119, 'requeue_count' => 3]),
        'without a request' => $db->insert(['crdate' => 1, 'queued_request' => null]),
        'empty' => $db->insert(['crdate' => 1, 'queued_request' => '']),
        'running' => $db->running($now),
        'failed' => $db->insert(['status' => 'failed']),
    ];
    $print = static function (string $label, array $list) use ($runs): void {
        echo "  $label: ", implode(', ', array_map(static fn (array $r): string => array_search($r['uid'], $runs, true) . " ({$r['requeueCount']}, {$r['queuedSeconds']} s)", $list)) ?: '-', "\n";
    };
    $before = array_map($db->row(...), $runs);
    $all = $runtime->dueRuns(10, $now);
    $print('now', $all);
    var_dump(array_keys($all[0]) === ['uid', 'uuid', 'requeueCount', 'queuedSeconds'], $all[0]['uuid'] === $before['a']['uuid']);
    $print('two', $runtime->dueRuns(2, $now));
    $print('a second later', $runtime->dueRuns(limit: 10, now: $now + 1));
    $print('at 0', $runtime->dueRuns(10, 0));
    check(array_map($db->row(...), $runs) === $before, 'nothing is written');
    if ($queuedAt) {
        $db->query('UPDATE tx_nrllm_agentrun SET queued_at = ? WHERE uid = ?', [$now - 29, $runs['c']]);
        $db->query('UPDATE tx_nrllm_agentrun SET queued_at = ?, tstamp = ? WHERE uid = ?', [$now - 200, $now + 500, $runs['d']]);
        $print('by queued_at', $runtime->dueRuns(10, $now));
    }
}
echo "a worker without a bus\n";
$db = new TestDb();
$runtime = $db->runtime();
for ($i = 0; $i < 12; $i++) {
    $db->insert(['crdate' => $i, 'tstamp' => time()]);
}
$done = 0;
while (($runs = $runtime->dueRuns()) !== []) {
    echo '  ', count($runs), "\n";
    foreach ($runs as $run) {
        $done += (int) $runtime->claimQueued($run['uid'], 'worker:a', time() + 60);
    }
}
var_dump($done);
?>
--EXPECT--
with queued_at
  now: a (0, 0 s), b (4294967295, 600 s), c (1, 30 s), d (3, 120 s)
bool(true)
bool(true)
  two: a (0, 0 s), b (4294967295, 600 s)
  a second later: a (0, 1 s), 1 s too early (1, 30 s), 1 s too early, 3 (3, 120 s), b (4294967295, 601 s), c (1, 31 s), d (3, 121 s)
  at 0: -
  by queued_at: a (0, 0 s), b (4294967295, 600 s), d (3, 200 s)
without queued_at
  now: a (0, 0 s), b (4294967295, 600 s), c (1, 30 s), d (3, 120 s)
bool(true)
bool(true)
  two: a (0, 0 s), b (4294967295, 600 s)
  a second later: a (0, 1 s), 1 s too early (1, 30 s), 1 s too early, 3 (3, 120 s), b (4294967295, 601 s), c (1, 31 s), d (3, 121 s)
  at 0: -
a worker without a bus
  10
  2
int(12)
