--TEST--
keepLease(): a lease that is not held is refused with the reason, and no thread is started
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
$ways = [
    'another owner' => "claimed_by = 'worker:b'",
    'another case' => "claimed_by = 'WORKER:A'",
    'no owner' => "claimed_by = ''",
    'requeued' => "status = 'queued', claimed_by = '', lease_expires = 0",
    'cancelled' => "status = 'cancelled', claimed_by = '', lease_expires = 0",
    'completed' => "status = 'completed', claimed_by = '', lease_expires = 0",
    'failed' => "status = 'failed', claimed_by = '', lease_expires = 0",
    'waiting' => "status = 'waiting_for_approval', claimed_by = '', lease_expires = 0",
    'a status of a later release' => "status = 'parked'",
    'gone' => null,
];
$end = static fn (int $uid, ?string $set) => $db->link()->query($set === null ? "DELETE FROM tx_nrllm_agentrun WHERE uid = $uid" : "UPDATE tx_nrllm_agentrun SET $set WHERE uid = $uid");
foreach ($ways as $label => $set) {
    $uid = $db->running(time() + 100);
    $end($uid, $set);
    thrown($label, static fn () => $runtime->keepLease($uid, 'worker:a', 10));
}
thrown_class('no server', static fn () => (new NrLlmRuntime($db->connection(['host' => '127.0.0.1', 'unix_socket' => null, 'port' => 1])))->keepLease(1, 'w'));
thrown_class('no table', static fn () => $db->runtime(['table' => 'nowhere'])->keepLease(1, 'w'));
echo threads(), " thread\n";
?>
--EXPECT--
another owner: NrLlmLeaseLostException: the lease of 'worker:a' on run 1 is lost: another owner, or none, has the run
another case: NrLlmLeaseLostException: the lease of 'worker:a' on run 2 is lost: another owner, or none, has the run
no owner: NrLlmLeaseLostException: the lease of 'worker:a' on run 3 is lost: another owner, or none, has the run
requeued: NrLlmLeaseLostException: the lease of 'worker:a' on run 4 is lost: the run is back on the queue
cancelled: NrLlmRunCancelledException: run 5 was cancelled; 'worker:a' does not hold it any more
completed: NrLlmLeaseLostException: the lease of 'worker:a' on run 6 is not kept any more: the run is completed
failed: NrLlmLeaseLostException: the lease of 'worker:a' on run 7 is not kept any more: the run has failed
waiting: NrLlmLeaseLostException: the lease of 'worker:a' on run 8 is not kept any more: the run waits for a person
a status of a later release: NrLlmLeaseLostException: the lease of 'worker:a' on run 9 is lost: the run is not running, and its status is unknown to this release
gone: NrLlmLeaseLostException: the lease of 'worker:a' on run 10 is lost: there is no such run any more
no server: NrLlmConnectionException
no table: NrLlmConfigurationException
1 thread
