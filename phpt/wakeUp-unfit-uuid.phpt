--TEST--
wakeUp: a run whose uuid does not fit into the message is skipped and reported; the other runs are handled
--EXTENSIONS--
nrllm_runtime
mysqli
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/outbox.inc';
require __DIR__ . '/inc/provider.inc';
$db = new TestDb(['messages' => true]);
$runtime = $db->runtime();
$now = time();
$odd = $db->running($now - 30, ['uuid' => 'run-1']);
$good = $db->running($now - 10);
foreach ([true, false] as $dryRun) {
    $report = $runtime->reap(5, null, ['wakeUp' => wake_up(), 'dryRun' => $dryRun]);
    echo json_encode(['skipped' => array_map(static fn (array $e): array => [$e['uid'] === $odd, $e['reason'], $e['requeueCount']], $report->skipped()),
        'requeued' => array_map(static fn (array $e): array => [$e['uid'] === $good, $e['wokenUp']], $report->requeued()), 'more' => $report->hasMore()]), "\n";
}
$line = static fn (int $uid): string => vsprintf('%s, count %d, by %s', $db->query('SELECT status, requeue_count, claimed_by FROM tx_nrllm_agentrun WHERE uid = ?', [$uid])->fetch_row());
echo $line($odd), ', ', count(messages($db, $now)), " message\n";
echo 'without wakeUp: ', count($runtime->reap()->requeued()), "\n";
$mine = $db->running($now + 60, ['uuid' => 'run-2']);
thrown('recoverFailure', fn () => $runtime->recoverFailure($mine, 'worker:a', new Netresearch\NrLlm\Provider\Exception\ProviderConnectionException(), wake_up()));
echo $line($mine), "\n";
echo $runtime->recoverFailure($mine, 'worker:a', new Exception(), wake_up())->outcome(), "\n";
?>
--EXPECTF--
{"skipped":[[true,"unwakeable",0]],"requeued":[[true,false]],"more":false}
{"skipped":[[true,"unwakeable",0]],"requeued":[[true,true]],"more":false}
running, count 0, by worker:a, 1 message
without wakeUp: 1
recoverFailure: NrLlmConfigurationException: wakeUp: run %d has the uuid 'run-2', which cannot take the placeholder's place (36 ASCII characters without quotation marks and backslashes); nothing was written. Recover it without wakeUp, and notify a worker yourself
running, count 0, by worker:a
dead_lettered
