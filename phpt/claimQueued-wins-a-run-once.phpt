--TEST--
claimQueued(): wins a queued run once, changes only the columns of a claim, and refuses every other status
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
$runtime = $db->runtime();
$uid = $db->insert(['requeue_count' => 2, 'queued_at' => 1000, 'iterations' => 4, 'pending_effect' => '']);
$before = $db->row($uid);
$start = time();
var_dump($runtime->claimQueued(runUid: $uid, claimedBy: 'worker:a', leaseExpires: 2000000000));
$end = time();
$after = $db->row($uid);
foreach (['started_at', 'tstamp'] as $column) {
    check($after[$column] >= $start && $after[$column] <= $end, "$column is now");
    $after[$column] = 'now';
}
echo TestDb::changes($before, $after);
$held = $db->row($uid);
echo "again, by the same and by another:\n";
var_dump($runtime->claimQueued($uid, 'worker:a', 2000000001), $runtime->claimQueued($uid, 'worker:b', 2000000001), $db->row($uid) === $held);
echo "other statuses, no row:\n";
foreach (['running', 'waiting_for_approval', 'waiting_for_input', 'completed', 'failed', 'cancelled', '', 'unheard_of'] as $status) {
    $other = $db->insert(['status' => $status]);
    $row = $db->row($other);
    $claimed = $runtime->claimQueued($other, 'worker:a', 2000000000);
    check(!$claimed && $db->row($other) === $row, "'$status' is left alone");
}
var_dump($runtime->claimQueued(4000000000, 'worker:a', 2000000000));
echo "limits:\n";
$owner = str_repeat('é', 64);
$uid = $db->insert();
var_dump($runtime->claimQueued($uid, $owner, 4294967295), $db->row($uid)['claimed_by'] === $owner, $db->row($uid)['lease_expires']);
?>
--EXPECT--
bool(true)
status: 'queued' -> 'running'
claimed_by: '' -> 'worker:a'
lease_expires: '0' -> '2000000000'
started_at: '0' -> 'now'
tstamp: '1000' -> 'now'
again, by the same and by another:
bool(false)
bool(false)
bool(true)
other statuses, no row:
bool(false)
limits:
bool(true)
bool(true)
string(10) "4294967295"
