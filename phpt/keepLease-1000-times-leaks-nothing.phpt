--TEST--
keepLease(): 1 000 leases kept and released leave no memory, file, connection or thread
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
$uid = $db->running(time() + 100);
$resident = static fn (): int => (int) preg_replace('/.*VmRSS:\s+(\d+).*/s', '$1', file_get_contents('/proc/self/status'));
$files = static fn (): int => count(scandir('/proc/self/fd'));
$cycle = static function (int $i) use ($runtime, $uid): void {
    $lease = $runtime->keepLease($uid, 'worker:a', 60, $i % 2 ? ['interruptOnLoss' => INTERRUPTS] : []);
    if ($i % 3 === 0) {
        $lease->release();
    }
};
for ($i = 0; $i < 100; $i++) {
    $cycle($i);
}
$before = [memory_get_usage(), $resident(), $files()];
$start = ms();
for ($i = 0; $i < 1000; $i++) {
    $cycle($i);
    check(threads() === 1, 'no thread after the last lease');
}
$took = ms() - $start;
$after = [memory_get_usage(), $resident(), $files()];
echo 'PHP memory: ', $after[0] - $before[0] < 4096 ? 'flat' : $after[0] - $before[0] . ' more', "\n";
// Valgrind does not release freed memory at once.
echo 'resident: ', $after[1] - $before[1] < (patience() > 1 ? 65536 : 1024) ? 'flat' : $after[1] - $before[1] . ' KiB more', "\n";
echo 'files: ', $after[2] - $before[2], " more\n";
check($took < 20000 * SLOW, "1 000 cycles take their time: $took ms");
?>
--EXPECT--
PHP memory: flat
resident: flat
files: 0 more
