--TEST--
Arguments are judged before any SQL: ValueError for a wrong value, TypeError for a wrong type, each naming the argument
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
// No server listens there: whatever reached it would be a connection error.
$runtime = new NrLlmRuntime(['driver' => 'mysqli', 'host' => '127.0.0.1', 'port' => 1, 'user' => 'u', 'dbname' => 'd'], ['connectTimeoutMs' => 200]);
$error = new Exception('x');
$calls = [
    'uid 0' => fn () => $runtime->claimQueued(0, 'w', 1),
    'uid negative' => fn () => $runtime->renewLease(-1, 'w', 1),
    'owner empty' => fn () => $runtime->claimQueued(1, '', 1),
    'owner blank' => fn () => $runtime->claimQueued(1, " \t\r\n\0\v", 1),
    'owner of 65 characters' => fn () => $runtime->claimQueued(1, str_repeat('é', 65), 1),
    'owner not UTF-8' => fn () => $runtime->claimQueued(1, "w\xff", 1),
    'lease 0' => fn () => $runtime->claimQueued(1, 'w', 0),
    'lease negative' => fn () => $runtime->renewLease(1, 'w', -5),
    'lease in milliseconds' => fn () => $runtime->claimQueued(1, 'w', 1700000000000),
    'recover: uid' => fn () => $runtime->recoverFailure(0, 'w', $error),
    'recover: owner' => fn () => $runtime->recoverFailure(1, '', $error),
    'reap: limit 0' => fn () => $runtime->reap(0),
    'reap: limit negative' => fn () => $runtime->reap(-1),
    'reap: now negative' => fn () => $runtime->reap(50, -1),
    'reap: now in milliseconds' => fn () => $runtime->reap(50, 1700000000000),
    'reap: unknown option' => fn () => $runtime->reap(50, null, ['dryrun' => true]),
    'reap: dryRun' => fn () => $runtime->reap(50, null, ['dryRun' => 1]),
    'reap: only is no list' => fn () => $runtime->reap(50, null, ['only' => 5]),
    'reap: only holds a word' => fn () => $runtime->reap(50, null, ['only' => ['5']]),
    'reap: only holds 0' => fn () => $runtime->reap(50, null, ['only' => [0]]),
    'reap: except holds a negative' => fn () => $runtime->reap(50, null, ['except' => [-3]]),
    'reap: an option without a name' => fn () => $runtime->reap(50, null, [true]),
    'status: now' => fn () => $runtime->status(-1),
    'status: since' => fn () => $runtime->status(null, -1),
    'identity: empty' => fn () => NrLlmRuntime::identity(''),
    'identity: 25 bytes' => fn () => NrLlmRuntime::identity(str_repeat('s', 25)),
    'backoffMs: negative' => fn () => NrLlmRuntime::backoffMs(-1),
];
foreach ($calls as $label => $call) {
    thrown($label, $call);
}
$types = [
    'uid a string' => fn () => $runtime->claimQueued('1', 'w', 1),
    'uid a float' => fn () => $runtime->claimQueued(1.0, 'w', 1),
    'owner an int' => fn () => $runtime->claimQueued(1, 5, 1),
    'owner null' => fn () => $runtime->renewLease(1, null, 1),
    'lease null' => fn () => $runtime->renewLease(1, 'w', null),
    'too few' => fn () => $runtime->renewLease(1, 'w'),
    'limit a string' => fn () => $runtime->reap('50'),
    'limit null' => fn () => $runtime->reap(null),
    'options null' => fn () => $runtime->reap(50, null, null),
    'classify no throwable' => fn () => NrLlmRuntime::classifyFailure(new stdClass()),
    'classify a string' => fn () => NrLlmRuntime::classifyFailure('x'),
    'recover no throwable' => fn () => $runtime->recoverFailure(1, 'w', null),
    'identity an int' => fn () => NrLlmRuntime::identity(5),
];
foreach ($types as $label => $call) {
    thrown_class($label, $call);
}
thrown_class('unknown parameter', fn () => $runtime->reap(limmit: 5));
?>
--EXPECTF--
x
