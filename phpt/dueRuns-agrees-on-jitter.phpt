--TEST--
Jitter: the delay of recoverFailure(), the message and dueRuns() agree to the second, within the share
--EXTENSIONS--
nrllm_runtime
mysqli
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/outbox.inc';
require __DIR__ . '/inc/provider.inc';
$db = new TestDb(['messages' => true]);
$runtime = $db->runtime(['jitter' => 0.2, 'backoffBaseMs' => 600000]);
$failed = new Netresearch\NrLlm\Provider\Exception\ProviderConnectionException('gone');
$now = time();
$delays = [];
for ($i = 0; $i < 40; $i++) {
    $uid = $db->running($now + 60);
    $recovery = $runtime->recoverFailure($uid, 'worker:a', $failed, wake_up());
    $row = $db->row($uid);
    // The definition: CRC32 of the uuid and of the row's count, as a share of 2^32.
    $delay = (int) floor(600000 * (1 + 0.2 * (crc32($row['uuid'] . ':' . $row['requeue_count']) / 2 ** 32)));
    check($recovery->delayMs() === $delay, "{$recovery->delayMs()} is $delay");
    check($delay >= 600000 && $delay <= 720000, "$delay");
    $delays[$row['uuid']] = (int) $row['tstamp'] + (int) ceil($delay / 1000);
}
foreach (messages($db, 0) as $message) {
    check($message['available'] === $delays[$message['uuid']], "the message of {$message['uuid']}");
}
foreach (range(min($delays) - 1, max($delays)) as $second) {
    $due = array_column($runtime->dueRuns(100, $second), 'uuid');
    $expected = array_keys(array_filter($delays, static fn (int $at): bool => $at <= $second));
    sort($due);
    sort($expected);
    check($due === $expected, "due at $second");
}
var_dump(count($delays), count(array_unique($delays)) > 20);
?>
--EXPECT--
int(40)
bool(true)
