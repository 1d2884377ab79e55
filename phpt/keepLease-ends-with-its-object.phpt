--TEST--
keepLease(): the destruction of the lease's object ends the heartbeat thread, also where the result is not stored
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
$uid = $db->running(time() + 100);
$lease = $runtime->keepLease($uid, 'worker:a', 2 * SLOW, ['everyMs' => 100 * SLOW]);
echo 'kept: ', threads(), " threads\n";
unset($lease);
echo 'destroyed: ', threads(), "\n";
$runtime->keepLease($uid, 'worker:a', 2 * SLOW);
echo 'not stored: ', threads(), "\n";
?>
--EXPECT--
kept: 2 threads
destroyed: 1
not stored: 1
