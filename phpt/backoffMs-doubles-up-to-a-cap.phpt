--TEST--
backoffMs(): 30 s doubled for each requeue, at most ten minutes, exact for any count; options and jitter in recoverFailure()
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/provider.inc';
require __DIR__ . '/inc/db.inc';
foreach ([0, 1, 2, 3, 4, 5, 6, 31, 32, 58, 63, 64, 2000, 4294967295, PHP_INT_MAX] as $count) {
    echo $count, ': ', NrLlmRuntime::backoffMs(requeueCount: $count), "\n";
}
$db = new TestDb();
$error = new Netresearch\NrLlm\Provider\Exception\ProviderConnectionException();
$delay = static function (array $options, int $count, array $columns = []) use ($db, $error): ?int {
    $uid = $db->running(2000000000, ['requeue_count' => $count] + $columns);
    return $db->runtime($options)->recoverFailure($uid, 'worker:a', $error)->delayMs();
};
var_dump($delay(['backoffBaseMs' => 100, 'backoffCapMs' => 150, 'maxRequeues' => 9], 0), $delay(['backoffBaseMs' => 100, 'backoffCapMs' => 150, 'maxRequeues' => 9], 8));
var_dump($delay(['maxRequeues' => 0], 0));
// u = CRC32("uuid:requeueCount") / 2^32, where the count is that of the row after the requeue:
// the same in Rust and in SQL.
$uuid = '11111111-2222-3333-4444-555555555555';
$got = $delay(['jitter' => 0.5], 1, ['uuid' => $uuid]);
$of = static fn (int $count): int => (int) (60000 * (1 + 0.5 * crc32("$uuid:$count") / 2 ** 32));
var_dump(min(abs($got - $of(1)), abs($got - $of(2))) <= 1, $got >= 60000 && $got < 90000);
?>
--EXPECT--
0: 30000
1: 60000
2: 120000
3: 240000
4: 480000
5: 600000
6: 600000
31: 600000
32: 600000
58: 600000
63: 600000
64: 600000
2000: 600000
4294967295: 600000
9223372036854775807: 600000
int(100)
int(150)
NULL
bool(true)
bool(true)
