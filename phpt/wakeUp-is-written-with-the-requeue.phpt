--TEST--
wakeUp: reap(), recoverFailure() and strandedRuns() write the message with the requeue, available in UTC: at once, or after the backoff
--DESCRIPTION--
PHP's own time zone has no part in it.
--EXTENSIONS--
nrllm_runtime
mysqli
--INI--
date.timezone=Pacific/Auckland
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/outbox.inc';
require __DIR__ . '/inc/provider.inc';
$db = new TestDb(['messages' => true]);
$runtime = $db->runtime();
$uuid = static fn (int $uid): string => $db->row($uid)['uuid'];
$now = time();
$near = static fn (int $seconds, int $expected): bool => $seconds >= $expected && $seconds <= $expected + 5;

$stale = [$db->running($now - 20), $db->running($now - 10, ['requeue_count' => 2])];
$spent = $db->running($now - 30, ['requeue_count' => 3]);
$report = $runtime->reap(50, null, ['wakeUp' => wake_up()]);
foreach ($report->requeued() as $entry) {
    echo 'requeued ', array_search($entry['uid'], $stale, true), ' count ', $entry['requeueCount'], ' woken ', var_export($entry['wokenUp'], true), ' confirmed ',
        var_export($entry['confirmed'], true), "\n";
}
foreach ($report->deadLettered() as $entry) {
    var_dump($entry['uid'] === $spent, $entry['wokenUp']);
}
$messages = messages($db, $now);
check(array_column($messages, 'uuid') === array_map($uuid, $stale), 'one message for each requeue');
foreach ($messages as $message) {
    check($near($message['created'], 0) && $message['created'] === $message['available'], json_encode($message));
}
$db->link()->query('DELETE FROM sys_messenger_messages');

echo "-- recoverFailure\n";
$failed = new Netresearch\NrLlm\Provider\Exception\ProviderConnectionException('gone');
foreach ([0, 1, 2, 3] as $count) {
    $uid = $db->running($now + 60, ['requeue_count' => $count]);
    $recovery = $runtime->recoverFailure($uid, 'worker:a', $failed, wake_up(['queue' => "retry $count", 'headers' => '{"run":"' . PLACEHOLDER . '"}']));
    printf("%d: %s, delay %s ms, woken %s\n", $count, $recovery->outcome(), var_export($recovery->delayMs(), true), var_export($recovery->wokenUp(), true));
    foreach (messages($db, $now) as $message) {
        check($message['uuid'] === $uuid($uid) && $message['queue'] === "retry $count" && $message['headers'] === "{\"run\":\"{$uuid($uid)}\"}", json_encode($message));
        check($near($message['available'], $recovery->delayMs() / 1000) && $message['available'] - $message['created'] === $recovery->delayMs() / 1000, json_encode($message));
        echo "   a message\n";
    }
    $db->link()->query('DELETE FROM sys_messenger_messages');
}
$uid = $db->running($now + 60);
var_dump($runtime->recoverFailure($uid, 'worker:b', $failed, wake_up())->outcome(), $runtime->recoverFailure($uid, 'worker:a', $failed, null)->wokenUp());
var_dump(messages($db, $now));

echo "-- strandedRuns\n";
$db->link()->query('DELETE FROM tx_nrllm_agentrun');
$uid = $db->insert(['tstamp' => $now - 400]);
foreach ($runtime->strandedRuns(300, wakeUp: wake_up()) as $run) {
    check($run['uid'] === $uid && $run['uuid'] === $uuid($uid) && $near($run['queuedSeconds'], 400), json_encode($run));
    unset($run['uid'], $run['uuid'], $run['queuedSeconds']);
    echo json_encode($run), "\n";
}
foreach (messages($db, $now) as $message) {
    check($message['uuid'] === $uuid($uid) && $near($message['available'], 0), json_encode($message));
    echo "   a message\n";
}
?>
--EXPECT--
requeued 0 count 1 woken true confirmed false
requeued 1 count 3 woken true confirmed false
bool(true)
bool(false)
-- recoverFailure
0: requeued, delay 30000 ms, woken true
   a message
1: requeued, delay 60000 ms, woken true
   a message
2: requeued, delay 120000 ms, woken true
   a message
3: dead_lettered, delay NULL ms, woken false
string(10) "lease_lost"
bool(false)
array(0) {
}
-- strandedRuns
{"requeueCount":0,"wokenUp":true}
   a message
