--TEST--
keepLease(): heartbeats are sent at the interval that is requested, and none after release()
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
$uid = $db->running(time() + 1);
$lease = $runtime->keepLease($uid, 'worker:a', 2 * SLOW, ['everyMs' => 100 * SLOW]);
check(until(static fn (): bool => $lease->beats() >= 5), 'heartbeats are sent');
check($lease->state() === 'held', 'and the lease is held');
check($db->row($uid)['lease_expires'] >= time() + SLOW, 'the heartbeats are in the row');
$lease->release();
$db->query('UPDATE tx_nrllm_agentrun SET lease_expires = 77 WHERE uid = ?', [$uid]);
$heartbeats = $lease->beats();
usleep(400000 * SLOW);
echo $db->line($uid, 'lease_expires'), ', ', $lease->beats() - $heartbeats, " heartbeats after the release\n";
?>
--EXPECT--
lease_expires='77', 0 heartbeats after the release
