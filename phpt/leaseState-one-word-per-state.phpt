--TEST--
leaseState(): one word per state, read without waiting for a row lock
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
$runtime = $db->runtime();
$runs = [
    'mine' => $db->running(2000000000),
    'mine, expired, not claimed again' => $db->running(5),
    "another's" => $db->running(2000000000, ['claimed_by' => 'worker:b']),
    'collates equal' => $db->running(2000000000, ['claimed_by' => 'WORKER:A']),
    'no owner' => $db->running(0, ['claimed_by' => '']),
];
foreach (['queued', 'waiting_for_approval', 'waiting_for_input', 'cancelled', 'completed', 'failed', 'unheard_of'] as $status) {
    $runs[$status] = $db->insert(['status' => $status]);
}
$runs['no row'] = 4000000000;
foreach ($runs as $label => $uid) {
    echo "$label: ", $runtime->leaseState(runUid: $uid, claimedBy: 'worker:a'), "\n";
}
$other = $db->connect();
$other->begin_transaction();
$other->query("UPDATE tx_nrllm_agentrun SET iterations = 2 WHERE uid = {$runs['mine']}");
$start = hrtime(true);
echo 'under a row lock: ', $runtime->leaseState($runs['mine'], 'worker:a'), (hrtime(true) - $start) / 1e6 < 500 * patience() ? ', at once' : ', late', "\n";
$other->rollback();
thrown('uid', fn () => $runtime->leaseState(0, 'w'));
thrown('owner', fn () => $runtime->leaseState(1, ''));
?>
--EXPECT--
mine: held
mine, expired, not claimed again: held
another's: taken
collates equal: taken
no owner: taken
queued: requeued
waiting_for_approval: waiting
waiting_for_input: waiting
cancelled: cancelled
completed: completed
failed: failed
unheard_of: other
no row: gone
under a row lock: held, at once
uid: ValueError: $runUid must be at least 1, 0 given
owner: ValueError: $claimedBy must name who holds the lease, an empty or blank string given; NrLlmRuntime::identity() makes a name
