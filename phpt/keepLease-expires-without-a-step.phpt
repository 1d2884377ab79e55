--TEST--
keepLease(): without a step() within maxSilentSeconds the renewal pauses, the lease expires, and the run is reaped
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
$uid = $db->running(time() + 100);
$lease = $runtime->keepLease($uid, 'worker:a', 2 * SLOW, ['everyMs' => 200 * SLOW, 'maxSilentSeconds' => SLOW]);
check(until(static fn (): bool => $lease->lastError() !== null), 'the renewal pauses');
[$state, $heartbeats] = [$lease->state(), $lease->beats()];
$reaped = [];
check(until(static function () use ($runtime, &$reaped): bool {
    array_push($reaped, ...array_column($runtime->reap()->requeued(), 'uid'));
    return $reaped !== [];
}), 'the run is reaped');
echo 'paused: ', $state, "\nexpired: ", $lease->state(), ', ', $lease->beats() - $heartbeats, " heartbeats since\n";
echo $lease->lastError(), "\n";
thrown('step', $lease->step(...));
check($reaped === [$uid], 'the run itself');
echo $db->line($uid, 'status', 'requeue_count'), "\n";
?>
--EXPECTF--
paused: held
expired: lost, 0 heartbeats since
no step() for %d s (maxSilentSeconds): the renewal is paused and the lease expires; a step() before that resumes it
step: NrLlmLeaseLostException: the lease of 'worker:a' on run 1 is lost: its deadline passed before a heartbeat succeeded (no step() for %d s (maxSilentSeconds): the renewal is paused and the lease expires; a step() before that resumes it)
status='queued' requeue_count='1'
