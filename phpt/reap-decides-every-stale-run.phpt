--TEST--
reap(): the decision about every stale run (write fence, then request, then retry budget), the report, and every column of the row
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
$runtime = $db->runtime();
$filled = ['iterations' => 3, 'truncated' => 1, 'total_prompt_tokens' => 10, 'total_completion_tokens' => 20, 'total_tokens' => 30, 'estimated_cost' => '0.500000',
    'error_class' => 'Old', 'suspended_state' => 'state', 'queued_at' => 900];
// By effect, then by request: the decisions for the counts 0, 2, 3 and 4294967295. R: requeued, X:
// retries_exhausted, N: not_retryable.
$requests = ['{}', '', null];
$decisions = [
    '' => ['RRXX', 'NNNN', 'NNNN'],
    'read_only' => ['RRXX', 'NNNN', 'NNNN'],
    'idempotent_write' => ['RRXX', 'NNNN', 'NNNN'],
    'non_idempotent_write' => ['NNNN', 'NNNN', 'NNNN'],
    'NON_IDEMPOTENT_WRITE' => ['RRXX', 'NNNN', 'NNNN'],
    'non_idempotent_write ' => ['RRXX', 'NNNN', 'NNNN'],
    'brand_new' => ['RRXX', 'NNNN', 'NNNN'],
];
$reasons = ['R' => null, 'X' => 'retries_exhausted', 'N' => 'not_retryable'];
$runs = [];
$lease = 1000;
foreach ($decisions as $effect => $rows) {
    foreach ($rows as $index => $row) {
        foreach ([0, 2, 3, 4294967295] as $place => $count) {
            $uid = $db->running($lease++, ['requeue_count' => $count, 'pending_effect' => $effect, 'queued_request' => $requests[$index]] + $filled);
            $runs[$uid] = [$count, $effect, $requests[$index], $reasons[$row[$place]]];
        }
    }
}
$before = array_map($db->row(...), array_combine(array_keys($runs), array_keys($runs)));
$now = time();
$report = $runtime->reap(limit: 1000, now: $now);
$end = time();
printf("%d runs: %d requeued, %d dead-lettered, %d skipped, count() %d, more %s, dry %s\n", count($runs), count($report->requeued()), count($report->deadLettered()),
    count($report->skipped()), count($report), var_export($report->hasMore(), true), var_export($report->isDryRun(), true));
$reported = [];
foreach ([...$report->requeued(), ...$report->deadLettered()] as $entry) {
    $reported[$entry['uid']] = $entry;
}
$counts = [];
foreach ($runs as $uid => [$count, $effect, $request, $reason]) {
    $row = $db->row($uid);
    $expected = $before[$uid];
    $clock = $reason === null ? ['tstamp', 'queued_at'] : ['tstamp', 'finished_at'];
    foreach ($clock as $column) {
        check($row[$column] >= $now && $row[$column] <= $end, "$column of $uid is now");
        $row[$column] = 'now';
        $expected[$column] = 'now';
    }
    $expected = ['claimed_by' => '', 'lease_expires' => '0'] + $expected;
    if ($reason === null) {
        $expected = ['status' => 'queued', 'requeue_count' => (string) ($count + 1), 'pending_effect' => ''] + $expected;
    } else {
        $expected = ['status' => 'failed', 'termination_reason' => $reason, 'error_class' => '', 'suspended_state' => '', 'queued_request' => ''] + $expected;
    }
    ksort($row);
    ksort($expected);
    check($row === $expected, "row of count $count, effect '$effect', request " . var_export($request, true) . ":\n" . TestDb::changes($expected, $row));
    $entry = $reported[$uid];
    check($entry === ['uid' => $uid, 'uuid' => $before[$uid]['uuid'], 'claimedBy' => 'worker:a', 'leaseExpires' => (int) $before[$uid]['lease_expires'],
        'requeueCount' => $reason === null ? $count + 1 : $count, 'reason' => $reason, 'wokenUp' => false, 'confirmed' => false], 'report: ' . json_encode($entry));
    $counts[$reason ?? 'requeued'] = ($counts[$reason ?? 'requeued'] ?? 0) + 1;
}
ksort($counts);
print_r($counts);
var_dump(array_column($report->requeued(), 'leaseExpires') === (static function (array $a): array { sort($a); return $a; })(array_column($report->requeued(), 'leaseExpires')));
echo "again: ", count($runtime->reap(1000)), "\n";
echo json_encode($runtime->reap()), "\n";
?>
--EXPECT--
84 runs: 12 requeued, 72 dead-lettered, 0 skipped, count() 84, more false, dry false
Array
(
    [not_retryable] => 60
    [requeued] => 12
    [retries_exhausted] => 12
)
bool(true)
again: 0
{"requeued":[],"deadLettered":[],"skipped":[],"dryRun":false,"hasMore":false}
