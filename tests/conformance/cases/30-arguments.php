<?php

declare(strict_types=1);

// Every argument of every method: wrong values before any SQL, wrong types. No server listens at
// that port: a call that connects fails differently.
$runtime = new NrLlmRuntime(['driver' => 'mysqli', 'host' => '127.0.0.1', 'port' => 1, 'user' => 'u', 'password' => 'p', 'dbname' => 'd'], ['connectTimeoutMs' => 200]);
$uids = [0, -1, PHP_INT_MIN];
$owners = ['', ' ', "\t\n", "\0", "\0 \x7f", str_repeat('x', 65), str_repeat('é', 65), "a\xff", "\xc3"];
$leases = [0, -1, 4294967296, PHP_INT_MAX];
$nows = [-1, 4294967296, 1790000000000];
$wrong = [
    'claimQueued' => [$uids, $owners, $leases],
    'renewLease' => [$uids, $owners, $leases],
    'markPendingEffect' => [$uids, $owners, [str_repeat('x', 33), "\xff"], $leases],
    'requeue' => [$uids, $owners],
    'requeueStale' => [$uids, $nows],
    'deadLetterStale' => [$uids, $nows, ['', str_repeat('x', 33), "\xff"]],
    'leaseState' => [$uids, $owners],
    'cancelRun' => [['', str_repeat('u', 37), "\xff"]],
    'failUndispatched' => [$uids, [-1, 4294967296]],
    'status' => [$nows, [-1, 4294967296]],
    'dueRuns' => [$uids, $nows],
    'strandedRuns' => [[-1, 4294967296], $uids, $nows],
    'keepLease' => [$uids, $owners, [1, 0, -1, PHP_INT_MAX]],
];
$right = [
    'claimQueued' => [1, 'w', 5], 'renewLease' => [1, 'w', 5], 'markPendingEffect' => [1, 'w', '', 5], 'requeue' => [1, 'w'], 'requeueStale' => [1, 5], 'deadLetterStale' => [1, 5, 'r'],
    'leaseState' => [1, 'w'], 'cancelRun' => ['u'], 'failUndispatched' => [1, 0, new Exception()], 'status' => [null, null], 'dueRuns' => [1, null], 'strandedRuns' => [0, 1, null, null],
    'keepLease' => [1, 'w', 900, []],
];
foreach ($wrong as $method => $arguments) {
    foreach ($arguments as $i => $values) {
        foreach ($values as $value) {
            // The maximum of leaseSeconds depends on the time.
            $name = "$method $i " . (is_string($value) && strlen($value) > 40 ? strlen($value) . ' bytes' : shown($value));
            $result = show($name, static function () use ($runtime, $method, $right, $i, $value): mixed {
                try {
                    return $runtime->$method(...array_replace($right[$method], [$i => $value]));
                } catch (ValueError $error) {
                    return $error::class . ': ' . preg_replace('/from 2 to \d+/', 'from 2 to <limit>', $error->getMessage());
                }
            });
        }
    }
    $name = $right[$method];
    show("$method, right", static function () use ($runtime, $method, $right): string {
        try {
            return shown($runtime->$method(...$right[$method]));
        } catch (NrLlmConnectionException) {
            return 'connects';
        }
    });
    foreach (array_keys($right[$method]) as $i) {
        show("$method, type of $i", static fn () => $runtime->$method(...array_replace($right[$method], [$i => new ArrayObject()])));
    }
}
echo "-- reap\n";
$wakeUp = ['table' => 'm', 'queue' => 'q', 'body' => str_repeat('0', 36), 'headers' => '', 'placeholder' => str_repeat('0', 36)];
$calls = [
    'limit 0' => [0], 'limit negative' => [-5], 'now negative' => [1, -1], 'now in milliseconds' => [1, 1790000000000],
];
foreach ([
    ['dryrun' => true], ['dryRun' => 1], ['dryRun' => null], ['only' => 5], ['only' => null], ['only' => ['a']], ['only' => [0]], ['only' => [1, -1]], ['only' => [[1]]], ['except' => 'x'], ['except' => [1.5]],
    ['except' => ['1']], [0], ["\xff" => 1], ['$type' => 'x'], ['wakeUp' => 'x'], ['wakeUp' => []], ['wakeUp' => ['table' => 5] + $wakeUp], ['wakeUp' => ['extra' => 'x'] + $wakeUp],
    ['wakeUp' => ['body' => 'no placeholder'] + $wakeUp], ['wakeUp' => ['placeholder' => 'short'] + $wakeUp], ['wakeUp' => ['body' => "\xff" . str_repeat('0', 36)] + $wakeUp],
    ['wakeUp' => ['table' => 'a`b'] + $wakeUp], ['wakeUp' => ['queue' => null] + $wakeUp], ['wakeUp' => new stdClass()],
] as $options) {
    $calls[json_encode($options, JSON_INVALID_UTF8_SUBSTITUTE | JSON_PRESERVE_ZERO_FRACTION)] = [5, null, $options];
}
foreach ($calls as $label => $arguments) {
    show((string) $label, static fn () => $runtime->reap(...$arguments));
}
show('types', static fn () => $runtime->reap('5'));
show('types of now', static fn () => $runtime->reap(5, '5'));
show('types of options', static fn () => $runtime->reap(5, 5, 'x'));
echo "-- recoverFailure\n";
foreach ([[0, 'w', new Exception()], [1, '', new Exception()], [1, 'w', new Exception(), []], [1, 'w', new Exception(), ['extra' => 1]], [1, 'w', new stdClass()], ['1', 'w', new Exception()], [1, 'w', new Exception(), 'x']] as $i => $arguments) {
    show("case $i", static fn () => $runtime->recoverFailure(...$arguments));
}
echo "-- strandedRuns, wakeUp\n";
show('empty', static fn () => $runtime->strandedRuns(0, 1, null, []));
show('unknown key', static fn () => $runtime->strandedRuns(0, wakeUp: ['extra' => 1] + $wakeUp));
echo "-- statics\n";
foreach (['', str_repeat('s', 25), "a b", "\xff", "a\0", 'é'] as $segment) {
    show('identity ' . shown($segment), static fn () => NrLlmRuntime::identity($segment));
}
show('identity', static fn () => preg_replace('/:\d+:[0-9a-f]{16}$/D', ':<pid>:<nonce>', str_replace(gethostname(), '<host>', NrLlmRuntime::identity(segment: 'worker'))));
show('the same again', static fn () => NrLlmRuntime::identity('w') === NrLlmRuntime::identity('w'));
foreach ([-1, PHP_INT_MIN, 0, 1, 4, 5, 64, 2000, PHP_INT_MAX] as $count) {
    show("backoff $count", static fn () => NrLlmRuntime::backoffMs(requeueCount: $count));
}
show('backoff of a string', static fn () => NrLlmRuntime::backoffMs('1'));
show('classify no throwable', static fn () => NrLlmRuntime::classifyFailure(new stdClass()));
echo "-- keepLease, options\n";
foreach ([['everyMs' => 99], ['everyMs' => 5001], ['everyMs' => '500'], ['maxSilentSeconds' => 0], ['maxSeconds' => -1], ['maxSeconds' => null], ['interruptOnLoss' => 1], ['every' => 1], [1], ["\xff" => 1]] as $options) {
    show(json_encode($options, JSON_INVALID_UTF8_SUBSTITUTE), static fn () => $runtime->keepLease(1, 'w', 10, $options));
}
