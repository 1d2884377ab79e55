<?php

declare(strict_types=1);

// A worker in plain PHP, without a message bus: takes due runs one after the other and settles each.
//   DB_USER=… DB_PASSWORD=… php examples/worker.php
$connection = ['driver' => 'pdo_mysql', 'host' => getenv('DB_HOST') ?: 'localhost', 'unix_socket' => getenv('DB_SOCKET') ?: ini_get('pdo_mysql.default_socket'),
    'dbname' => getenv('DB_NAME') ?: 'typo3', 'user' => getenv('DB_USER') ?: 'typo3', 'password' => getenv('DB_PASSWORD') ?: ''];
$runtime = new NrLlmRuntime($connection);
$owner = NrLlmRuntime::identity('worker');
$lease = 60; // seconds. Beats every 20 s keep it, however long a call takes; a dead worker is noticed within a minute.

while ($run = $runtime->dueRuns(1)[0] ?? null) {
    if (!$runtime->claimQueued($run['uid'], $owner, time() + $lease)) {
        continue; // another worker was faster
    }
    try {
        $kept = $runtime->keepLease($run['uid'], $owner, $lease); // beats from a thread of its own until it is released
        execute($run['uuid'], $kept);
        echo finish($connection, $run['uid'], $owner) ? 'completed' : 'lost', " {$run['uuid']}\n";
    } catch (NrLlmLeaseLostException | NrLlmRunCancelledException $lost) {
        echo "left {$run['uuid']}: {$lost->getMessage()}\n"; // it is not ours any more: write nothing
    } catch (Throwable $error) {
        $recovery = $runtime->recoverFailure($run['uid'], $owner, $error); // requeued with backoff, or dead-lettered with its reason
        echo "{$recovery->outcome()} {$run['uuid']}: {$recovery->failure()} failure", $recovery->reason() ? ", {$recovery->reason()}" : '', "\n";
    } finally {
        isset($kept) && $kept->release();
    }
}

/** Your agent loop. Each step() says that there is progress, and throws when the run is not ours any more. */
function execute(string $uuid, NrLlmLease $kept): void
{
    foreach (['ask the model', 'call the tool', 'ask the model again'] as $step) {
        $kept->step();
        usleep(1000); // a call to a provider, as long as it takes
    }
}

/** The end of a run is written by whoever knows the result (in nr_llm: `finishRun`), guarded by the owner like everything else. */
function finish(array $connection, int $uid, string $owner): bool
{
    $pdo = new PDO("mysql:host={$connection['host']};unix_socket={$connection['unix_socket']};dbname={$connection['dbname']};charset=utf8mb4",
        $connection['user'], $connection['password']);
    $statement = $pdo->prepare("UPDATE tx_nrllm_agentrun SET status = 'completed', finished_at = ?, tstamp = ?, queued_request = '', suspended_state = '',
        claimed_by = '', lease_expires = 0 WHERE uid = ? AND status = 'running' AND CAST(claimed_by AS BINARY) = CAST(? AS BINARY)");
    $statement->execute([time(), time(), $uid, $owner]);

    return $statement->rowCount() === 1;
}
