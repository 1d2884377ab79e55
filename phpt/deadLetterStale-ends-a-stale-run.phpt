--TEST--
deadLetterStale(): ends a stale run with the given reason, clears its payloads and keeps its totals
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$now = 1800000000;
$db = new TestDb();
$runtime = $db->runtime();
$uid = $db->running($now - 1, ['requeue_count' => 1, 'pending_effect' => 'read_only', 'suspended_state' => 's', 'iterations' => 4, 'total_tokens' => 30,
    'estimated_cost' => '0.500000', 'error_class' => 'Old', 'queued_at' => 900]);
$before = $db->row($uid);
$start = time();
var_dump($runtime->deadLetterStale(runUid: $uid, now: $now, terminationReason: 'retries_exhausted'));
$after = $db->row($uid);
foreach (['tstamp', 'finished_at'] as $column) {
    check($after[$column] >= $start && $after[$column] <= time(), "$column is now");
    $after[$column] = 'now';
}
echo TestDb::changes($before, $after);
check(!$runtime->deadLetterStale($uid, $now, 'retries_exhausted'), 'once only');
foreach ([$db->running($now), $db->running(0), $db->insert(), $db->insert(['status' => 'completed', 'lease_expires' => 5])] as $other) {
    $row = $db->row($other);
    check(!$runtime->deadLetterStale($other, $now, 'x') && $db->row($other) === $row, $row['status']);
}
thrown('reason of 33 characters', fn () => $runtime->deadLetterStale(1, 5, str_repeat('r', 33)));
thrown('now in milliseconds', fn () => $runtime->deadLetterStale(1, 1700000000000, 'x'));
thrown('uid', fn () => $runtime->deadLetterStale(-1, 5, 'x'));
?>
--EXPECT--
bool(true)
status: 'running' -> 'failed'
error_class: 'Old' -> ''
termination_reason: '' -> 'retries_exhausted'
suspended_state: 's' -> ''
queued_request: '{"prompt":"hello"}' -> ''
claimed_by: 'worker:a' -> ''
lease_expires: '1799999999' -> '0'
finished_at: '0' -> 'now'
tstamp: '1000' -> 'now'
reason of 33 characters: ValueError: $terminationReason must be at most 32 characters long, 33 given
now in milliseconds: ValueError: $now must be a unix time in seconds (not milliseconds) from 0 to 4294967295, 1700000000000 given
uid: ValueError: $runUid must be at least 1, -1 given
