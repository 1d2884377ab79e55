--TEST--
keepLease(): a step() between the pause of the renewal and the deadline resumes the renewal
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
$uid = $db->running(time() + 100);
$lease = $runtime->keepLease($uid, 'worker:a', 4 * SLOW, ['everyMs' => 200 * SLOW, 'maxSilentSeconds' => SLOW]);
check(until(static fn (): bool => $lease->lastError() !== null), 'the renewal pauses');
$heartbeats = $lease->beats();
echo $lease->state(), ': ', $lease->lastError(), "\n";
$lease->step();
check(until(static fn (): bool => $lease->beats() > $heartbeats + 1), 'the renewal is resumed');
echo $lease->state(), ' ', var_export($lease->lastError(), true), "\n";
check($lease->remainingMs() > 3000 * SLOW, 'the deadline has moved');
?>
--EXPECTF--
held: no step() for %d s (maxSilentSeconds): the renewal is paused and the lease expires; a step() before that resumes it
held NULL
