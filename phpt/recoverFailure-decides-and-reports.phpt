--TEST--
recoverFailure(): class, then write fence, then request, then retry budget; the columns written, and the report
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/provider.inc';
require __DIR__ . '/inc/db.inc';
use Netresearch\NrLlm\Provider\Exception as P;
$db = new TestDb();
$runtime = $db->runtime();
$filled = ['iterations' => 3, 'truncated' => 1, 'total_prompt_tokens' => 10, 'total_completion_tokens' => 20, 'total_tokens' => 30, 'estimated_cost' => '0.500000',
    'error_class' => 'Old', 'suspended_state' => 'state', 'queued_at' => 900];
$retryable = new P\ProviderResponseException('x', 503);
$final = new P\ProviderResponseException('x', 401);
$cases = [
    'first failure' => [$retryable, []],
    'second' => [$retryable, ['requeue_count' => 1]],
    'third' => [$retryable, ['requeue_count' => 2]],
    'budget spent' => [$retryable, ['requeue_count' => 3]],
    'far over budget' => [$retryable, ['requeue_count' => 4294967295]],
    'not retryable' => [$final, []],
    'not retryable, budget spent' => [$final, ['requeue_count' => 3]],
    'write fence forbids' => [$retryable, ['pending_effect' => 'non_idempotent_write', 'requeue_count' => 3]],
    'write fence allows' => [$retryable, ['pending_effect' => 'idempotent_write']],
    'write fence unknown' => [$retryable, ['pending_effect' => 'Non_Idempotent_Write']],
    'no request' => [$retryable, ['queued_request' => null]],
    'empty request' => [$retryable, ['queued_request' => '', 'requeue_count' => 3]],
    'lease expired, not taken' => [$retryable, ['lease_expires' => 5]],
];
foreach ($cases as $label => [$error, $columns]) {
    $uid = $db->running(2000000000, $columns + $filled);
    $before = $db->row($uid);
    $start = time();
    $recovery = $runtime->recoverFailure(runUid: $uid, claimedBy: 'worker:a', error: $error);
    $row = $db->row($uid);
    $requeued = $recovery->outcome() === NrLlmRecovery::REQUEUED;
    $expected = ['claimed_by' => '', 'lease_expires' => '0'] + $before;
    if ($requeued) {
        $expected = ['status' => 'queued', 'requeue_count' => (string) ($before['requeue_count'] + 1), 'pending_effect' => ''] + $expected;
    } else {
        $expected = ['status' => 'failed', 'termination_reason' => $recovery->reason(), 'error_class' => P\ProviderResponseException::class, 'iterations' => '0',
            'truncated' => '0', 'total_prompt_tokens' => '0', 'total_completion_tokens' => '0', 'total_tokens' => '0', 'estimated_cost' => '0.000000',
            'suspended_state' => '', 'queued_request' => ''] + $expected;
    }
    foreach ($requeued ? ['tstamp', 'queued_at'] : ['tstamp', 'finished_at'] as $column) {
        check($row[$column] >= $start && $row[$column] <= time(), "$label: $column is now");
        $expected[$column] = $row[$column];
    }
    ksort($row);
    ksort($expected);
    check($row === $expected, "$label:\n" . TestDb::changes($expected, $row));
    printf("%s: %s %s, count %s, delay %s, %s, wokenUp %s, confirmed %s\n", $label, $recovery->outcome(), $recovery->reason() ?? '-', $recovery->requeueCount(), $recovery->delayMs() ?? '-',
        $recovery->failure(), var_export($recovery->wokenUp(), true), var_export($recovery->isConfirmed(), true));
}
echo json_encode($recovery), "\n";
?>
--EXPECT--
first failure: requeued -, count 1, delay 30000, serverError, wokenUp false, confirmed false
second: requeued -, count 2, delay 60000, serverError, wokenUp false, confirmed false
third: requeued -, count 3, delay 120000, serverError, wokenUp false, confirmed false
budget spent: dead_lettered retries_exhausted, count 3, delay -, serverError, wokenUp false, confirmed false
far over budget: dead_lettered retries_exhausted, count 4294967295, delay -, serverError, wokenUp false, confirmed false
not retryable: dead_lettered not_retryable, count 0, delay -, auth, wokenUp false, confirmed false
not retryable, budget spent: dead_lettered not_retryable, count 3, delay -, auth, wokenUp false, confirmed false
write fence forbids: dead_lettered not_retryable, count 3, delay -, serverError, wokenUp false, confirmed false
write fence allows: requeued -, count 1, delay 30000, serverError, wokenUp false, confirmed false
write fence unknown: requeued -, count 1, delay 30000, serverError, wokenUp false, confirmed false
no request: dead_lettered not_retryable, count 0, delay -, serverError, wokenUp false, confirmed false
empty request: dead_lettered not_retryable, count 3, delay -, serverError, wokenUp false, confirmed false
lease expired, not taken: requeued -, count 1, delay 30000, serverError, wokenUp false, confirmed false
{"outcome":"requeued","reason":null,"failure":{"failureClass":"serverError","retryable":true,"tripsCircuit":true,"errorClass":"Netresearch\\NrLlm\\Provider\\Exception\\ProviderResponseException","httpStatus":503,"retryAfterSeconds":null},"requeueCount":1,"delayMs":30000,"wokenUp":false,"confirmed":false}
