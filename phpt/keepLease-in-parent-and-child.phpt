--TEST--
Fork: a child keeps a lease while the parent's heartbeat thread starts, ends and starts again
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
[$uid, $own] = [$db->running(time() + 100), $db->running(time() + 100)];
$options = ['everyMs' => 100 * SLOW];
// The sessions and the count of forks exist before the fork.
$runtime->keepLease($uid, 'worker:a', 3 * SLOW, $options)->release();
$child = Party::start($db, static function (Party $parent) use ($runtime, $own, $options): int {
    $lease = $runtime->keepLease($own, 'worker:a', 3 * SLOW, $options);
    $parent->say('kept');
    $parent->hear();
    check_renewed($lease);
    $parent->say($lease->state());
    return 0;
});
$child->hear();
$lease = $runtime->keepLease($uid, 'worker:a', 3 * SLOW, $options);
check_renewed($lease);
$lease->release();
$lease = $runtime->keepLease($uid, 'worker:a', 3 * SLOW, $options);
$child->say('continue');
echo $child->hear(), ' ', $child->end(), "\n";
check_renewed($lease);
?>
--EXPECT--
held 0
