--TEST--
recoverFailure(): a caller that does not own the run gets lease_lost, and nothing is written
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
$runs = [
    'owned by another' => $db->running(2000000000, ['claimed_by' => 'worker:b']),
    'by an owner that collates equal' => $db->running(2000000000, ['claimed_by' => 'WORKER:A']),
    'reaped' => $db->insert(['requeue_count' => 1]),
];
foreach (['waiting_for_approval', 'waiting_for_input', 'completed', 'failed', 'cancelled'] as $status) {
    $runs[$status] = $db->insert(['status' => $status, 'claimed_by' => $status === 'waiting_for_input' ? '' : 'worker:a']);
}
foreach ($runs as $label => $uid) {
    foreach ([new P\ProviderResponseException('x', 503), new Exception()] as $error) {
        $before = $db->row($uid);
        $recovery = $runtime->recoverFailure($uid, 'worker:a', $error);
        $reported = [$recovery->outcome(), $recovery->reason(), $recovery->requeueCount(), $recovery->delayMs(), $recovery->wokenUp()];
        if ($label === 'waiting_for_approval' && $error instanceof P\ProviderResponseException) {
            // Not running, so no requeue; the guard of dead-letter is `not terminal` and the owner.
            check($recovery->outcome() !== 'requeued', 'a waiting run is not requeued');
            continue;
        }
        if ($label !== 'waiting_for_approval') {
            check($reported === ['lease_lost', null, null, null, false], "$label: " . json_encode($reported));
            check($db->row($uid) === $before, "$label: the row is as it was");
        }
    }
}
$recovery = $runtime->recoverFailure(4000000000, 'worker:a', new Exception());
echo $recovery->outcome(), ' ', $recovery->failure(), "\n", json_encode($recovery), "\n";
?>
--EXPECT--
lease_lost unknown
{"outcome":"lease_lost","reason":null,"failure":{"failureClass":"unknown","retryable":false,"tripsCircuit":false,"errorClass":"Exception","httpStatus":null,"retryAfterSeconds":null},"requeueCount":null,"delayMs":null,"wokenUp":false,"confirmed":false}
