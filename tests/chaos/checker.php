<?php

declare(strict_types=1);

// The checker itself: each invariant has a scenario that breaks it, and the checker names it; a
// correct scenario passes.
require __DIR__ . '/checker.inc';

$uuid = '00000001-0000-4000-8000-000000000001';
$row = ['uid' => '1', 'uuid' => $uuid, 'status' => 'queued', 'queued_request' => 'P', 'claimed_by' => '', 'lease_expires' => '0', 'requeue_count' => '0', 'termination_reason' => ''];
$completed = ['status' => 'completed', 'queued_request' => ''] + $row;
$failed = ['status' => 'failed', 'queued_request' => '', 'termination_reason' => 'not_retryable'] + $row;
$claim = fn(int $t, string $token, string $owner = 'o'): array => [['what' => 'claiming', 't' => $t, 'uid' => 1, 'token' => $token, 'who' => "w$owner"],
    ['what' => 'claimed', 't' => $t + 1, 'uid' => 1, 'token' => $token, 'owner' => $owner, 'who' => "w$owner"]];
$step = fn(int $asked, string $token): array => ['what' => 'step', 't' => $asked + 1, 'asked' => $asked, 'uid' => 1, 'token' => $token];
$finished = fn(int $t): array => ['what' => 'finished', 't' => $t, 'uid' => 1, 'done' => true];
$tick = fn(int $t, array $requeued, array $dead, string $who = 'r'): array => [['what' => 'reaping', 't' => $t, 'tick' => $t, 'who' => $who],
    ['what' => 'reaped', 't' => $t + 1, 'tick' => $t, 'who' => $who, 'requeued' => $requeued, 'deadLettered' => $dead, 'skipped' => 0]];
$one = ['uid' => 1, 'requeueCount' => 1, 'reason' => null, 'wokenUp' => true, 'confirmed' => false];
$letter = ['reason' => 'not_retryable'] + $one;
$effect = ['what' => 'effect', 't' => 9, 'uid' => 1, 'effect' => 'non_idempotent_write'];

