--TEST--
reap(): only running runs whose lease has expired are handled, whatever `now` is
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
$runtime = $db->runtime();
$now = 1800000000;
$others = [
    'lease is now' => $db->running($now),
    'lease is later' => $db->running($now + 1),
    'no lease' => $db->running(0),
    'no lease, no owner' => $db->running(0, ['claimed_by' => '']),
    'largest lease' => $db->running(4294967295),
];
foreach (['queued', 'waiting_for_approval', 'waiting_for_input', 'completed', 'failed', 'cancelled'] as $status) {
    $others["'$status'"] = $db->insert(['status' => $status, 'claimed_by' => 'worker:a', 'lease_expires' => 5]);
}
$stale = $db->running($now - 1);
$before = array_map($db->row(...), $others);
foreach ([0, 5, $now - 1] as $early) {
    check(count($runtime->reap(50, $early)) === 0, "nothing is stale at $early");
}
$report = $runtime->reap(50, $now);
printf("%s; skipped %d\n", implode(' ', array_map(static fn (array $r): string => $r['uid'] === $stale ? 'the stale one' : 'another', $report->requeued())), count($report->skipped()));
foreach ($others as $label => $uid) {
    check($db->row($uid) === $before[$label], "$label is as it was");
}
// Without `now` the clock counts.
$old = $db->running(time() - 2);
$fresh = $db->running(time() + 30);
var_dump(array_column($runtime->reap()->requeued(), 'uid') === [$old], $db->row($fresh)['status']);
?>
--EXPECT--
the stale one; skipped 0
bool(true)
string(7) "running"
