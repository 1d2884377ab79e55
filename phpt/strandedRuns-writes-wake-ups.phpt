--TEST--
strandedRuns() writes the message with its mark, available at once, in UTC
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
{"requeueCount":0,"wokenUp":true}
   a message
