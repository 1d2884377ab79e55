--TEST--
An argument of a wrong value is a ValueError that names it, before any SQL
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
// No server listens there: a call that needed it would be a connection error.
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
?>
--EXPECT--
uid 0: ValueError: $runUid must be at least 1, 0 given
uid negative: ValueError: $runUid must be at least 1, -1 given
owner empty: ValueError: $claimedBy must name who holds the lease, an empty or blank string given; NrLlmRuntime::identity() makes a name
owner blank: ValueError: $claimedBy must name who holds the lease, an empty or blank string given; NrLlmRuntime::identity() makes a name
owner of 65 characters: ValueError: $claimedBy must be at most 64 characters long, 65 given; NrLlmRuntime::identity() makes a name that fits
owner not UTF-8: ValueError: $claimedBy must be UTF-8, other bytes given
lease 0: ValueError: $leaseExpires must be a unix time in seconds from 1 to 4294967295, 0 given
lease negative: ValueError: $leaseExpires must be a unix time in seconds from 1 to 4294967295, -5 given
lease in milliseconds: ValueError: $leaseExpires must be a unix time in seconds from 1 to 4294967295, 1700000000000 given
recover: uid: ValueError: $runUid must be at least 1, 0 given
recover: owner: ValueError: $claimedBy must name who holds the lease, an empty or blank string given; NrLlmRuntime::identity() makes a name
reap: limit 0: ValueError: $limit must be at least 1, 0 given
reap: limit negative: ValueError: $limit must be at least 1, -1 given
reap: now negative: ValueError: $now must be a unix time in seconds (not milliseconds) from 0 to 4294967295, -1 given
reap: now in milliseconds: ValueError: $now must be a unix time in seconds (not milliseconds) from 0 to 4294967295, 1700000000000 given
reap: unknown option: ValueError: $options has the unknown key 'dryrun'; its keys are dryRun, only, except, wakeUp
reap: dryRun: TypeError: $options['dryRun'] must be of type bool, int given
reap: only is no list: TypeError: $options['only'] must be of type array, int given
reap: only holds a word: TypeError: $options['only'] must list values of type int, string given
reap: only holds 0: ValueError: $options['only'] must list uids of at least 1, 0 given
reap: except holds a negative: ValueError: $options['except'] must list uids of at least 1, -3 given
reap: an option without a name: ValueError: $options has the unknown key '0'; its keys are dryRun, only, except, wakeUp
status: now: ValueError: $now must be a unix time in seconds (not milliseconds) from 0 to 4294967295, -1 given
status: since: ValueError: $since must be a unix time in seconds (not milliseconds) from 0 to 4294967295, -1 given
identity: empty: ValueError: $segment must be 1 to 24 bytes long, 0 given
identity: 25 bytes: ValueError: $segment must be 1 to 24 bytes long, 25 given
backoffMs: negative: ValueError: $requeueCount must be from 0 to 4294967295, -1 given
