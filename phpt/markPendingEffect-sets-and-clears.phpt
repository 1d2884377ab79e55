--TEST--
markPendingEffect(): the owner of a running run sets and clears the write fence and renews the lease; unknown effects are stored
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
$runtime = $db->runtime();
$uid = $db->running(1500);
$before = $db->row($uid);
var_dump($runtime->markPendingEffect(runUid: $uid, claimedBy: 'worker:a', effect: 'non_idempotent_write', leaseExpires: 2000000000));
$after = $db->row($uid);
check(abs($after['tstamp'] - time()) <= 1, 'tstamp is now');
$after['tstamp'] = 'now';
echo TestDb::changes($before, $after);
foreach (['non_idempotent_write', 'brand_new_effect', str_repeat('e', 32), ''] as $effect) {
    check($runtime->markPendingEffect($uid, 'worker:a', $effect, 2000000000), "'$effect'");
    check($db->row($uid)['pending_effect'] === $effect, "'$effect' is stored");
}
$held = $db->row($uid);
foreach (['worker:b', 'WORKER:A', 'worker:a '] as $owner) {
    check(!$runtime->markPendingEffect($uid, $owner, 'read_only', 2100000000), json_encode($owner));
}
check($db->row($uid) === $held, 'the row is as it was');
foreach (['queued', 'waiting_for_input', 'completed', 'cancelled'] as $status) {
    $other = $db->insert(['status' => $status, 'claimed_by' => 'worker:a', 'lease_expires' => 1500]);
    $row = $db->row($other);
    check(!$runtime->markPendingEffect($other, 'worker:a', 'read_only', 2000000000) && $db->row($other) === $row, $status);
}
var_dump($runtime->markPendingEffect(4000000000, 'worker:a', '', 2000000000));
thrown('33 characters', fn () => $runtime->markPendingEffect($uid, 'worker:a', str_repeat('e', 33), 2000000000));
thrown('not UTF-8', fn () => $runtime->markPendingEffect($uid, 'worker:a', "\xff", 2000000000));
thrown('lease 0', fn () => $runtime->markPendingEffect($uid, 'worker:a', '', 0));
thrown_class('effect null', fn () => $runtime->markPendingEffect($uid, 'worker:a', null, 2000000000));
?>
--EXPECT--
bool(true)
lease_expires: '1500' -> '2000000000'
pending_effect: '' -> 'non_idempotent_write'
tstamp: '1000' -> 'now'
bool(false)
33 characters: ValueError: $effect must be at most 32 characters long, 33 given
not UTF-8: ValueError: $effect must be UTF-8, other bytes given
lease 0: ValueError: $leaseExpires must be a unix time in seconds from 1 to 4294967295, 0 given
effect null: TypeError
