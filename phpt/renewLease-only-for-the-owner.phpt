--TEST--
renewLease(): only the owner of a running run renews, also where nothing changes; only lease and tstamp are written
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
$runtime = $db->runtime();
$uid = $db->running(1500, ['pending_effect' => 'read_only', 'requeue_count' => 1]);
$before = $db->row($uid);
// Ten times the same values, most of them within one second: the server changes no row, and the
// renewal succeeds.
for ($i = 0; $i < 10; $i++) {
    check($runtime->renewLease(runUid: $uid, claimedBy: 'worker:a', leaseExpires: 2000000000), "renewal $i");
}
$after = $db->row($uid);
check(abs($after['tstamp'] - time()) <= 1, 'tstamp is now');
$after['tstamp'] = 'now';
echo TestDb::changes($before, $after);
$held = $db->row($uid);
echo "not the owner:\n";
foreach (['worker:b', 'WORKER:A', 'worker:a ', 'wörker:a', "worker:a\0", "worker:\u{200b}a"] as $owner) {
    check(!$runtime->renewLease($uid, $owner, 2100000000), json_encode($owner));
}
check(array_diff_key($db->row($uid), ['tstamp' => 0]) === array_diff_key($held, ['tstamp' => 0]), 'the row is as it was');
echo "a shorter lease is the caller's right:\n";
var_dump($runtime->renewLease($uid, 'worker:a', 1), $db->row($uid)['lease_expires']);
echo "an expired lease that no other worker has claimed:\n";
var_dump($runtime->renewLease($uid, 'worker:a', 2000000000));
foreach (['queued', 'waiting_for_approval', 'completed', 'failed', 'cancelled'] as $status) {
    $other = $db->insert(['status' => $status, 'claimed_by' => 'worker:a', 'lease_expires' => 1500]);
    $row = $db->row($other);
    check(!$runtime->renewLease($other, 'worker:a', 2000000000) && $db->row($other) === $row, $status);
}
var_dump($runtime->renewLease(4000000000, 'worker:a', 2000000000));
?>
--EXPECT--
lease_expires: '1500' -> '2000000000'
tstamp: '1000' -> 'now'
not the owner:
a shorter lease is the caller's right:
bool(true)
string(1) "1"
an expired lease that no other worker has claimed:
bool(true)
bool(false)
