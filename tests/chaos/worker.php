<?php

declare(strict_types=1);

// A worker: takes due runs from the table or messages from the transport's table, executes and ends
// them. Every attempt has a token of its own in the ledger, which has the result of each step.

use Netresearch\NrLlm\Provider\Exception\ProviderResponseException;

require __DIR__ . '/actor.inc';

while (!$stopping) {
    try {
        if ($round['mode'] === 'bus') {
            $message = message();
            $uid = $message['uid'] ?? null;
        } else {
            $due = $runtime->dueRuns(5);
            $uid = $due === [] ? null : $due[array_rand($due)]['uid'];
        }
        if ($uid === null) {
            usleep(40_000);
            continue;
        }
        attempt($uid);
        if (isset($message)) {
            db()->query("DELETE FROM sys_messenger_messages WHERE id = {$message['id']}");
        }
    } catch (NrLlmException | mysqli_sql_exception $error) {
        elsewhere($error);
    }
}
note('ended');

/**
 * Takes a message like Symfony's doctrine transport: marked as delivered, deleted when handled,
 * delivered again only after an hour.
 */
function message(): ?array
{
    db()->begin_transaction();
    $row = db()->query('SELECT id, body FROM sys_messenger_messages WHERE delivered_at IS NULL AND available_at <= UTC_TIMESTAMP() ORDER BY available_at LIMIT 1 FOR UPDATE SKIP LOCKED')->fetch_assoc();
    if ($row !== null) {
        db()->query("UPDATE sys_messenger_messages SET delivered_at = UTC_TIMESTAMP() WHERE id = {$row['id']}");
    }
    db()->commit();
    if ($row === null) {
        return null;
    }
    $uuid = substr($row['body'], strlen('run:'));

    return ['id' => (int) $row['id'], 'uid' => (int) db()->query("SELECT uid FROM tx_nrllm_agentrun WHERE uuid = '" . db()->real_escape_string($uuid) . "'")->fetch_column()];
}

function attempt(int $uid): void
{
    global $runtime, $round;
    $token = bin2hex(random_bytes(8));
    $owner = NrLlmRuntime::identity('worker');
    note('claiming', ['uid' => $uid, 'token' => $token]);
    if (!$runtime->claimQueued($uid, $owner, time() + $round['lease'])) {
        note('refused', ['uid' => $uid, 'token' => $token]);

        return;
    }
    note('claimed', ['uid' => $uid, 'token' => $token, 'owner' => $owner]);
    $kept = null;
    try {
        $kept = $runtime->keepLease($uid, $owner, $round['lease'], ['everyMs' => 300]);
        $row = db()->query("SELECT requeue_count, queued_request FROM tx_nrllm_agentrun WHERE uid = $uid")->fetch_assoc();
        // On a cluster another node's plain SELECT may lag behind: only a read during the lease
        // counts.
        note('payload', ['uid' => $uid, 'token' => $token, 'sha' => sha1((string) $row['queued_request']), 'held' => $kept->isHeld()]);
        execute($uid, $token, $owner, $kept, (int) $row['requeue_count']);
        note('finishing', ['uid' => $uid, 'token' => $token]);
        $statement = db()->prepare("UPDATE tx_nrllm_agentrun SET status = 'completed', finished_at = ?, tstamp = ?, queued_request = '', suspended_state = '', claimed_by = '',
            lease_expires = 0, pending_effect = '' WHERE uid = ? AND status = 'running' AND CAST(claimed_by AS BINARY) = CAST(? AS BINARY)");
        $statement->execute([time(), time(), $uid, $owner]);
        note('finished', ['uid' => $uid, 'token' => $token, 'done' => $statement->affected_rows === 1]);
    } catch (NrLlmLeaseLostException | NrLlmRunCancelledException $lost) {
        note('lost', ['uid' => $uid, 'token' => $token, 'why' => $lost->getMessage()]);
    } catch (ProviderResponseException $error) {
        note('recovering', ['uid' => $uid, 'token' => $token]);
        $recovery = $runtime->recoverFailure($uid, $owner, $error, wakeUp());
        note('recovered', ['uid' => $uid, 'token' => $token, 'outcome' => $recovery->outcome(), 'reason' => $recovery->reason(), 'confirmed' => $recovery->isConfirmed(),
            'wokenUp' => $recovery->wokenUp(), 'count' => $recovery->requeueCount()]);
    } finally {
        // Where the database failed, the run is left to the reaper: no heartbeat is sent for it any
        // more.
        $kept?->release();
    }
}

/** The agent loop before a simulated provider. */
function execute(int $uid, string $token, string $owner, NrLlmLease $kept, int $attempt): void
{
    global $runtime, $round;
    $steps = 1 + (int) (chance($uid, $attempt, 'steps') * 4);
    $effect = ['', 'read_only', 'idempotent_write', 'non_idempotent_write'][$uid % 4];
    $bad = chance($uid, $attempt, 'provider');
    for ($step = 1; $step <= $steps; $step++) {
        step($uid, $token, $kept);
        if (chance($uid, $attempt, $step, 'fork') < 0.05) {
            forks($kept);
        }
        // The provider takes its time.
        usleep((int) (30_000 + chance($uid, $attempt, $step, 'time') * 350_000));
        if ($bad < 0.2 && $step === 1) {
            throw new ProviderResponseException('the provider answers so', $bad < 0.03 ? 401 : ($bad < 0.1 ? 429 : 503));
        }
    }
    if ($effect === '') {
        return;
    }
    // The write fence stays until the run has ended: if the worker dies in between, no other
    // attempt may follow.
    if (!$runtime->markPendingEffect($uid, $owner, $effect, time() + $round['lease'])) {
        throw new NrLlmLeaseLostException('lost at the write fence');
    }
    note('effect', ['uid' => $uid, 'token' => $token, 'effect' => $effect]);
    usleep((int) (chance($uid, $attempt, 'effect') * 200_000));
    if ($bad > 0.95) {
        throw new ProviderResponseException('failed after the effect', 500);
    }
    step($uid, $token, $kept);
}

function step(int $uid, string $token, NrLlmLease $kept): void
{
    // The time is read before the step: if the step passes, the lease was held at that time or
    // later.
    $asked = hrtime(true);
    $kept->step();
    note('step', ['uid' => $uid, 'token' => $token, 'asked' => $asked, 'remaining' => $kept->remainingMs(), 'state' => $kept->state()]);
}

/**
 * Forks children with copies of the lease that end in different ways; the parent's heartbeats must
 * continue.
 */
function forks(NrLlmLease $kept): void
{
    $children = [];
    for ($i = 0; $i < 4; $i++) {
        $pid = pcntl_fork();
        if ($pid === 0) {
            if ($kept->isHeld()) {
                note('child-holds', ['state' => $kept->state()]);
            }
            if ($i % 2 === 0) {
                posix_kill(getmypid(), SIGKILL);
            }
            exit(0);
        }
        $children[] = $pid;
    }
    foreach ($children as $pid) {
        pcntl_waitpid($pid, $status);
    }
    note('forked');
}
