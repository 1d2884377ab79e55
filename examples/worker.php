<?php

declare(strict_types=1);

// A worker in plain PHP, without a message bus: takes due runs one after the other and settles each.
//   DB_NAME=… DB_USER=… DB_PASSWORD=… php examples/worker.php     (DB_HOST, DB_SOCKET: where the server is not the default one)
$connection = ['driver' => 'pdo_mysql', 'host' => getenv('DB_HOST') ?: 'localhost', 'unix_socket' => getenv('DB_SOCKET') ?: ini_get('pdo_mysql.default_socket'),
    'dbname' => getenv('DB_NAME') ?: 'typo3', 'user' => getenv('DB_USER') ?: 'typo3', 'password' => getenv('DB_PASSWORD') ?: ''];
$runtime = new NrLlmRuntime($connection);
$owner = NrLlmRuntime::identity('worker');
const LEASE = 60; // seconds. Beats every 20 s keep it, however long a call takes; a dead worker is noticed within a minute.

while ($run = $runtime->dueRuns(1)[0] ?? null) {
    if (!$runtime->claimQueued($run['uid'], $owner, time() + LEASE)) {
        continue; // another worker was faster
    }
    try {
        $kept = $runtime->keepLease($run['uid'], $owner, LEASE); // beats from a thread of its own until it is released
        execute($runtime, $run['uid'], $owner, $kept);
        echo finish($connection, $run['uid'], $owner) ? 'completed' : 'lost', " {$run['uuid']}\n";
    } catch (NrLlmLeaseLostException | NrLlmRunCancelledException $lost) {
        echo "left {$run['uuid']}: {$lost->getMessage()}\n"; // it is not ours any more: write nothing
    } catch (NrLlmException | PDOException $database) {
        echo "left {$run['uuid']}: {$database->getMessage()}\n"; // says nothing about the run: settle nothing, a reaper hands it on
    } catch (Throwable $error) {
        $recovery = $runtime->recoverFailure($run['uid'], $owner, $error); // requeued with backoff, dead-lettered with its reason, or lease_lost
        echo "{$recovery->outcome()} {$run['uuid']}: {$recovery->failure()} failure", $recovery->reason() ? ", {$recovery->reason()}" : '', "\n";
    } finally {
        isset($kept) && $kept->release();
    }
}

/** Your agent loop. Each step() says that there is progress, and throws when the run is not ours any more. */
function execute(NrLlmRuntime $runtime, int $uid, string $owner, NrLlmLease $kept): void
{
    foreach (['ask the model' => '', 'send the mail' => 'non_idempotent_write', 'ask the model again' => ''] as $step => $effect) {
        $kept->step();
        // The fence: the row says what is being done, so that no second attempt repeats a write when this process dies in the middle of it.
        $fence = static fn (string $effect): bool => $runtime->markPendingEffect($uid, $owner, $effect, time() + LEASE);
        $effect === '' || $fence($effect) || throw new NrLlmLeaseLostException("run $uid is lost before: $step");
        usleep(1000); // a call to a provider or a tool, as long as it takes
        $effect === '' || $fence('');
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