// name => [the invariant that is broken, or null; what the watcher sees; the ledger; the row at the
// end]
$scenarios = [
    'a correct round' => [null, [[$row], [$completed], [$completed]], [...$claim(1, 'a'), $step(3, 'a'), ...$tick(5, [$one], []), ...$claim(8, 'b', 'p'), $step(10, 'b'), $finished(12)], ['requeue_count' => '1'] + $completed],
    'a run that is gone' => ['no run disappears', [[]], [], $completed],
    'a run that stays queued' => ['every run ends', [], [], $row],
    'a terminal row that comes back' => ['a terminal row never changes', [[$completed], [$row]], [], $completed],
    'a terminal row that is written' => ['a terminal row never changes', [[$completed], [['requeue_count' => '1'] + $completed]], [], $completed],
    'a payload that changed' => ['the payload is intact until the end', [[['queued_request' => 'Q'] + $row]], [], $completed],
    'a payload that is read wrong' => ['the payload is intact until the end', [], [['what' => 'payload', 't' => 1, 'uid' => 1, 'sha' => sha1('Q')]], $completed],
    'a payload that stays' => ['the payload goes with the end', [[['queued_request' => 'P'] + $completed]], [], $completed],
    'an owner on the queue' => ['owner and lease fit the status', [[['claimed_by' => 'ghost'] + $row]], [], $completed],
    'running without a lease' => ['owner and lease fit the status', [[['status' => 'running', 'claimed_by' => 'o'] + $row]], [], $completed],
    'a step after the next claim' => ['no two owners at once', [], [...$claim(1, 'a'), ...$claim(5, 'b', 'p'), $step(8, 'a')], $completed],
    'a step after the reaper' => ['no step after the reaper', [], [...$claim(1, 'a'), ...$tick(4, [$one], []), $step(8, 'a')], ['requeue_count' => '1'] + $completed],
    'two claims at once that both go on' => ['no two owners at once', [], [$claim(1, 'a')[0], $claim(1, 'b', 'p')[0], $claim(2, 'a')[1], $claim(3, 'b', 'p')[1], $step(8, 'a'), $step(9, 'b')], $completed],
    'an identity of two processes' => ['an identity is one process', [], [...$claim(1, 'a'), ['who' => 'other'] + $claim(4, 'b')[0], ['who' => 'other'] + $claim(4, 'b')[1]], $completed],
    'a fifth execution' => ['at most 4 executions', [], [...$claim(1, 'a'), ...$claim(3, 'b'), ...$claim(5, 'c'), ...$claim(7, 'd'), ...$claim(9, 'e')], $completed],
    'a second write' => ['a non-idempotent write happens once', [], [$effect, $effect], $completed],
    'a requeue that no report names' => ['the reports add up', [], [], ['requeue_count' => '1'] + $completed],
    'a requeue reported twice' => ['the reports add up', [], [...$tick(1, [$one], []), ...$tick(3, [$one], [])], ['requeue_count' => '1'] + $completed],
    'a dead letter reported twice' => ['the reports add up', [], [...$tick(1, [], [$letter]), ...$tick(3, [], [$letter], 's')], $failed],
    'a failure that no report names' => ['the reports add up', [], [], $failed],
    'a tick that was killed may have requeued' => [null, [], [$tick(1, [], [])[0]], ['requeue_count' => '1'] + $completed],
    'a dead letter that lives' => ['a reported end is the end', [], [...$tick(1, [], [$letter])], $completed],
    'a run completed twice' => ['a reported end is the end', [], [$finished(1), $finished(2)], $completed],
    'a cancelled run that completes' => ['a reported end is the end', [], [['what' => 'cancelled', 't' => 1, 'uid' => 1, 'done' => true]], $completed],
    'a requeue without its wake-up' => ['a requeue has its wake-up', [], [...$tick(1, [['wokenUp' => false] + $one], [])], ['requeue_count' => '1'] + $completed],
    'a child that holds' => ['a forked child holds no lease', [], [['what' => 'child-holds', 't' => 1, 'who' => 'w']], $completed],
];
$connection = ['id' => 7, 'command' => 'Sleep', 'idleMs' => 5000, 'transaction' => false];
// name => [the invariant that is broken, or null; the connections at rest, how many are allowed;
// the connections after the end]
$ofConnections = [
    'as many connections as allowed' => [null, [$connection, ['transaction' => true, 'idleMs' => 3] + $connection], 2, []],
    'a transaction of a call under way' => [null, [['transaction' => true, 'command' => 'Query'] + $connection], 2, []],
    'a transaction that no call ends' => ['no transaction without a living call', [['transaction' => true] + $connection], 2, []],
    'a connection too many' => ['connections stay within their number', [$connection, $connection, $connection], 2, []],
    'a connection of an ended process' => ['no connection outlives its process', [], 2, [$connection]],
];
foreach ($ofConnections as $name => [$broken, $atRest, $allowed, $afterwards]) {
    $checker = new Checker([], true);
    $checker->atRest($atRest, $allowed);
    $checker->afterTheEnd($afterwards);
    $named = array_map(fn(string $violation): string => explode(': ', $violation)[0], $checker->violations);
    echo $named === ($broken === null ? [] : [$broken]) ? 'ok      ' : 'FAILED  ', "the checker: $name\n";
}
foreach ($scenarios as $name => [$broken, $seen, $notes, $end]) {
    $checker = new Checker([1 => ['uuid' => $uuid, 'payload' => 'P']], true);
    array_map($checker->watch(...), $seen);
    $checker->check($notes, [1 => $end]);
    $named = array_values(array_unique(array_map(fn(string $violation): string => explode(': ', $violation)[0], $checker->violations)));
    // Only the invariant that the scenario breaks is named.
    echo $named === ($broken === null ? [] : [$broken]) ? 'ok      ' : 'FAILED  ', "the checker: $name", $named === ($broken === null ? [] : [$broken]) ? '' : ': ' . implode('; ', $checker->violations), "\n";
}
