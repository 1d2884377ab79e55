--TEST--
keepLease(): with a step() within maxSilentSeconds the lease stays renewed, and a reaper leaves the run alone
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
$reaped = 0;
for ($end = ms() + 4000 * SLOW; ms() < $end; usleep(2000)) {
    $lease->step();
    $reaped += count($runtime->reap());
}
echo $lease->state(), ' ', var_export($lease->lastError(), true), ", $reaped reaped\n";
echo $db->line($uid, 'status', 'requeue_count'), "\n";
?>
--EXPECT--
held NULL, 0 reaped
status='running' requeue_count='0'
