<?php

/**
 * The demo: runs in every state, and what workers, the reaper and failures do with them. bin/demo
 * starts it, with the address of a private server in the environment.
 */

declare(strict_types=1);

use Netresearch\NrLlm\Provider\Exception\FallbackChainExhaustedException;
use Netresearch\NrLlm\Provider\Exception\ProviderConnectionException;
use Netresearch\NrLlm\Provider\Exception\ProviderResponseException;

require __DIR__ . '/table.php';
require __DIR__ . '/provider.php';
require __DIR__ . '/../phpt/inc/schema.inc';

mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
[$socket, $user, $password] = [getenv('NRLLM_TEST_SOCKET'), getenv('NRLLM_TEST_USER'), getenv('NRLLM_TEST_PASSWORD')];
$db = new mysqli('localhost', $user, $password, '', 0, $socket);
$db->query('CREATE DATABASE demo CHARACTER SET utf8mb4');
$db->select_db('demo');
$db->query(run_table_sql());

// What a TYPO3 site has in $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'].
$connection = ['driver' => 'mysqli', 'host' => 'localhost', 'unix_socket' => $socket, 'user' => $user, 'password' => $password, 'dbname' => 'demo'];
$runtime = new NrLlmRuntime($connection);
$now = time();
$request = '{"messages":[{"role":"user","content":"Translate this page"}]}';
$failed = false;

/** @var array<string, int> $uids name => uid */
$uids = [];
$seed = static function (string $name, array $columns) use ($db, &$uids, $now, $request): void {
    static $hour = 0;
    $columns += ['status' => 'running', 'claimed_by' => 'worker:web-01:4711', 'queued_request' => $request, 'tstamp' => $now - 300,
        'crdate' => $now - 3600 + 60 * $hour++, 'started_at' => $now - 300, 'configuration_identifier' => $name,
        'uuid' => vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex(random_bytes(16)), 4))];
    $statement = $db->prepare('INSERT INTO tx_nrllm_agentrun (' . implode(', ', array_keys($columns)) . ') VALUES ('
        . implode(', ', array_fill(0, count($columns), '?')) . ')');
    $statement->execute(array_map(static fn($value): ?string => $value === null ? null : (string)$value, array_values($columns)));
    $uids[$name] = $db->insert_id;
};
$seed('live', ['lease_expires' => $now + 600]);
$seed('slow', ['claimed_by' => 'worker:web-01:4712', 'lease_expires' => $now - 5]);
$seed('dead', ['claimed_by' => 'worker:web-02:88', 'lease_expires' => $now - 400]);
$seed('dead, again', ['claimed_by' => 'worker:web-02:91', 'lease_expires' => $now - 380, 'requeue_count' => 2]);
$seed('dead, too often', ['claimed_by' => 'worker:web-02:95', 'lease_expires' => $now - 360, 'requeue_count' => 3]);
$seed('dead mid-write', ['claimed_by' => 'worker:web-03:12', 'lease_expires' => $now - 340, 'pending_effect' => 'non_idempotent_write']);
$seed('dead mid-read', ['claimed_by' => 'worker:web-03:15', 'lease_expires' => $now - 320, 'pending_effect' => 'read_only']);
$seed('no request', ['claimed_by' => 'resume:web-01:70', 'lease_expires' => $now - 300, 'queued_request' => null]);
$seed('interactive', ['claimed_by' => '', 'lease_expires' => 0, 'queued_request' => null]);
$seed('locked', ['claimed_by' => 'worker:web-04:7', 'lease_expires' => $now - 280]);
$seed('will see a 503', ['claimed_by' => 'worker:web-01:4713', 'lease_expires' => $now + 700]);
$seed('will see a 401', ['claimed_by' => 'worker:web-01:4714', 'lease_expires' => $now + 700]);
$seed('chain of three', ['claimed_by' => 'worker:web-01:4715', 'lease_expires' => $now + 700, 'requeue_count' => 2]);
$seed('asks a person', ['status' => 'waiting_for_approval', 'claimed_by' => '', 'lease_expires' => 0]);
$seed('done', ['status' => 'completed', 'claimed_by' => '', 'lease_expires' => 0, 'queued_request' => '', 'finished_at' => $now - 100]);
$seed('new', ['status' => 'queued', 'claimed_by' => '', 'lease_expires' => 0, 'started_at' => 0]);
$names = array_flip($uids);

/** Prints the table of runs, with the given words in the last column. */
$show = static function (string $lastColumn, array $words, bool $ended) use ($db, $names): void {
    $rows = [];
    foreach ($db->query('SELECT * FROM tx_nrllm_agentrun ORDER BY uid') as $row) {
        $rows[] = [$row['uid'], $names[$row['uid']], $row['status'], $row['claimed_by'] === '' ? '-' : $row['claimed_by'],
            lease_in_words((int)$row['lease_expires'], time()), $row['requeue_count'],
            ...($ended ? [$row['termination_reason'] === '' ? '-' : $row['termination_reason']] : []), $words[$names[$row['uid']]] ?? ''];
    }
    print_table(['run', 'name', 'status', 'owner', 'lease', 'requeued', ...($ended ? ['ended because'] : []), $lastColumn], $rows);
};
$yes = static fn(bool $answer): string => $answer ? 'yes' : 'no';

