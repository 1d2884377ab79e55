--TEST--
reap() writes one message per requeue in its transaction, available at once, in UTC
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
    echo 'requeued ', array_search($entry['uid'], $stale, true), ' count ', $entry['requeueCount'], ' wokenUp ', var_export($entry['wokenUp'], true), ' confirmed ',
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
?>
--EXPECT--
requeued 0 count 1 wokenUp true confirmed false
requeued 1 count 3 wokenUp true confirmed false
bool(true)
bool(false)
