--TEST--
status(): counts, dead letters, leases, waits and the server
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
foreach ([true, false] as $queuedAt) {
    $db = new TestDb(['queuedAt' => $queuedAt, 'key' => !$queuedAt]);
    $runtime = $db->runtime();
    $now = 1800000000;
    echo json_encode(array_diff_key($runtime->status($now), array_flip(['server', 'settings', 'clockSkewMs', 'isolation', 'binlog']))), "\n";
    foreach ([$now - 100, $now - 1] as $lease) {
        $db->running($lease);
    }
    $db->running($now);
    $db->running($now + 500);
    $db->running(0);
    $at = static fn (int $time): array => $queuedAt ? ['queued_at' => $time] : [];
    $db->insert(['tstamp' => $now - 50] + $at(0));
    $db->insert(['tstamp' => $now - 10] + $at($now - 700));
    foreach (['not_retryable', 'not_retryable', 'retries_exhausted', 'provider_failed'] as $i => $reason) {
        $db->insert(['status' => 'failed', 'termination_reason' => $reason, 'crdate' => $now - 1000 * $i, 'finished_at' => $now, 'queued_request' => '']);
    }
    $db->insert(['status' => 'completed', 'finished_at' => $now]);
    $db->insert(['status' => 'waiting_for_approval']);
    $status = $runtime->status(now: $now);
    echo implode(' ', array_keys($status)), "\n";
    echo json_encode(array_diff_key($status, array_flip(['server', 'settings', 'clockSkewMs', 'isolation', 'binlog']))), "\n";
    check(is_string($status['server']) && preg_match('/\d+\.\d+/', $status['server']) === 1, 'server: ' . json_encode($status['server']));
    check(is_string($status['isolation']), 'isolation');
    check(is_int($status['clockSkewMs']) && abs($status['clockSkewMs']) < 3000, 'skew of one machine: ' . $status['clockSkewMs']);
    check(is_array($status['settings']) && !isset($status['settings']['password']), 'settings');
    // Of the runs created since: the last two of the four above.
    $since = $runtime->status($now, $now - 1000);
    echo 'since: ', json_encode([array_filter($since['counts']), $since['deadLetters'], $since['expiredLeases']]), "\n";
}
print_r(array_keys($status['settings']));
?>
--EXPECT--
{"counts":{"queued":0,"running":0,"waiting_for_approval":0,"waiting_for_input":0,"completed":0,"failed":0,"cancelled":0},"deadLetters":[],"expiredLeases":0,"unleasedRunning":0,"oldestLease":null,"oldestQueuedSeconds":null,"stranded":0,"leaseKey":false}
counts deadLetters expiredLeases unleasedRunning oldestLease oldestQueuedSeconds stranded clockSkewMs leaseKey server isolation binlog settings
{"counts":{"queued":2,"running":5,"waiting_for_approval":1,"waiting_for_input":0,"completed":1,"failed":4,"cancelled":0},"deadLetters":{"not_retryable":2,"provider_failed":1,"retries_exhausted":1},"expiredLeases":2,"unleasedRunning":1,"oldestLease":1799999900,"oldestQueuedSeconds":700,"stranded":0,"leaseKey":false}
since: [{"failed":2},{"not_retryable":2},2]
{"counts":{"queued":0,"running":0,"waiting_for_approval":0,"waiting_for_input":0,"completed":0,"failed":0,"cancelled":0},"deadLetters":[],"expiredLeases":0,"unleasedRunning":0,"oldestLease":null,"oldestQueuedSeconds":null,"stranded":0,"leaseKey":true}
counts deadLetters expiredLeases unleasedRunning oldestLease oldestQueuedSeconds stranded clockSkewMs leaseKey server isolation binlog settings
{"counts":{"queued":2,"running":5,"waiting_for_approval":1,"waiting_for_input":0,"completed":1,"failed":4,"cancelled":0},"deadLetters":{"not_retryable":2,"provider_failed":1,"retries_exhausted":1},"expiredLeases":2,"unleasedRunning":1,"oldestLease":1799999900,"oldestQueuedSeconds":50,"stranded":0,"leaseKey":true}
since: [{"failed":2},{"not_retryable":2},2]
Array
(
    [0] => endpoint
    [1] => user
    [2] => dbname
    [3] => tls
    [4] => table
    [5] => clock
    [6] => connectTimeoutMs
    [7] => queryTimeoutMs
    [8] => maxRequeues
    [9] => backoffBaseMs
    [10] => backoffCapMs
    [11] => jitter
)
