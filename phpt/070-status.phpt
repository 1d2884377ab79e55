--TEST--
status: counts, dead letters, leases, waits and what the server is
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
    echo json_encode(array_diff_key($runtime->status($now), array_flip(['server', 'settings', 'clockSkewMs', 'isolation']))), "\n";
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
        $db->insert(['status' => 'failed', 'termination_reason' => $reason, 'finished_at' => $now - 1000 * $i, 'queued_request' => '']);
    }
    $db->insert(['status' => 'completed', 'finished_at' => $now]);
    $db->insert(['status' => 'waiting_for_approval']);
    $status = $runtime->status(now: $now);
    echo implode(' ', array_keys($status)), "\n";
    echo json_encode(array_diff_key($status, array_flip(['server', 'settings', 'clockSkewMs', 'isolation']))), "\n";
    check(is_string($status['server']) && preg_match('/\d+\.\d+/', $status['server']) === 1, 'server: ' . json_encode($status['server']));
    check(is_string($status['isolation']), 'isolation');
    check(is_int($status['clockSkewMs']) && abs($status['clockSkewMs']) < 3000, 'skew of one machine: ' . $status['clockSkewMs']);
    check(is_array($status['settings']) && !isset($status['settings']['password']), 'settings');
    echo 'since: ', json_encode($runtime->status($now, $now - 1500)['deadLetters']), "\n";
}
print_r(array_keys($status['settings']));
?>
--EXPECT--
x
