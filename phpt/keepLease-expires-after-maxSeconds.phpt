--TEST--
keepLease(): after maxSeconds the renewal ends for good, whatever steps are made, and the run is reaped
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
$uid = $db->running(time() + 100);
$lease = $runtime->keepLease($uid, 'worker:a', 2 * SLOW, ['everyMs' => 200 * SLOW, 'maxSeconds' => 2 * SLOW]);
$reaped = [];
check(until(static function () use ($runtime, $lease, &$reaped): bool {
    $lease->isHeld() && $lease->step();
    array_push($reaped, ...array_column($runtime->reap()->requeued(), 'uid'));
    return $reaped !== [];
}), 'the run is reaped');
echo $lease->state(), ': ', $lease->lastError(), "\n";
check($reaped === [$uid], 'the run itself');
echo $db->line($uid, 'status', 'requeue_count'), "\n";
?>
--EXPECTF--
lost: kept for %d s (maxSeconds): the renewal has ended and the lease expires
status='queued' requeue_count='1'
