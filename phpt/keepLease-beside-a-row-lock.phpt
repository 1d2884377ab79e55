--TEST--
The worker's own transaction holds its run's row: beats wait for no more than their limit, unknown and never lost; other leases go on
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
$locked = $db->running(time() + 100);
$other = $db->running(time() + 100);
// A fifth of the lease: a heartbeat that waits for a whole interval must not cost the other lease its own.
$lease = $runtime->keepLease($locked, 'worker:a', 10 * SLOW, ['everyMs' => 1200 * SLOW]);
$free = $runtime->keepLease($other, 'worker:a', 3 * SLOW, ['everyMs' => 1000 * SLOW]);
$worker = $db->connect();
$worker->begin_transaction();
$worker->query("UPDATE tx_nrllm_agentrun SET iterations = 1 WHERE uid = $locked");
$states = [];
$end = ms() + 5000 * SLOW;
while (ms() < $end) {
    $states[$lease->state()] = true;
    check($free->isHeld(), 'the other lease is held');
    usleep(5000);
}
echo implode(' ', array_keys($states)), "\n";
echo $lease->lastError() === null ? 'no error' : 'an error', "\n";
check($lease->remainingMs() > 2000 * SLOW && $lease->remainingMs() < 6000 * SLOW, 'the deadline did not move');
$worker->commit();
check(until(static fn (): bool => $lease->state() === 'held'), 'held again');
$lease->step();
echo $lease->state(), ' ', $free->state(), "\n";
check(count(connections($db)) <= 3, 'one connection for all leases');
// The worker's last word is a transaction that settles the run: the heartbeat that waited for it finds it settled.
$worker->begin_transaction();
$worker->query("UPDATE tx_nrllm_agentrun SET status = 'completed', claimed_by = '', lease_expires = 0 WHERE uid = $other");
usleep(1200000 * SLOW);
$worker->commit();
check(until(static fn (): bool => $free->state() === 'stopped'), 'stopped');
echo $db->line($other, 'status', 'lease_expires'), "\n";
?>
--EXPECT--
held unknown
an error
held held
status='completed' lease_expires='0'
