--TEST--
A kept lease: renewed before keepLease() returns, then by the thread; what its methods say; released, and its thread gone
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

// The thread beats at the interval that is asked for, and not after the release.
$lease = $runtime->keepLease($uid, 'worker:a', 2 * SLOW, ['everyMs' => 100 * SLOW]);
check(until(static fn (): bool => $lease->beats() >= 5), 'it beats');
check($lease->state() === 'held', 'and is held');
check($db->row($uid)['lease_expires'] >= time() + SLOW, 'the beats are in the row');
$lease->release();
$db->query('UPDATE tx_nrllm_agentrun SET lease_expires = 77 WHERE uid = ?', [$uid]);
$beats = $lease->beats();
usleep(400000 * SLOW);
echo $db->line($uid, 'lease_expires'), ' ', $lease->beats() - $beats, " more beats\n";

// Destroyed: released. The variable is what holds it.
$lease = $runtime->keepLease($uid, 'worker:a', 2 * SLOW, ['everyMs' => 100 * SLOW]);
echo threads(), ' ';
unset($lease);
echo threads(), "\n";
$runtime->keepLease($uid, 'worker:a', 2 * SLOW);
echo threads(), "\n";
?>
--EXPECT--
held 1 uid worker:a
bool(true)
NULL
stopped 0 threads 1
bool(false)
step: NrLlmLeaseLostException: the lease of 'worker:a' on run 1 is not kept any more: it was released
lease_expires='77' 0 more beats
2 1
1
