--TEST--
failUndispatched(): ends a run whose wake-up could not be sent, unless a worker has claimed it or it was requeued again
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
$runtime = $db->runtime();
$error = new DomainException('the bus is down');
$uid = $db->insert(['requeue_count' => 2, 'iterations' => 4, 'suspended_state' => 's', 'queued_at' => 900]);
$before = $db->row($uid);
$start = time();
var_dump($runtime->failUndispatched(runUid: $uid, requeueCount: 2, error: $error));
$after = $db->row($uid);
foreach (['tstamp', 'finished_at'] as $column) {
    check($after[$column] >= $start && $after[$column] <= time(), "$column is now");
    $after[$column] = 'now';
}
echo TestDb::changes($before, $after);
var_dump($runtime->failUndispatched($db->insert(), 0, $error));
$others = [
    'another requeue' => $db->insert(['requeue_count' => 3]),
    'claimed' => $db->running(2000000000, ['requeue_count' => 2]),
    'queued with an owner' => $db->insert(['requeue_count' => 2, 'claimed_by' => 'worker:b']),
    'completed' => $db->insert(['requeue_count' => 2, 'status' => 'completed']),
];
foreach ($others as $label => $other) {
    $row = $db->row($other);
    check(!$runtime->failUndispatched($other, 2, $error) && $db->row($other) === $row, $label);
}
thrown('uid', fn () => $runtime->failUndispatched(0, 0, $error));
thrown('count', fn () => $runtime->failUndispatched(1, -1, $error));
thrown_class('no throwable', fn () => $runtime->failUndispatched(1, 0, 'x'));
?>
--EXPECT--
bool(true)
status: 'queued' -> 'failed'
error_class: '' -> 'DomainException'
termination_reason: '' -> 'provider_failed'
suspended_state: 's' -> ''
queued_request: '{"prompt":"hello"}' -> ''
finished_at: '0' -> 'now'
tstamp: '1000' -> 'now'
bool(true)
uid: ValueError: $runUid must be at least 1, 0 given
count: ValueError: $requeueCount must be from 0 to 4294967295, -1 given
no throwable: TypeError
