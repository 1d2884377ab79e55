<?php

declare(strict_types=1);

// A worker in plain PHP, for the runs whose uids it is told: takes each, executes it under a lease, and settles it.
//   DB_USER=… DB_PASSWORD=… php examples/worker.php UID…
$connection = ['driver' => 'pdo_mysql', 'host' => getenv('DB_HOST') ?: 'localhost', 'unix_socket' => getenv('DB_SOCKET') ?: ini_get('pdo_mysql.default_socket'),
    'dbname' => getenv('DB_NAME') ?: 'typo3', 'user' => getenv('DB_USER') ?: 'typo3', 'password' => getenv('DB_PASSWORD') ?: ''];
$runtime = new NrLlmRuntime($connection);
$owner = NrLlmRuntime::identity('worker');

foreach (array_map('intval', array_slice($argv, 1)) as $uid) {
    if (!$runtime->claimQueued($uid, $owner, time() + NrLlmRuntime::LEASE_SECONDS)) {
        echo "left $uid: {$runtime->leaseState($uid, $owner)}\n"; // another worker was faster, or it was cancelled
        continue;
    }
    try {
        // Before each step: still ours? A renewal decides it; where it says no, somebody else has the run, and nothing may be written.
        $ours = execute(static fn (): bool => $runtime->renewLease($uid, $owner, time() + NrLlmRuntime::LEASE_SECONDS));
        echo $ours && finish($connection, $uid, $owner) ? "completed $uid\n" : "lost $uid: {$runtime->leaseState($uid, $owner)}\n";
    } catch (Throwable $error) {
        $recovery = $runtime->recoverFailure($uid, $owner, $error); // requeued with backoff, or dead-lettered with its reason
        echo "{$recovery->outcome()} $uid: {$recovery->failure()} failure", $recovery->reason() ? ", {$recovery->reason()}" : '', "\n";
    }
}

/** Your agent loop. */
function execute(callable $stillOurs): bool
{
    foreach (['ask the model', 'call the tool', 'ask the model again'] as $step) {
        if (!$stillOurs()) {
            return false;
        }
        usleep(1000); // a call to a provider
    }

    return true;
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
