--TEST--
keepLease(): while the worker's own transaction locks the row, the lease is unknown and never lost; other leases stay held
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
// A heartbeat that waits for a whole interval must not delay the other lease's heartbeats beyond
// its deadline.
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
?>
--EXPECT--
held unknown
an error
held held
