--TEST--
Fork: forty children at any moment of the heartbeat thread, ended by exit(), a destruction or SIGKILL, leave the lease held
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$uid = $db->running(time() + 100);
$lease = $db->runtime()->keepLease($uid, 'worker:a', 3 * SLOW, ['everyMs' => 100 * SLOW]);
$children = $codes = [];
for ($i = 0; $i < 40; $i++) {
    $children[] = Party::start($db, static function () use ($lease, $i): int {
        $memory = str_repeat('x', 1 << 20);
        if ($i % 3 === 0) {
            posix_kill(getmypid(), SIGKILL);
        }
        if ($i % 3 === 1) {
            unset($lease);
        }
        return $i % 3;
    });
}
foreach ($children as $child) {
    @$codes[$child->end()]++;
}
ksort($codes);
echo json_encode($codes), "\n";
check_renewed($lease);
echo $db->line($uid, 'status', 'claimed_by'), ' ', $lease->state(), ' threads ', threads(), "\n";
$lease->release();
echo 'threads ', threads(), "\n";
?>
--EXPECT--
{"1":13,"2":13,"137":14}
status='running' claimed_by='worker:a' held threads 2
threads 1
