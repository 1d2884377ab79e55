--TEST--
requeue() releases the run of its owner; it checks neither the retry budget nor the write fence
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$now = 1800000000;
foreach ([true, false] as $queuedAt) {
    $db = new TestDb(['queuedAt' => $queuedAt]);
    $runtime = $db->runtime();
    $ways = [
        'requeue' => [2000000000, fn (int $uid): bool => $runtime->requeue(runUid: $uid, claimedBy: 'worker:a')],
    ];
    foreach ($ways as $label => [$lease, $call]) {
        // Over the retry budget, with a write fence, and without a request.
        $uid = $db->running($lease, ['requeue_count' => 7, 'pending_effect' => 'non_idempotent_write', 'queued_request' => null, 'suspended_state' => 's', 'iterations' => 4]);
        $before = $db->row($uid);
        $start = time();
        var_dump($call($uid));
        $after = $db->row($uid);
        foreach ($queuedAt ? ['tstamp', 'queued_at'] : ['tstamp'] as $column) {
            check($after[$column] >= $start && $after[$column] <= time(), "$column is now");
            $after[$column] = 'now';
        }
        echo "$label:\n", TestDb::changes($before, $after);
        check(!$call($uid), 'once only');
        // Where the counter has its largest value the run is unchanged.
        $full = $db->running($lease, ['requeue_count' => 4294967295]);
        $row = $db->row($full);
        check(!$call($full) && $db->row($full) === $row, 'the counter does not wrap');
        foreach (['queued', 'waiting_for_approval', 'completed', 'failed', 'cancelled'] as $status) {
            $other = $db->insert(['status' => $status, 'claimed_by' => 'worker:a', 'lease_expires' => 5]);
            $row = $db->row($other);
            check(!$call($other) && $db->row($other) === $row, "$label of $status");
        }
    }
    $live = $db->running($now);
    $row = $db->row($live);
    check(!$runtime->requeue($live, 'worker:b') && $db->row($live) === $row, 'the lease of another owner');
}
thrown('uid', fn () => $runtime->requeue(0, 'w'));
thrown('owner', fn () => $runtime->requeue(1, ' '));
?>
--EXPECT--
bool(true)
requeue:
status: 'running' -> 'queued'
claimed_by: 'worker:a' -> ''
lease_expires: '2000000000' -> '0'
requeue_count: '7' -> '8'
pending_effect: 'non_idempotent_write' -> ''
queued_at: '0' -> 'now'
tstamp: '1000' -> 'now'
bool(true)
requeue:
status: 'running' -> 'queued'
claimed_by: 'worker:a' -> ''
lease_expires: '2000000000' -> '0'
requeue_count: '7' -> '8'
pending_effect: 'non_idempotent_write' -> ''
tstamp: '1000' -> 'now'
uid: ValueError: $runUid must be at least 1, 0 given
owner: ValueError: $claimedBy must name who holds the lease, an empty or blank string given; NrLlmRuntime::identity() makes a name
