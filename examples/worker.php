<?php

declare(strict_types=1);

// A worker in plain PHP, without a message bus: claims due runs one after the other and executes
// them.
//   DB_NAME=… DB_USER=… DB_PASSWORD=… php examples/worker.php
// DB_HOST and DB_SOCKET name the server where it is not the default one.
$connection = [
    'driver' => 'mysqli',
    'host' => getenv('DB_HOST') ?: 'localhost',
    'unix_socket' => getenv('DB_SOCKET') ?: ini_get('mysqli.default_socket') ?: '',
    'dbname' => getenv('DB_NAME') ?: 'typo3',
    'user' => getenv('DB_USER') ?: 'typo3',
    'password' => getenv('DB_PASSWORD') ?: '',
];
$runtime = new NrLlmRuntime($connection);
$owner = NrLlmRuntime::identity('worker');
// Seconds. A heartbeat every 20 s renews the lease, however long a call takes. The run of a dead
// worker is stale within a minute.
const LEASE = 60;

while ($run = $runtime->dueRuns(1)[0] ?? null) {
    if (!$runtime->claimQueued($run['uid'], $owner, time() + LEASE)) {
        continue; // another worker claimed it first
    }
    $lease = null;
    try {
        $lease = $runtime->keepLease($run['uid'], $owner, LEASE); // renewed by a thread until release()
        execute($runtime, $run['uid'], $owner, $lease);
        echo finish($connection, $run['uid'], $owner) ? 'completed' : 'lost', " {$run['uuid']}\n";
    } catch (NrLlmLeaseLostException | NrLlmRunCancelledException $lost) {
        // This worker does not own the run any more: it writes nothing.
        echo "left {$run['uuid']}: {$lost->getMessage()}\n";
    } catch (NrLlmException | mysqli_sql_exception $database) {
        // A database error does not end the run: the reaper requeues it when the lease has expired.
        echo "left {$run['uuid']}: {$database->getMessage()}\n";
    } catch (Throwable $error) {
        // Requeued with backoff, dead-lettered with a reason, or lease_lost.
        $recovery = $runtime->recoverFailure($run['uid'], $owner, $error);
        $reason = $recovery->reason() === null ? '' : ", {$recovery->reason()}";
        echo "{$recovery->outcome()} {$run['uuid']}: {$recovery->failure()} failure$reason\n";
    } finally {
        $lease?->release();
    }
}

/**
 * Executes the run: the agent loop. Each step() reports progress, and throws when the lease is
 * lost.
 */
function execute(NrLlmRuntime $runtime, int $uid, string $owner, NrLlmLease $lease): void
{
    $steps = ['ask the model' => '', 'send the mail' => 'non_idempotent_write', 'ask again' => ''];
    foreach ($steps as $step => $effect) {
        $lease->step();
        // The write fence records the effect in the row. If this process dies during the write, no
        // second attempt repeats it.
        if ($effect !== '' && !$runtime->markPendingEffect($uid, $owner, $effect, time() + LEASE)) {
            throw new NrLlmLeaseLostException("run $uid is lost before: $step");
        }
        usleep(1000); // a call to a provider or a tool, as long as it takes
        if ($effect !== '') {
            $runtime->markPendingEffect($uid, $owner, '', time() + LEASE);
        }
    }
}

/**
 * Ends the run as completed, guarded by the owner. In nr_llm this is `finishRun`.
 *
 * @param array<string, string> $connection
 */
function finish(array $connection, int $uid, string $owner): bool
{
    mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
    ['host' => $host, 'user' => $user, 'password' => $password, 'dbname' => $name] = $connection;
    $database = new mysqli($host, $user, $password, $name, null, $connection['unix_socket']);
    $database->execute_query(
        "UPDATE tx_nrllm_agentrun SET status = 'completed', finished_at = ?, tstamp = ?,
            queued_request = '', suspended_state = '', claimed_by = '', lease_expires = 0
        WHERE uid = ? AND status = 'running' AND CAST(claimed_by AS BINARY) = CAST(? AS BINARY)",
        [time(), time(), $uid, $owner],
    );

    return $database->affected_rows === 1;
}
