<?php

declare(strict_types=1);

require_once __DIR__ . '/../../../phpt/inc/keeper.inc';

// A kept lease: the results of its methods in each of its states, and in a forked child.
$db = database();
$runtime = $db->runtime();
$ways = [
    'held' => null, 'released' => null, 'taken' => "claimed_by = 'worker:b'", 'requeued' => "status = 'queued', claimed_by = '', requeue_count = 1", 'cancelled' => "status = 'cancelled', claimed_by = ''",
    'completed' => "status = 'completed', claimed_by = ''", 'failed' => "status = 'failed', claimed_by = ''", 'waiting' => "status = 'waiting_for_input'", 'gone' => '',
];
foreach ($ways as $label => $set) {
    $uid = $db->running(time() + 100);
    $lease = $runtime->keepLease(runUid: $uid, claimedBy: 'worker:a', leaseSeconds: 60, options: ['everyMs' => 100, 'maxSilentSeconds' => 60, 'maxSeconds' => 60, 'interruptOnLoss' => false]);
    if ($label === 'released') {
        $lease->release();
        $lease->release();
    } elseif ($set === '') {
        $db->query('DELETE FROM tx_nrllm_agentrun WHERE uid = ?', [$uid]);
    } elseif ($set !== null) {
        $db->query("UPDATE tx_nrllm_agentrun SET $set WHERE uid = ?", [$uid]);
    }
    check(until(static fn (): bool => $label === 'held' || !$lease->isHeld()), $label);
    show($label, static fn () => [$lease->state(), $lease->isHeld(), $lease->remainingMs() > 0, $lease->beats() > 0, $lease->lastError(), $lease->runUid() === $uid, $lease->claimedBy()]);
    show('    step', static fn () => $lease->step());
    if ($set !== null) {
        show('    kept again', static fn () => $runtime->keepLease($uid, 'worker:a'));
    }
    if ($label === 'held') {
        echo '    ', $db->fork(static function () use ($lease): int {
            show('in a child', static fn () => [$lease->state(), $lease->isHeld(), $lease->remainingMs(), $lease->lastError()]);
            show('    step', static fn () => $lease->step());
            $lease->release();

            return 3;
        }), "\n";
        show('after the child', static fn () => [$lease->state(), $lease->lastError()]);
    }
    unset($lease);
}
echo threads(), " thread\n";
