--TEST--
keepLease(): when the server kills the connection again and again, the lease stays held, each time on a new one
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
$uid = $db->running(time() + 100);
$lease = $runtime->keepLease($uid, 'worker:a', 3 * SLOW, ['everyMs' => 100 * SLOW]);
// From now on the connection of the heartbeats is the only one.
$runtime->close();
for ($i = 0; $i < 5; $i++) {
    $heartbeats = $lease->beats();
    check(until(static fn (): bool => $lease->beats() > $heartbeats && count(connections($db)) === 1), 'heartbeats are sent on one connection');
    [$id] = connections($db);
    $db->link()->query("KILL $id");
    check(until(static fn (): bool => !in_array($id, connections($db), true)), 'the connection is gone');
    $heartbeats = $lease->beats();
    check(until(static fn (): bool => $lease->beats() > $heartbeats), 'heartbeats continue');
    check($lease->isHeld(), 'and is held');
}
echo $lease->state(), ' ', var_export($lease->lastError(), true), "\n";
$lease->release();
check(until(static fn (): bool => connections($db) === []), 'no connection is left');
echo 'threads ', threads(), "\n";
?>
--EXPECT--
held NULL
threads 1
