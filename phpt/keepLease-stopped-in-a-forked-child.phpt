--TEST--
Fork: a kept lease is stopped in the child, and the parent's heartbeats continue when the child releases its copy
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$lease = $db->runtime()->keepLease($db->running(time() + 100), 'worker:a', 3 * SLOW, ['everyMs' => 100 * SLOW]);
check_renewed($lease);
$child = Party::start($db, static function (Party $parent) use ($lease): int {
    $step = 'no exception';
    try {
        $lease->step();
    } catch (NrLlmLeaseLostException $error) {
        $step = $error->getMessage();
    }
    foreach ([$lease->state(), var_export($lease->isHeld(), true), $lease->remainingMs(), $lease->lastError(),
        $lease->runUid() . ' ' . $lease->claimedBy(), $step, 'threads ' . threads()] as $line) {
        $parent->say((string) $line);
    }
    $lease->release();
    return 7;
});
while (($line = $child->hear()) !== null) {
    echo $line, "\n";
}
echo $child->end(), "\n";
check_renewed($lease);
?>
--EXPECT--
stopped
false
0
it belongs to the process that this one was forked from
1 worker:a
the lease of 'worker:a' on run 1 is not kept any more: it belongs to the process that this one was forked from
threads 1
7
