--TEST--
recoverFailure() writes the message in the transaction of the requeue, available after the backoff, in UTC
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

$failed = new Netresearch\NrLlm\Provider\Exception\ProviderConnectionException('gone');
foreach ([0, 1, 2, 3] as $count) {
    $uid = $db->running($now + 60, ['requeue_count' => $count]);
    $recovery = $runtime->recoverFailure($uid, 'worker:a', $failed, wake_up(['queue' => "retry $count", 'headers' => '{"run":"' . PLACEHOLDER . '"}']));
    printf("%d: %s, delay %s ms, wokenUp %s\n", $count, $recovery->outcome(), var_export($recovery->delayMs(), true), var_export($recovery->wokenUp(), true));
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
?>
--EXPECT--
0: requeued, delay 30000 ms, wokenUp true
   a message
1: requeued, delay 60000 ms, wokenUp true
   a message
2: requeued, delay 120000 ms, wokenUp true
   a message
3: dead_lettered, delay NULL ms, wokenUp false
string(10) "lease_lost"
bool(false)
array(0) {
}
