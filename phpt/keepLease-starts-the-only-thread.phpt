--TEST--
keepLease(): a process that keeps no lease has no second thread after a call, also where a host name is resolved
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
echo 'loaded: ', threads(), "\n";
$runtime = $db->runtime();
$uid = $db->insert();
$uuid = $db->row($uid)['uuid'];
$calls = [
    'claimQueued' => static fn () => $runtime->claimQueued($uid, 'w', time() + 100),
    'renewLease' => static fn () => $runtime->renewLease($uid, 'w', time() + 100),
    'markPendingEffect' => static fn () => $runtime->markPendingEffect($uid, 'w', 'read_only', time() + 100),
    'leaseState' => static fn () => $runtime->leaseState($uid, 'w'),
    'requeue' => static fn () => $runtime->requeue($uid, 'w'),
    'requeueStale' => static fn () => $runtime->requeueStale($uid, time()),
    'deadLetterStale' => static fn () => $runtime->deadLetterStale($uid, time(), 'x'),
    'recoverFailure' => static fn () => $runtime->recoverFailure($uid, 'w', new Exception()),
    'reap' => static fn () => $runtime->reap(),
    'failUndispatched' => static fn () => $runtime->failUndispatched($uid, 1, new Exception()),
    'status' => static fn () => $runtime->status(),
    'cancelRun' => static fn () => $runtime->cancelRun($uuid),
    'identity' => static fn () => NrLlmRuntime::identity('w'),
    'backoffMs' => static fn () => NrLlmRuntime::backoffMs(3),
    'classifyFailure' => static fn () => NrLlmRuntime::classifyFailure(new Exception()),
    'a lease that is not held' => static function () use ($runtime, $uid): void {
        try {
            $runtime->keepLease($uid, 'w');
        } catch (NrLlmException) {
        }
    },
    'close' => static fn () => $runtime->close(),
];
foreach ($calls as $label => $call) {
    $call();
    check(threads() === 1, "one thread after $label");
}
echo 'after ', count($calls), ' calls: ', threads(), "\n";
// A host name is resolved by a separate thread, which ends with its result and blocks the signals.
foreach ([gethostname(), 'name.invalid'] as $host) {
    try {
        (new NrLlmRuntime($db->connection(['host' => $host, 'unix_socket' => null, 'port' => 1]), ['connectTimeoutMs' => 5000]))->status();
    } catch (NrLlmConnectionException) {
    }
    check(until(static fn (): bool => threads() === 1), 'the resolver is gone');
}
echo 'a name resolved: ', threads(), "\n";
?>
--EXPECT--
loaded: 1
after 17 calls: 1
a name resolved: 1
