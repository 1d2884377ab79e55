--TEST--
Every feature works with the privileges that docs/operations.md lists, and fails without any one of them
--DESCRIPTION--
The GRANT statements are read from the page itself, with the names of the test's database and account put in.
--EXTENSIONS--
nrllm_runtime
mysqli
--FILE--
<?php
$top = getenv('NRLLM_TOP') ?: dirname(__DIR__);
require "$top/phpt/inc/db.inc";
$db = new TestDb(['messages' => true]);
$admin = $db->link();
$account = 'grants_' . bin2hex(random_bytes(4));
$admin->query("CREATE USER '$account'@'localhost' IDENTIFIED BY 'only-for-this-test'");
register_shutdown_function(static fn () => $db->link()->query("DROP USER '$account'@'localhost'"));
preg_match_all('/^GRANT .+;$/m', file_get_contents("$top/docs/operations.md"), $grants);
[$runs, $messages] = array_map(
    static fn (string $grant): string => strtr($grant, ['`typo3`' => "`$db->name`", "'nrllm'@'localhost'" => "'$account'@'localhost'"]),
    $grants[0]
);
$admin->query($runs);
$runtime = static fn (): NrLlmRuntime => $db->runtime([], ['user' => $account, 'password' => 'only-for-this-test']);
$wakeUp = ['table' => 'sys_messenger_messages', 'queue' => 'default', 'body' => 'run 00000000-0000-0000-0000-000000000000', 'headers' => '[]',
    'placeholder' => '00000000-0000-0000-0000-000000000000'];
$now = time();

/** Each feature once, on runs of its own: name => call that returns whether it succeeded. */
$features = [
    'claim' => static fn (NrLlmRuntime $r): bool => $r->claimQueued($db->insert(), 'worker:a', $now + 60),
    'renew' => static fn (NrLlmRuntime $r): bool => $r->renewLease($db->running($now + 60), 'worker:a', $now + 90),
    'write fence' => static fn (NrLlmRuntime $r): bool => $r->markPendingEffect($db->running($now + 60), 'worker:a', 'read_only', $now + 90),
    'requeue' => static fn (NrLlmRuntime $r): bool => $r->requeue($db->running($now + 60), 'worker:a'),
    'requeue stale' => static fn (NrLlmRuntime $r): bool => $r->requeueStale($db->running($now - 60), $now),
    'dead-letter stale' => static fn (NrLlmRuntime $r): bool => $r->deadLetterStale($db->running($now - 60), $now, 'retries_exhausted'),
    'lease state' => static fn (NrLlmRuntime $r): bool => $r->leaseState($db->running($now + 60), 'worker:a') === 'held',
    'keep a lease' => static fn (NrLlmRuntime $r): bool => $r->keepLease($db->running($now + 60), 'worker:a', 60)->isHeld(),
    'recover' => static fn (NrLlmRuntime $r): bool => $r->recoverFailure($db->running($now + 60), 'worker:a', new Exception())->outcome() === 'dead_lettered',
    'reap' => static fn (NrLlmRuntime $r): bool => count($r->reap(10, $now, ['only' => [$db->running($now - 60), $db->running($now - 60, ['requeue_count' => 3])]])) === 2,
    'fail undispatched' => static fn (NrLlmRuntime $r): bool => $r->failUndispatched($db->insert(), 0, new Exception()),
    'stranded' => static fn (NrLlmRuntime $r): bool => $db->insert(['crdate' => 1]) > 0 && count($r->strandedRuns(60, 1)) === 1,
    'due' => static fn (NrLlmRuntime $r): bool => $db->insert(['crdate' => 2]) > 0 && count($r->dueRuns(1)) === 1,
    'cancel' => static fn (NrLlmRuntime $r): bool => $r->cancelRun($db->row($db->insert())['uuid']),
    'status' => static fn (NrLlmRuntime $r): bool => $r->status()['counts'] !== [],
];
$wakeUps = [
    'reap, with wake-up' => static fn (NrLlmRuntime $r): bool => $r->reap(10, $now, ['only' => [$db->running($now - 60)], 'wakeUp' => $wakeUp])->requeued()[0]['wokenUp'],
    'stranded, with wake-up' => static fn (NrLlmRuntime $r): bool => $db->insert(['crdate' => 1]) > 0 && $r->strandedRuns(60, 1, null, $wakeUp)[0]['wokenUp'],
];
$try = static function (array $features, bool $reported) use ($runtime): void {
    foreach ($features as $name => $feature) {
        try {
            $done = $feature($runtime());
        } catch (NrLlmException $error) {
            $done = $error::class . ' ' . $error->getCode();
        }
        if ($done !== true || $reported) {
            echo $name, ': ', is_string($done) ? $done : var_export($done, true), "\n";
        }
    }
};
$reconnect = static fn () => $runtime()->close();

echo "-- with SELECT and UPDATE on the runs\n";
$try($features, false);
$try($wakeUps, true);
echo "-- with SELECT and INSERT on the messages too\n";
$admin->query($messages);
$reconnect();
$try($wakeUps, false);
echo "-- without UPDATE\n";
$admin->query("REVOKE UPDATE ON `$db->name`.`tx_nrllm_agentrun` FROM '$account'@'localhost'");
$reconnect();
$try($features, true);
?>
--EXPECTF--
-- with SELECT and UPDATE on the runs
reap, with wake-up: NrLlm%s
stranded, with wake-up: NrLlm%s
-- with SELECT and INSERT on the messages too
-- without UPDATE
claim: NrLlmQueryException 1142
renew: NrLlmQueryException 1142
write fence: NrLlmQueryException 1142
requeue: NrLlmQueryException 1142
requeue stale: NrLlmQueryException 1142
dead-letter stale: NrLlmQueryException 1142
lease state: true
keep a lease: NrLlmQueryException 1142
recover: NrLlmQueryException 1142
reap: NrLlmQueryException 1142
fail undispatched: NrLlmQueryException 1142
stranded: NrLlmQueryException 1142
due: true
cancel: NrLlmQueryException 1142
status: true
