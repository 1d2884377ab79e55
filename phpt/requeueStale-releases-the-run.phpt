--TEST--
requeueStale() releases a run whose lease has expired; it checks neither the retry budget nor the write fence
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
        'requeueStale' => [$now - 1, fn (int $uid): bool => $runtime->requeueStale(runUid: $uid, now: $now)],
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
    $others = $db->running(0);
    $row = $db->row($live);
    check(!$runtime->requeueStale($live, $now) && !$runtime->requeueStale($others, $now) && $db->row($live) === $row, 'a lease that has not expired, and no lease');
}
thrown('now', fn () => $runtime->requeueStale(1, -1));
?>
--EXPECT--
bool(true)
requeueStale:
status: 'running' -> 'queued'
claimed_by: 'worker:a' -> ''
lease_expires: '1799999999' -> '0'
requeue_count: '7' -> '8'
pending_effect: 'non_idempotent_write' -> ''
queued_at: '0' -> 'now'
tstamp: '1000' -> 'now'
bool(true)
requeueStale:
status: 'running' -> 'queued'
claimed_by: 'worker:a' -> ''
lease_expires: '1799999999' -> '0'
requeue_count: '7' -> '8'
pending_effect: 'non_idempotent_write' -> ''
tstamp: '1000' -> 'now'
now: ValueError: $now must be a unix time in seconds (not milliseconds) from 0 to 4294967295, -1 given
