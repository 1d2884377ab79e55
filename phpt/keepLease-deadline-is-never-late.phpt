--TEST--
keepLease(): the client's deadline is never later than the row's, also when replies are slow: it counts from the send
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
foreach (['caller', 'database'] as $clock) {
    $db = new TestDb();
    $runtime = $db->runtime(['clock' => $clock]);
    $uid = $db->running(time() + 100);
    $lease = $runtime->keepLease($uid, 'worker:a', 4 * SLOW, ['everyMs' => 1500 * SLOW]);
    $worker = $db->connect();
    $latest = -INF;
    for ($end = ms() + 4000 * SLOW; ms() < $end;) {
        // Delayed, so that the reply to a heartbeat is late.
        $worker->begin_transaction();
        $worker->query("SELECT uid FROM tx_nrllm_agentrun WHERE uid = $uid FOR UPDATE");
        for ($held = ms() + 900; ms() < $held; usleep(10000)) {
            // Read before the row: a heartbeat between the two only moves the row's expiry on. A
            // run is stale when its lease expires before the full second.
            $deadline = microtime(true) + $lease->remainingMs() / 1000;
            $latest = max($latest, $deadline - (int) $db->value('SELECT lease_expires FROM tx_nrllm_agentrun WHERE uid = ?', [$uid]));
        }
        $worker->commit();
        usleep(20000);
    }
    check($lease->isHeld() && $lease->beats() > 2, 'it was renewed all the same');
    echo $clock, ': ', $latest < 1.0 ? 'never later' : "$latest s later than the row's end", "\n";
}
?>
--EXPECT--
caller: never later
database: never later
