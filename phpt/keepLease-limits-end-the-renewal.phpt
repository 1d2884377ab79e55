--TEST--
A hung job: without a step() the heartbeats end, the lease runs out and the reaper takes over; the total limit; a step in time goes on
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
$names = ['hung', 'stepping', 'total', 'late'];
$uid = array_combine($names, array_map(static fn (): int => $db->running(time() + 100), $names));
$keep = static fn (string $name, array $options): NrLlmLease => $runtime->keepLease($uid[$name], 'worker:a', 2 * SLOW, ['everyMs' => 200 * SLOW] + $options);
$start = ms();
$hung = $keep('hung', ['maxSilentSeconds' => SLOW]);
$stepping = $keep('stepping', ['maxSilentSeconds' => SLOW]);
$total = $keep('total', ['maxSilentSeconds' => SLOW, 'maxSeconds' => 2 * SLOW]);
$late = $keep('late', ['maxSilentSeconds' => SLOW]);
$reaped = [];
$ended = null;
check(until(static function () use ($runtime, $hung, $stepping, $total, $late, $start, &$reaped, &$ended): bool {
    $stepping->step();
    if ($total->isHeld()) {
        $total->step();
    }
    // Only after the heartbeats have ended, but before the deadline.
    if ($late->lastError() !== null && ms() - $start < 2500 * SLOW && ms() - $start > 1200 * SLOW) {
        $late->step();
    }
    if ($hung->lastError() !== null) {
        $ended ??= [$hung->state(), $hung->beats()];
    }
    foreach ($runtime->reap()->requeued() as $run) {
        $reaped[] = $run['uid'];
    }
    return ms() - $start > 5000 * SLOW && count($reaped) >= 3;
}), 'the reaper takes over');
echo 'hung: ', $ended[0], ' when the beats ended, ', $hung->beats() === $ended[1] ? 'none after it' : 'more after it', ', then ', $hung->state(), "\n  ", $hung->lastError(), "\n";
thrown('  step', $hung->step(...));
echo 'stepping: ', $stepping->state(), ' ', var_export($stepping->lastError(), true), "\n";
echo 'total: ', $total->state(), "\n  ", $total->lastError(), "\n";
check($late->beats() > $hung->beats() + 2, 'the beats went on after the step');
echo 'late: ', $late->state(), "\n  ", $late->lastError(), "\n";
sort($reaped);
var_dump($reaped === [$uid['hung'], $uid['total'], $uid['late']]);
foreach ($names as $name) {
    echo $name, ': ', $db->line($uid[$name], 'status', 'requeue_count'), "\n";
}
?>
--EXPECTF--
hung: held when the beats ended, none after it, then lost
  no step() for %d s (maxSilentSeconds): the renewal is paused and the lease expires; a step() before that resumes it
  step: NrLlmLeaseLostException: the lease of 'worker:a' on run 1 is lost: its deadline passed before a heartbeat succeeded (no step() for %d s (maxSilentSeconds): the renewal is paused and the lease expires; a step() before that resumes it)
stepping: held NULL
total: lost
  kept for %d s (maxSeconds): the renewal has ended and the lease expires
late: lost
  no step() for %d s (maxSilentSeconds): the renewal is paused and the lease expires; a step() before that resumes it
bool(true)
hung: status='queued' requeue_count='1'
stepping: status='running' requeue_count='0'
total: status='queued' requeue_count='1'
late: status='queued' requeue_count='1'
