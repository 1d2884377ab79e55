--TEST--
strandedRuns(): queued runs without a wake-up, oldest first, each once within the time; other runs are unchanged
--EXTENSIONS--
nrllm_runtime
mysqli
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
foreach ([true, false] as $queuedAt) {
    echo $queuedAt ? "with queued_at\n" : "without queued_at\n";
    $db = new TestDb(['queuedAt' => $queuedAt]);
    $runtime = $db->runtime();
    $now = time();
    $runs = [
        'third' => $db->insert(['crdate' => 30, 'tstamp' => $now - 301]),
        'first' => $db->insert(['crdate' => 10, 'tstamp' => $now - 500]),
        'second' => $db->insert(['crdate' => 20, 'tstamp' => $now - 421, 'requeue_count' => 3]),
        'marked 300 s ago' => $db->insert(['crdate' => 1, 'tstamp' => $now - 300]),
        'due 300 s ago' => $db->insert(['crdate' => 1, 'tstamp' => $now - 420, 'requeue_count' => 3]),
        'without a request' => $db->insert(['crdate' => 1, 'queued_request' => null]),
        'with an empty request' => $db->insert(['crdate' => 1, 'queued_request' => '']),
        'running' => $db->running($now - 1000),
        'waiting' => $db->insert(['status' => 'waiting_for_approval']),
        'cancelled' => $db->insert(['status' => 'cancelled']),
    ];
    if ($queuedAt) {
        // Requeued long ago and marked by a sweep since; requeued just now.
        $db->query('UPDATE tx_nrllm_agentrun SET queued_at = ? WHERE uid = ?', [$now - 400, $runs['first']]);
        $runs['queued 300 s ago'] = $db->insert(['crdate' => 1, 'queued_at' => $now - 300]);
    }
    $rows = static fn (): array => array_map($db->row(...), $runs);
    $print = static function (string $label, array $list) use ($runs): void {
        echo "  $label: ", implode(', ', array_map(static fn (array $r): string => array_search($r['uid'], $runs, true) . " ({$r['requeueCount']}, {$r['queuedSeconds']} s)", $list)) ?: '-', "\n";
    };
    $before = $rows();
    $first = $runtime->strandedRuns(300, 2, $now);
    $print('two', $first);
    var_dump(array_keys($first[0]) === ['uid', 'uuid', 'requeueCount', 'queuedSeconds', 'wokenUp'], $first[0]['uuid'] === $before['first']['uuid'], $first[0]['wokenUp']);
    $print('the rest', $runtime->strandedRuns(300, 50, $now));
    $print('again', $runtime->strandedRuns(300, 50, $now));
    foreach ($rows() as $name => $row) {
        $changes = str_replace("'", '', TestDb::changes($before[$name], $row));
        $expected = in_array($name, ['first', 'second', 'third'], true) ? "tstamp: {$before[$name]['tstamp']} -> $now\n" : '';
        check($changes === $expected, "$name: $changes");
    }
    $print('later', array_filter($runtime->strandedRuns(300, 50, $now + 421), static fn (array $r): bool => in_array($r['uid'], [$runs['first'], $runs['second'], $runs['third']], true)));
}
?>
--EXPECT--
with queued_at
  two: first (0, 400 s), second (3, 421 s)
bool(true)
bool(true)
bool(false)
  the rest: third (0, 301 s)
  again: -
  later: first (0, 821 s), second (3, 421 s), third (0, 421 s)
without queued_at
  two: first (0, 500 s), second (3, 421 s)
bool(true)
bool(true)
bool(false)
  the rest: third (0, 301 s)
  again: -
  later: first (0, 421 s), second (3, 421 s), third (0, 421 s)
