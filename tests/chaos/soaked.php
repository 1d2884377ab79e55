<?php

declare(strict_types=1);

// One process that does all a worker and a reaper do, over and over: php soaked.php ROUND-FILE NAME
require __DIR__ . '/actor.inc';

$owner = NrLlmRuntime::identity('soak');
$insert = db()->prepare("INSERT INTO tx_nrllm_agentrun (uuid, status, queued_request, suspended_state, claimed_by, lease_expires, tstamp, crdate) VALUES (?, ?, ?, '', ?, ?, 5, 5)");
$payload = str_repeat('payload ', 500);
for ($loop = 1; !$stopping; $loop++) {
    $uuids = array_map(fn(): string => sprintf('%s-%027d', bin2hex(random_bytes(4)), random_int(1, PHP_INT_MAX)), range(1, 4));
    $insert->execute([$uuids[0], 'queued', $payload, '', 0]);
    $uid = (int) db()->insert_id;
    foreach ([1, 2] as $i) {
        $insert->execute([$uuids[$i], 'running', $payload, 'dead', 5]);
    }
    $insert->execute([$uuids[3], 'queued', $payload, '', 0]);
    $runtime->dueRuns(3);
    if (!$runtime->claimQueued($uid, $owner, time() + 60)) {
        throw new LogicException('a run of its own');
    }
    $kept = $runtime->keepLease($uid, $owner, 60, ['everyMs' => 100]);
    $kept->step();
    $runtime->markPendingEffect($uid, $owner, 'idempotent_write', time() + 60);
    $runtime->leaseState($uid, $owner);
    usleep(10_000);
    $runtime->recoverFailure($uid, $owner, $loop % 2 ? new RuntimeException('not retryable') : new Netresearch\NrLlm\Provider\Exception\ProviderResponseException('again', 503), wakeUp());
    $kept->release();
    $runtime->reap(10, null, ['wakeUp' => wakeUp()]);
    $runtime->cancelRun($uuids[3]);
    $runtime->status();
    try {
        $runtime->renewLease($uid, '', 1);
    } catch (ValueError) {
        // Some calls fail on purpose.
    }
    if ($loop % 20 === 0) {
        $runtime->close();
        db()->query('DELETE FROM tx_nrllm_agentrun');
        db()->query('DELETE FROM sys_messenger_messages');
        gc_collect_cycles();
    }
    $loop % 100 === 0 && note('loops', ['count' => $loop]);
}
note('loops', ['count' => $loop - 1]);
