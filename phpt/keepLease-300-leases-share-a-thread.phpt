--TEST--
keepLease(): 300 leases at once share one heartbeat thread and one connection
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
$leases = [];
for ($i = 0; $i < 300; $i++) {
    $leases[] = $runtime->keepLease($db->running(time() + 100), 'worker:a', 10 * SLOW, ['everyMs' => 1000 * SLOW + $i]);
}
check(until(static fn (): bool => min(array_map(static fn (NrLlmLease $l): int => $l->beats(), $leases)) >= 2), 'each is renewed');
echo count(array_filter($leases, static fn (NrLlmLease $l): bool => $l->isHeld())), ' held, threads ', threads(), ', connections ', count(connections($db)), "\n";
unset($leases[0]);
array_pop($leases)->release();
echo 'threads ', threads(), "\n";
$leases = [];
echo 'threads ', threads(), "\n";
?>
--EXPECT--
300 held, threads 2, connections 1
threads 2
threads 1
