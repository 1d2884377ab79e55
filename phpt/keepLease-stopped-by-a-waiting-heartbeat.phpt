--TEST--
keepLease(): a heartbeat that waited for the transaction that completes the run finds the run completed
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$uid = $db->running(time() + 100);
$lease = $db->runtime()->keepLease($uid, 'worker:a', 6 * SLOW, ['everyMs' => 1000 * SLOW]);
$worker = $db->connect();
$worker->begin_transaction();
$worker->query("UPDATE tx_nrllm_agentrun SET status = 'completed', claimed_by = '', lease_expires = 0 WHERE uid = $uid");
usleep(1200000 * SLOW);
$worker->commit();
check(until(static fn (): bool => $lease->state() === 'stopped'), 'stopped');
echo $db->line($uid, 'status', 'lease_expires'), "\n";
?>
--EXPECT--
status='completed' lease_expires='0'
