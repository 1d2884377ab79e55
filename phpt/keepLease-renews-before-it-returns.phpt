--TEST--
keepLease(): the lease is renewed when the call returns; the values of its methods, held and released
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
$uid = $db->running(time() + 1, ['tstamp' => 5]);
$before = time();
$lease = $runtime->keepLease($uid, 'worker:a', 60 * SLOW);
$row = $db->row($uid);
check($row['lease_expires'] >= $before + 60 * SLOW && $row['lease_expires'] <= time() + 60 * SLOW, 'the first renewal is in the row');
check($row['tstamp'] >= $before, 'with its time');
echo $lease->state(), ' ', $lease->beats(), ' ', $lease->runUid() === $uid ? 'uid' : 'other', ' ', $lease->claimedBy(), "\n";
var_dump($lease->isHeld(), $lease->lastError());
check($lease->remainingMs() > 59000 * SLOW && $lease->remainingMs() <= 60000 * SLOW, 'the deadline is a lease ahead');
$lease->step();
$lease->release();
echo $lease->state(), ' ', $lease->remainingMs(), ' threads ', threads(), "\n";
var_dump($lease->isHeld());
thrown('step', static fn () => $lease->step());
$lease->release();
?>
--EXPECT--
held 1 uid worker:a
bool(true)
NULL
stopped 0 threads 1
bool(false)
step: NrLlmLeaseLostException: the lease of 'worker:a' on run 1 is not kept any more: it was released
