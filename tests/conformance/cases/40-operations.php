<?php

declare(strict_types=1);

// The operations on rows of every status: their result, and the row afterwards.
$db = database(['messages' => true]);
$runtime = $db->runtime();
$statuses = ['queued', 'running', 'waiting_for_approval', 'waiting_for_input', 'completed', 'failed', 'cancelled', 'unheard_of'];
$calls = [
    'claimQueued' => static fn (int $uid) => $runtime->claimQueued(runUid: $uid, claimedBy: 'worker:n', leaseExpires: 2000000000),
    'renewLease' => static fn (int $uid) => $runtime->renewLease(runUid: $uid, claimedBy: 'worker:a', leaseExpires: 2000000000),
    'markPendingEffect' => static fn (int $uid) => $runtime->markPendingEffect(runUid: $uid, claimedBy: 'worker:a', effect: 'idempotent_write', leaseExpires: 2000000000),
    'requeue' => static fn (int $uid) => $runtime->requeue(runUid: $uid, claimedBy: 'worker:a'),
    'handBack' => static fn (int $uid) => $runtime->handBack(runUid: $uid, claimedBy: 'worker:a', wakeUp: null),
    'requeueStale' => static fn (int $uid) => $runtime->requeueStale(runUid: $uid, now: 1000),
    'deadLetterStale' => static fn (int $uid) => $runtime->deadLetterStale(runUid: $uid, now: 1000, terminationReason: 'retries_exhausted'),
    'leaseState' => static fn (int $uid) => $runtime->leaseState(runUid: $uid, claimedBy: 'worker:a'),
    'cancelRun' => static fn (int $uid) => $runtime->cancelRun(uuid: $db->row($uid)['uuid']),
    'failUndispatched' => static fn (int $uid) => $runtime->failUndispatched(runUid: $uid, requeueCount: 1, error: new LogicException()),
    'recoverFailure' => static fn (int $uid) => $runtime->recoverFailure(runUid: $uid, claimedBy: 'worker:a', error: new Netresearch\NrLlm\Provider\Exception\ProviderConnectionException()),
];
foreach ($calls as $method => $call) {
    foreach ($statuses as $status) {
        $uid = $db->insert(['status' => $status, 'requeue_count' => 1] + ($status === 'running' ? ['claimed_by' => 'worker:a', 'lease_expires' => 500] : []));
        show("$method, $status", static fn () => $call($uid));
        row($db, $uid);
    }
}
foreach (['worker:b', 'WORKER:A', 'worker:a ', "worker:a\0", 'wörker:a'] as $owner) {
    $uid = $db->running(2000000000);
    show('another owner ' . shown($owner), static fn () => [$runtime->renewLease($uid, $owner, 5), $runtime->requeue($uid, $owner), $runtime->leaseState($uid, $owner),
        $runtime->recoverFailure($uid, $owner, new Exception())->outcome()]);
}
foreach (['é', str_repeat('é', 64), "\u{1f600}", "a\0b", '{"$hex":"00"}'] as $owner) {
    $uid = $db->insert();
    show('owner ' . strlen($owner), static fn () => [$runtime->claimQueued($uid, $owner, 5), $runtime->leaseState($uid, $owner), $db->row($uid)['claimed_by'] === $owner]);
}
echo "-- recoverFailure\n";
$errors = [
    'retryable' => new Netresearch\NrLlm\Provider\Exception\ProviderResponseException('x', 503),
    'not retryable' => new Netresearch\NrLlm\Provider\Exception\ProviderResponseException('x', 401),
    'anonymous' => new class extends Exception {
    },
];
eval("class Bad\xffName extends Netresearch\\NrLlm\\Provider\\Exception\\ProviderConnectionException {}");
eval('class ' . str_repeat('L', 300) . ' extends Exception {}');
$errors['odd name'] = new ("Bad\xffName")();
$errors['long name'] = new (str_repeat('L', 300))();
foreach ($errors as $label => $error) {
    foreach ([['requeue_count' => 2], ['requeue_count' => 3], ['pending_effect' => 'non_idempotent_write'], ['queued_request' => '']] as $columns) {
        $uid = $db->running(2000000000, $columns);
        show("$label, " . json_encode($columns), static fn () => $runtime->recoverFailure($uid, 'worker:a', $error));
        row($db, $uid, 'status', 'termination_reason', 'error_class');
    }
}
$placeholder = '00000000-0000-0000-0000-000000000000';
$wakeUp = ['table' => 'sys_messenger_messages', 'queue' => 'agents', 'body' => "{\"run\":\"$placeholder\",\"say\":\"hé\\u00e9 \\\\ ' \0 \u{1f600} $placeholder\"}", 'headers' => '{"type":"X\\\\Y"}', 'placeholder' => $placeholder];
$message = static function () use ($db): void {
    foreach ($db->query('SELECT body, headers, queue_name, TIMESTAMPDIFF(SECOND, created_at, available_at) AS delay FROM sys_messenger_messages ORDER BY id')->fetch_all(MYSQLI_ASSOC) as $row) {
        echo '    ', shown($row), "\n";
    }
    $db->query('DELETE FROM sys_messenger_messages');
};
$uid = $db->running(2000000000, ['uuid' => '11111111-1111-1111-1111-111111111111']);
show('with a wake-up', static fn () => $runtime->recoverFailure($uid, 'worker:a', $errors['retryable'], $wakeUp));
$message();
show('with a wake-up named', static fn () => $runtime->recoverFailure($uid, 'worker:a', $errors['retryable'], wakeUp: null)->wokenUp());
show('methods', static function () use ($runtime, $db, $errors): array {
    $r = $runtime->recoverFailure($db->running(2000000000, ['requeue_count' => 1]), 'worker:a', $errors['retryable']);
    return [$r->outcome(), $r->reason(), $r->failure(), $r->requeueCount(), $r->delayMs(), $r->wokenUp(), $r->isConfirmed(), $r->failure() == $r->failure()];
});
echo "-- reap\n";
$db->query('UPDATE tx_nrllm_agentrun SET status = ?, claimed_by = ?, lease_expires = 0', ['completed', '']);
$stale = static fn (string $n, array $columns = []): int => $db->running(100 + (int) $n, ['uuid' => str_repeat($n, 36)] + $columns);
$uids = [$stale('1'), $stale('2', ['requeue_count' => 3]), $stale('3', ['pending_effect' => 'non_idempotent_write']), $stale('4', ['queued_request' => '']), $stale('5', ['claimed_by' => 'wörker']), $stale('6')];
$named = static fn (NrLlmReapReport $report): array => [$report->count(), count($report), $report->isDryRun(), $report->hasMore(), array_map(
    static fn (array $entries): array => array_map(static fn (array $entry): array => ['uid' => array_search($entry['uid'], $uids, true)] + $entry, $entries),
    ['requeued' => $report->requeued(), 'deadLettered' => $report->deadLettered(), 'skipped' => $report->skipped()],
)];
show('nothing at 0', static fn () => $named($runtime->reap(now: 0)));
show('dry run', static fn () => $named($runtime->reap(50, 1000, ['dryRun' => true])));
show('only one', static fn () => $named($runtime->reap(limit: 50, now: 1000, options: ['only' => [$uids[2]]])));
show('only none', static fn () => $named($runtime->reap(50, 1000, ['only' => []])));
show('limit', static fn () => $named($runtime->reap(1, 1000, ['except' => [$uids[0]]])));
$locker = $db->connect();
$locker->query('BEGIN');
$locker->query('SELECT uid FROM tx_nrllm_agentrun WHERE uid = ' . $uids[4] . ' FOR UPDATE');
show('with a wake-up, one locked', static fn () => $named($runtime->reap(50, 1000, ['wakeUp' => $wakeUp])));
$locker->rollback();
$message();
show('the rest', static fn () => $named($runtime->reap(50, 1000, ['wakeUp' => null])));
show('nothing left', static fn () => $runtime->reap(50, 1000));
echo "-- status, due, stranded\n";
$db->query('DELETE FROM tx_nrllm_agentrun');
show('empty', static fn () => array_diff_key($runtime->status(5000), array_flip(['server', 'isolation', 'clockSkewMs', 'settings'])));
$now = 1800000000;
$db->running($now - 5);
$db->running($now + 5);
$db->running(0);
$db->insert(['status' => 'failed', 'termination_reason' => '404']);
$db->insert(['status' => 'failed', 'termination_reason' => "it's"]);
$run = static fn (string $n, array $columns = []): int => $db->insert(['uuid' => str_repeat($n, 36), 'tstamp' => $now - 100 * (int) $n, 'queued_at' => 0, 'crdate' => (int) $n] + $columns);
$run('1');
$run('2', ['requeue_count' => 3]);
$run('3', ['queued_request' => null]);
$run('4', ['queued_at' => $now - 10]);
show('status', static fn () => array_diff_key($runtime->status(now: $now), array_flip(['server', 'isolation', 'clockSkewMs', 'settings'])));
show('since', static fn () => $runtime->status(now: $now, since: 3)['counts']);
show('keys', static fn () => array_keys($runtime->status()));
show('types', static fn () => array_map(get_debug_type(...), $runtime->status()));
$without = static fn (array $runs): array => array_map(static fn (array $run): array => ['uid' => is_int($run['uid'])] + $run, $runs);
show('due', static fn () => $without($runtime->dueRuns(10, $now)));
show('due, one', static fn () => $without($runtime->dueRuns(limit: 1, now: $now)));
show('due then', static fn () => $without($runtime->dueRuns(now: $now - 150)));
show('stranded', static fn () => $without($runtime->strandedRuns(50, 1, $now)));
show('stranded, with wake-ups', static fn () => $without($runtime->strandedRuns(olderThanSeconds: 50, limit: 50, now: $now, wakeUp: $wakeUp)));
show('stranded, again', static fn () => $runtime->strandedRuns(50, 50, $now));
show('messages', static fn () => (int) $db->value('SELECT COUNT(*) FROM sys_messenger_messages'));
