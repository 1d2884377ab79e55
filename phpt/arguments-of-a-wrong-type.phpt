--TEST--
An argument of a wrong type is a TypeError in PHP's words, before any SQL
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
// No server listens there: a call that needed it would be a connection error.
$runtime = new NrLlmRuntime(['driver' => 'mysqli', 'host' => '127.0.0.1', 'port' => 1, 'user' => 'u', 'dbname' => 'd'], ['connectTimeoutMs' => 200]);
$error = new Exception('x');
/**
 * PHP's own words: for a function in PHP (the FFI bridge) the place of the call follows, and from
 * 8.3 on true and false have names of their own.
 */
function type_error(string $label, callable $call): void
{
    try {
        $call();
        echo "$label: nothing\n";
    } catch (TypeError $error) {
        echo $label, ': ', preg_replace(['/, called in .*/s', '/(true|false) given/'], ['', 'bool given'], $error->getMessage()), "\n";
    }
}
$types = [
    'uid a string' => fn () => $runtime->claimQueued('1', 'w', 1),
    'uid a float' => fn () => $runtime->claimQueued(1.0, 'w', 1),
    'uid a bool' => fn () => $runtime->renewLease(true, 'w', 1),
    'uid an anonymous object' => fn () => $runtime->renewLease(new class {}, 'w', 1),
    'owner an int' => fn () => $runtime->claimQueued(1, 5, 1),
    'owner null' => fn () => $runtime->renewLease(1, null, 1),
    'owner an array, uid 0' => fn () => $runtime->requeue(0, []),
    'lease null' => fn () => $runtime->renewLease(1, 'w', null),
    'a reference' => function () use ($runtime) { $uid = 'x'; $same = &$uid; $runtime->renewLease($same, 'w', 1); },
    'by name' => fn () => $runtime->renewLease(leaseExpires: 'x', claimedBy: 'w', runUid: 1),
    'unpacked' => fn () => $runtime->renewLease(...[1, 'w', 1.5]),
    'by call_user_func' => fn () => call_user_func([$runtime, 'renewLease'], 1, 'w', 'x'),
    'limit a string' => fn () => $runtime->reap('50'),
    'limit null' => fn () => $runtime->reap(null),
    'now a string' => fn () => $runtime->dueRuns(now: '5'),
    'options null' => fn () => $runtime->reap(50, null, null),
    'wakeUp a string' => fn () => $runtime->strandedRuns(60, 5, null, 'x'),
    'classify no throwable' => fn () => NrLlmRuntime::classifyFailure(new stdClass()),
    'classify a string' => fn () => NrLlmRuntime::classifyFailure('x'),
    'recover no throwable' => fn () => $runtime->recoverFailure(1, 'w', null),
    'identity an int' => fn () => NrLlmRuntime::identity(5),
    'backoff a string' => fn () => NrLlmRuntime::backoffMs('5'),
    'connection an int' => fn () => new NrLlmRuntime(5),
    'connection an object' => fn () => new NrLlmRuntime(new ArrayObject()),
    'options a string' => fn () => new NrLlmRuntime([], 'x'),
];
foreach ($types as $label => $call) {
    type_error($label, $call);
}
thrown_class('too few', fn () => $runtime->renewLease(1, 'w'));
thrown_class('unknown parameter', fn () => $runtime->reap(limmit: 5));
?>
--EXPECT--
uid a string: NrLlmRuntime::claimQueued(): Argument #1 ($runUid) must be of type int, string given
uid a float: NrLlmRuntime::claimQueued(): Argument #1 ($runUid) must be of type int, float given
uid a bool: NrLlmRuntime::renewLease(): Argument #1 ($runUid) must be of type int, bool given
uid an anonymous object: NrLlmRuntime::renewLease(): Argument #1 ($runUid) must be of type int, class@anonymous given
owner an int: NrLlmRuntime::claimQueued(): Argument #2 ($claimedBy) must be of type string, int given
owner null: NrLlmRuntime::renewLease(): Argument #2 ($claimedBy) must be of type string, null given
owner an array, uid 0: NrLlmRuntime::requeue(): Argument #2 ($claimedBy) must be of type string, array given
lease null: NrLlmRuntime::renewLease(): Argument #3 ($leaseExpires) must be of type int, null given
a reference: NrLlmRuntime::renewLease(): Argument #1 ($runUid) must be of type int, string given
by name: NrLlmRuntime::renewLease(): Argument #3 ($leaseExpires) must be of type int, string given
unpacked: NrLlmRuntime::renewLease(): Argument #3 ($leaseExpires) must be of type int, float given
by call_user_func: NrLlmRuntime::renewLease(): Argument #3 ($leaseExpires) must be of type int, string given
limit a string: NrLlmRuntime::reap(): Argument #1 ($limit) must be of type int, string given
limit null: NrLlmRuntime::reap(): Argument #1 ($limit) must be of type int, null given
now a string: NrLlmRuntime::dueRuns(): Argument #2 ($now) must be of type ?int, string given
options null: NrLlmRuntime::reap(): Argument #3 ($options) must be of type array, null given
wakeUp a string: NrLlmRuntime::strandedRuns(): Argument #4 ($wakeUp) must be of type ?array, string given
classify no throwable: NrLlmRuntime::classifyFailure(): Argument #1 ($error) must be of type Throwable, stdClass given
classify a string: NrLlmRuntime::classifyFailure(): Argument #1 ($error) must be of type Throwable, string given
recover no throwable: NrLlmRuntime::recoverFailure(): Argument #3 ($error) must be of type Throwable, null given
identity an int: NrLlmRuntime::identity(): Argument #1 ($segment) must be of type string, int given
backoff a string: NrLlmRuntime::backoffMs(): Argument #1 ($requeueCount) must be of type int, string given
connection an int: NrLlmRuntime::__construct(): Argument #1 ($connection) must be of type array|string, int given
connection an object: NrLlmRuntime::__construct(): Argument #1 ($connection) must be of type array|string, ArrayObject given
options a string: NrLlmRuntime::__construct(): Argument #2 ($options) must be of type array, string given
too few: ArgumentCountError
unknown parameter: Error
