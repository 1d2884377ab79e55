--TEST--
cancelRun(): ends one run that is not terminal, keeps its totals, clears its payloads and lease
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
$runtime = $db->runtime();
$uid = $db->running(2000000000, ['requeue_count' => 1, 'pending_effect' => 'read_only', 'suspended_state' => 's', 'iterations' => 4, 'total_tokens' => 30,
    'estimated_cost' => '0.500000', 'error_class' => 'Old', 'queued_at' => 900]);
$before = $db->row($uid);
$start = time();
var_dump($runtime->cancelRun(uuid: $before['uuid']));
$after = $db->row($uid);
foreach (['tstamp', 'finished_at'] as $column) {
    check($after[$column] >= $start && $after[$column] <= time(), "$column is now");
    $after[$column] = 'now';
}
echo TestDb::changes($before, $after);
foreach (['queued' => true, 'waiting_for_approval' => true, 'waiting_for_input' => true, 'completed' => false, 'failed' => false, 'cancelled' => false] as $status => $expected) {
    $uid = $db->insert(['status' => $status]);
    $row = $db->row($uid);
    check($runtime->cancelRun($row['uuid']) === $expected, $status);
    check(($db->row($uid) === $row) === !$expected, "row of $status");
}
var_dump($runtime->cancelRun('no-such-uuid'), $runtime->cancelRun(TestDb::uuid()));
// The key over the uuid is not unique: with two rows of one uuid, a call ends one of them.
$uuid = TestDb::uuid();
$twins = [$db->insert(['uuid' => $uuid]), $db->insert(['uuid' => $uuid])];
var_dump($runtime->cancelRun($uuid), count(array_filter($twins, static fn (int $uid): bool => $db->row($uid)['status'] === 'cancelled')));
thrown('empty', fn () => $runtime->cancelRun(''));
thrown('37 characters', fn () => $runtime->cancelRun(str_repeat('a', 37)));
thrown('not UTF-8', fn () => $runtime->cancelRun("\xff"));
?>
--EXPECT--
bool(true)
status: 'running' -> 'cancelled'
error_class: 'Old' -> ''
termination_reason: '' -> 'cancelled'
suspended_state: 's' -> ''
queued_request: '{"prompt":"hello"}' -> ''
claimed_by: 'worker:a' -> ''
lease_expires: '2000000000' -> '0'
finished_at: '0' -> 'now'
tstamp: '1000' -> 'now'
bool(false)
bool(false)
bool(true)
int(1)
empty: ValueError: $uuid must not be empty
37 characters: ValueError: $uuid must be at most 36 characters long, 37 given
not UTF-8: ValueError: $uuid must be UTF-8, other bytes given