echo "\nNrLlmRuntime ", NrLlmRuntime::VERSION, ' on ', $runtime->status()['server'], "\n\n";
echo "1. Before\n\n";
$show('what it is', [
    'live' => 'its worker executes it',
    'slow' => 'its worker is alive, but late with its heartbeat',
    'dead' => 'its worker was killed',
    'dead, again' => 'killed, and two workers before it',
    'dead, too often' => 'killed, and three workers before it',
    'dead mid-write' => 'killed during a write that must not happen twice',
    'dead mid-read' => 'killed while a tool was reading',
    'no request' => 'killed, and no request is stored that a worker could execute',
    'interactive' => 'started before leases existed: never stale',
    'locked' => 'killed, but another transaction locks its row',
    'will see a 503' => 'its provider is about to answer 503',
    'will see a 401' => 'its provider is about to answer 401',
    'chain of three' => 'all three of its providers are about to fail',
    'asks a person' => 'waits for an approval',
    'done' => 'finished',
    'new' => 'waits for a worker',
], false);

echo "2. Heartbeats\n\n";
$worker = NrLlmRuntime::identity('worker');
print_table(['call', 'answer', 'why'], [
    ["claimQueued 'new' as $worker", $yes($runtime->claimQueued($uids['new'], $worker, $now + 900)), 'it was queued: this process owns it now'],
    ["claimQueued 'new' once more", $yes($runtime->claimQueued($uids['new'], 'worker:web-09:1', $now + 900)), 'it is running: the second worker is refused'],
    ["renewLease 'live'", $yes($runtime->renewLease($uids['live'], 'worker:web-01:4711', $now + 900)), 'still the owner'],
    ["renewLease 'live', same second", $yes($runtime->renewLease($uids['live'], 'worker:web-01:4711', $now + 900)), 'a renewal that changes nothing is a renewal'],
    ["renewLease 'slow'", $yes($runtime->renewLease($uids['slow'], 'worker:web-01:4712', $now + 900)), 'late, but no reaper had taken it'],
    ["renewLease 'live' as WORKER:web-01:4711", $yes($runtime->renewLease($uids['live'], 'WORKER:web-01:4711', $now + 900)),
        'owners compare byte by byte, whatever the collation'],
]);

echo "   A lease of 2 seconds, kept during a call of 5 seconds\n\n";
$kept = $runtime->keepLease($uids['new'], $worker, 2, ['everyMs' => 500]);
$first = $kept->state();
sleep(5); // as during curl_exec(): no PHP code runs, no signal handler either
$held = $kept->state() . ', ' . $kept->beats() . ' heartbeats';
$stale = $runtime->reap(50, null, ['only' => [$uids['new']]])->count();
$kept->release();
print_table(['call', 'answer', 'why'], [
    ["keepLease 'new', 2 s", $first, 'renewed before it returns, then by the heartbeat thread'],
    ['sleep(5)', $held, 'the heartbeats continue while PHP is blocked'],
    ["reap, only 'new'", $stale === 0 ? 'nothing stale' : 'reaped', 'no reaper takes the run of a live worker'],
    ['release', $kept->state(), 'and no heartbeat after it'],
]);
$runtime->renewLease($uids['new'], $worker, $now + 900);

/** Prints a report as a table: the outcome of each run, and the reason. */
$why = [
    'retries_exhausted' => 'the retry budget is three requeues',
    'contended' => 'its row is locked, the next reap sees it again',
    'renewed' => 'its worker renewed the lease in time',
];
$report = static function (NrLlmReapReport $report, string $requeued, string $deadLettered) use ($names, $why, $uids): void {
    $rows = [];
    foreach ($report->requeued() as $run) {
        $rows[] = [(string)$run['uid'], $names[$run['uid']], $requeued, 'requeue ' . $run['requeueCount'] . ' of ' . NrLlmRuntime::MAX_REQUEUES];
    }
    foreach ($report->deadLettered() as $run) {
        $reason = $why[$run['reason']] ?? ($run['uid'] === $uids['no request'] ? 'no stored request' : 'a second attempt might write twice');
        $rows[] = [(string)$run['uid'], $names[$run['uid']], $deadLettered, $run['reason'] . ': ' . $reason];
    }
    foreach ($report->skipped() as $run) {
        $rows[] = [(string)$run['uid'], $names[$run['uid']], 'skipped', $run['reason'] . ': ' . ($why[$run['reason']] ?? '')];
    }
    print_table(['run', 'name', 'outcome', 'why'], $rows);
};

