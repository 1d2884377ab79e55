--TEST--
reap(): a locked run is skipped as contended, does not use up the limit, and is handled by the next call
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
foreach ([false, true] as $key) {
    $db = new TestDb(['key' => $key]);
    $runtime = $db->runtime();
    $runs = [];
    for ($i = 0; $i < 6; $i++) {
        $runs[] = $db->running(1000 + $i);
    }
    $other = $db->connect();
    $other->begin_transaction();
    $other->query("UPDATE tx_nrllm_agentrun SET iterations = 9 WHERE uid IN ($runs[0], $runs[2])");
    $start = hrtime(true);
    $report = $runtime->reap(3);
    $ms = (hrtime(true) - $start) / 1e6;
    check(array_column($report->requeued(), 'uid') === [$runs[1], $runs[3], $runs[4]], 'the others: ' . json_encode($report));
    check(array_column($report->skipped(), 'uid') === [$runs[0], $runs[2]], 'skipped: ' . json_encode($report));
    check(array_column($report->skipped(), 'reason') === ['contended', 'contended'], 'contended');
    check($report->hasMore(), 'one more');
    check($ms < 1000 * patience(), "without waiting: $ms ms");
    $other->rollback();
    check(array_column($runtime->reap()->requeued(), 'uid') === [$runs[0], $runs[2], $runs[5]], 'the next tick');
    echo $key ? 'with' : 'without', " the key: ok\n";
}
?>
--EXPECT--
without the key: ok
with the key: ok
