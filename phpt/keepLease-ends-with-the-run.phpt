--TEST--
keepLease(): each way in which a run is lost or ends, the state of the lease then, and no heartbeat after it
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
$leases = $uids = [];
foreach ($ways as $label => $set) {
    $uids[$label] = $db->running(time() + 100);
    $leases[$label] = $runtime->keepLease($uids[$label], 'worker:a', 4 * SLOW, ['everyMs' => 100]);
}
$stays = $runtime->keepLease($db->running(time() + 100), 'worker:a', 4 * SLOW, ['everyMs' => 100]);
echo threads(), ' threads, ', until(static fn (): bool => count(connections($db)) === 1) ? 'a connection for calls and heartbeats' : 'too many connections', "\n";
foreach ($ways as $label => $set) {
    $end($uids[$label], $set);
}
$after = [];
foreach ($leases as $label => $lease) {
    check(until(static fn (): bool => !$lease->isHeld()), "$label is noticed");
    echo $label, ': ', $lease->state(), ', ', $lease->lastError(), ', ', $lease->remainingMs(), "\n";
    thrown('  step', $lease->step(...));
    $lease->release();
    check(in_array($lease->state(), ['lost', 'cancelled', 'stopped'], true), 'final');
    $after[$label] = $db->row($uids[$label]);
}
$heartbeats = $stays->beats();
check(until(static fn (): bool => $stays->beats() > $heartbeats + 2), 'the others stay renewed');
foreach ($leases as $label => $lease) {
    check($db->row($uids[$label]) === $after[$label], "no heartbeat after $label");
}
echo $stays->state(), "\n";
?>
--EXPECT--
2 threads, a connection for calls and heartbeats
another owner: lost, another owner, or none, has the run, 0
  step: NrLlmLeaseLostException: the lease of 'worker:a' on run 1 is lost: another owner, or none, has the run
another case: lost, another owner, or none, has the run, 0
  step: NrLlmLeaseLostException: the lease of 'worker:a' on run 2 is lost: another owner, or none, has the run
no owner: lost, another owner, or none, has the run, 0
  step: NrLlmLeaseLostException: the lease of 'worker:a' on run 3 is lost: another owner, or none, has the run
requeued: lost, the run is back on the queue, 0
  step: NrLlmLeaseLostException: the lease of 'worker:a' on run 4 is lost: the run is back on the queue
cancelled: cancelled, the run was cancelled, 0
  step: NrLlmRunCancelledException: run 5 was cancelled; 'worker:a' does not hold it any more
completed: stopped, the run is completed, 0
  step: NrLlmLeaseLostException: the lease of 'worker:a' on run 6 is not kept any more: the run is completed
failed: stopped, the run has failed, 0
  step: NrLlmLeaseLostException: the lease of 'worker:a' on run 7 is not kept any more: the run has failed
waiting: stopped, the run waits for a person, 0
  step: NrLlmLeaseLostException: the lease of 'worker:a' on run 8 is not kept any more: the run waits for a person
a status of a later release: lost, the run is not running, and its status is unknown to this release, 0
  step: NrLlmLeaseLostException: the lease of 'worker:a' on run 9 is lost: the run is not running, and its status is unknown to this release
gone: lost, there is no such run any more, 0
  step: NrLlmLeaseLostException: the lease of 'worker:a' on run 10 is lost: there is no such run any more
held