echo "3. What a reaper would do (dry run: nothing is written)\n\n";
$report($runtime->reap(50, null, ['dryRun' => true]), 'would be requeued', 'would be dead-lettered');

echo "4. The reaper, while another transaction locks the row of 'locked'\n\n";
$other = new mysqli('localhost', $user, $password, 'demo', 0, $socket);
$other->begin_transaction();
$other->query('SELECT uid FROM tx_nrllm_agentrun WHERE uid = ' . $uids['locked'] . ' FOR UPDATE');
$report($runtime->reap(), 'requeued', 'dead-lettered');
$other->rollback();
echo "   And its next call, when the row is free again\n\n";
$report($runtime->reap(), 'requeued', 'dead-lettered');

echo "5. Failures: classified, decided and written in one guarded transaction\n\n";
$failures = [
    'will see a 503' => ['worker:web-01:4713', new ProviderResponseException('Service Unavailable', 503), 'HTTP 503'],
    'will see a 401' => ['worker:web-01:4714', new ProviderResponseException('Invalid API key', 401), 'HTTP 401'],
    'chain of three' => ['worker:web-01:4715', new FallbackChainExhaustedException([
        ['configuration' => 'primary', 'error' => new ProviderResponseException('Invalid API key', 401)],
        ['configuration' => 'fallback', 'error' => new ProviderResponseException('Too Many Requests', 429)],
        ['configuration' => 'last resort', 'error' => new ProviderConnectionException('Connection timed out')],
    ]), 'chain: 401, 429, timeout'],
];
$rows = [];
foreach ($failures as $name => [$owner, $error, $words]) {
    $recovery = $runtime->recoverFailure($uids[$name], $owner, $error);
    $failure = $recovery->failure();
    $rows[] = [$name, $words, (string)$failure, $yes($failure->isRetryable()), $yes($failure->tripsCircuit()), $recovery->outcome(),
        $recovery->outcome() === NrLlmRecovery::REQUEUED ? 'tried again in ' . $recovery->delayMs() / 1000 . ' s' : (string)$recovery->reason()];
}
print_table(['run', 'what happened', 'class', 'retryable', 'trips circuit', 'outcome', 'then'], $rows);

echo "6. Status\n\n";
$status = $runtime->status();
$list = static fn(array $counts): string => implode(', ', array_map(static fn(string $key, int $count): string => "$count $key", array_keys($counts), $counts));
print_table(['what', 'value'], [
    ['runs', $list(array_filter($status['counts']))],
    ['dead letters', $list(array_filter($status['deadLetters']))],
    ['expired leases', (string)$status['expiredLeases']],
    ['running without a lease', (string)$status['unleasedRunning']],
    ['oldest queued', $status['oldestQueuedSeconds'] === null ? 'none' : $status['oldestQueuedSeconds'] . ' s'],
    ['clock skew to the server', $status['clockSkewMs'] . ' ms'],
    ['key (status, lease_expires)', $yes($status['leaseKey'])],
    ['isolation', (string)$status['isolation']],
]);

echo "7. After\n\n";
$expected = [
    'live' => ['running', '', 'unchanged: reaper and worker do not block each other'],
    'slow' => ['running', '', 'renewed in time'],
    'dead' => ['queued', '', 'a worker may take it'],
    'dead, again' => ['queued', '', 'its last attempt'],
    'dead, too often' => ['failed', 'retries_exhausted', 'dead letter: four attempts have failed'],
    'dead mid-write' => ['failed', 'not_retryable', 'dead letter: check by hand what was written'],
    'dead mid-read' => ['queued', '', 'a second read is harmless'],
    'no request' => ['failed', 'not_retryable', 'dead letter: no worker could execute it'],
    'interactive' => ['running', '', 'no lease, never stale'],
    'locked' => ['queued', '', 'requeued by the second call'],
    'will see a 503' => ['queued', '', 'tried again after 30 s'],
    'will see a 401' => ['failed', 'not_retryable', 'dead letter: the key stays wrong'],
    'chain of three' => ['queued', '', 'the last error of the chain decides: tried again after 120 s'],
    'asks a person' => ['waiting_for_approval', '', 'unchanged'],
    'done' => ['completed', '', 'unchanged: a terminal run stays as it is'],
    'new' => ['running', '', 'claimed in step 2'],
];
$show('why', array_column(array_map(static fn(string $name, array $row): array => [$name, $row[2]], array_keys($expected), $expected), 1, 0), true);
foreach ($db->query('SELECT * FROM tx_nrllm_agentrun') as $row) {
    [$wantedStatus, $wantedReason] = $expected[$names[$row['uid']]];
    if ($row['status'] !== $wantedStatus || $row['termination_reason'] !== $wantedReason) {
        fwrite(STDERR, "Not as expected: '{$names[$row['uid']]}' should be $wantedStatus $wantedReason\n");
        $failed = true;
    }
}
$runtime->close();
if ($failed) {
    exit(1);
}
echo "Every run has the state that the protocol requires.\n";
