<?php

declare(strict_types=1);

// A worker in plain PHP, without a message bus: takes due runs one after the other and settles each.
//   php examples/worker.php [how many runs at most]
$url = getenv('NRLLM_DATABASE') ?: 'mysql://typo3:secret@localhost/typo3';
$runtime = new NrLlmRuntime($url, ['queryTimeoutMs' => 5000]);
$owner = NrLlmRuntime::identity('worker');
$lease = 60; // seconds; a heartbeat every 20 s keeps it, however long a call takes
$atMost = (int) ($argv[1] ?? PHP_INT_MAX);

for ($done = 0; $done < $atMost; $done++) {
    $run = $runtime->dueRuns(1)[0] ?? null;
    if ($run === null) {
        break; // nothing is due; a daemon would sleep here
    }
    if (!$runtime->claimQueued($run['uid'], $owner, time() + $lease)) {
        continue; // another worker was faster
    }
    $kept = $runtime->keepLease($run['uid'], $owner, $lease); // beats from a thread of its own until it is released
    try {
        execute($run, $kept);
        $kept->release();
        echo finish($url, $run['uid'], $owner) ? "completed {$run['uuid']}\n" : "lost {$run['uuid']}\n";
    } catch (NrLlmLeaseLostException | NrLlmRunCancelledException $lost) {
        echo "left {$run['uuid']}: {$lost->getMessage()}\n"; // not ours any more: write nothing
    } catch (Throwable $error) {
        $kept->release();
        $recovery = $runtime->recoverFailure($run['uid'], $owner, $error); // requeued, or dead-lettered with its reason
        echo "{$recovery->outcome()} {$run['uuid']}: {$recovery->failure()}\n";
    }
}

/** Your agent loop. Between two steps it says so, which also tells whether the run is still ours. */
function execute(array $run, NrLlmLease $kept): void
{
    foreach (['ask the model', 'call the tool', 'ask the model again'] as $step) {
        $kept->step();
        usleep(1000); // a call to a provider, as long as it takes
    }
}

/** A finished run is written by whoever knows its result (nr_llm's `finishRun`), guarded like everything else. */
function finish(string $url, int $uid, string $owner): bool
{
    ['host' => $host, 'port' => $port, 'user' => $user, 'pass' => $password, 'path' => $path] = parse_url($url) + ['port' => 3306, 'pass' => ''];
    parse_str(parse_url($url, PHP_URL_QUERY) ?? '', $query);
    $address = isset($query['socket']) ? "unix_socket={$query['socket']}" : "host=$host;port=$port";
    $pdo = new PDO("mysql:$address;dbname=" . substr($path, 1) . ';charset=utf8mb4', rawurldecode($user), rawurldecode($password));
    $statement = $pdo->prepare("UPDATE tx_nrllm_agentrun SET status = 'completed', claimed_by = '', lease_expires = 0, finished_at = :now, tstamp = :now2,
        queued_request = '', suspended_state = '' WHERE uid = :uid AND status = 'running' AND CAST(claimed_by AS BINARY) = CAST(:owner AS BINARY)");
    $statement->execute(['now' => time(), 'now2' => time(), 'uid' => $uid, 'owner' => $owner]);
    return $statement->rowCount() === 1;
}
