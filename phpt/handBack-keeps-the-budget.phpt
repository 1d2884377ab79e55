--TEST--
handBack(): requeues the caller's run with its counter unchanged, and is refused by write fence, request and ownership
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
foreach ([true, false] as $queuedAt) {
    $db = new TestDb(['queuedAt' => $queuedAt]);
    $runtime = $db->runtime();
    $uid = $db->running(2000000000, ['requeue_count' => 2, 'pending_effect' => 'read_only', 'suspended_state' => 's']);
    $before = $db->row($uid);
    $start = time();
    var_dump($runtime->handBack(runUid: $uid, claimedBy: 'worker:a', wakeUp: null));
    $after = $db->row($uid);
    check($after['tstamp'] >= $start && $after['tstamp'] <= time(), 'tstamp is now');
    $after['tstamp'] = 'now';
    if ($queuedAt) {
        check($after['queued_at'] >= $start - 60 && $after['queued_at'] <= time() - 60, 'the backoff of 60 s is over');
        $after['queued_at'] = 'now - 60';
        check(array_column($runtime->dueRuns(), 'uid') === [$uid], 'due at once');
    }
    echo TestDb::changes($before, $after);
    check(!$runtime->handBack($uid, 'worker:a'), 'once only');
    $refused = [
        'write fence' => ['pending_effect' => 'non_idempotent_write'],
        'no request' => ['queued_request' => null],
        'empty request' => ['queued_request' => ''],
        'another owner' => ['claimed_by' => 'WORKER:A'],
    ];
    foreach ($refused as $label => $columns) {
        $uid = $db->running(2000000000, $columns);
        $row = $db->row($uid);
        check(!$runtime->handBack($uid, 'worker:a') && $db->row($uid) === $row, $label);
    }
    check(!$runtime->handBack(4000000000, 'worker:a'), 'no such run');
}
thrown('uid', fn () => $runtime->handBack(0, 'w'));
thrown('owner', fn () => $runtime->handBack(1, ' '));
thrown('wakeUp', fn () => $runtime->handBack(1, 'w', ['table' => 't']));
?>
--EXPECT--
bool(true)
status: 'running' -> 'queued'
claimed_by: 'worker:a' -> ''
lease_expires: '2000000000' -> '0'
pending_effect: 'read_only' -> ''
queued_at: '0' -> 'now - 60'
tstamp: '1000' -> 'now'
bool(true)
status: 'running' -> 'queued'
claimed_by: 'worker:a' -> ''
lease_expires: '2000000000' -> '0'
pending_effect: 'read_only' -> ''
tstamp: '1000' -> 'now'
uid: ValueError: $runUid must be at least 1, 0 given
owner: ValueError: $claimedBy must name who holds the lease, an empty or blank string given; NrLlmRuntime::identity() makes a name
wakeUp: NrLlmConfigurationException: wakeUp lacks the key 'queue'
