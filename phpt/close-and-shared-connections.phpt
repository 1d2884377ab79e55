--TEST--
One connection per process and settings: opened by the first call, shared by objects, closed by close() and with the last object, opened again by the next call
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
$sessions = static fn (): array => array_column($db->query("SELECT id FROM information_schema.processlist WHERE db = ? AND id <> CONNECTION_ID() ORDER BY id", [$db->name])
    ->fetch_all(MYSQLI_ASSOC), 'id');
/** Waits until the server has noticed that a session was closed. */
$until = static function (int $count) use ($sessions): int {
    for ($i = 0; $i < 2000 && count($sessions()) !== $count; $i++) {
        usleep(5000);
    }
    return count($sessions());
};
$one = $db->runtime();
NrLlmRuntime::backoffMs(1);
NrLlmRuntime::classifyFailure(new Exception());
echo 'made, not used: ', count($sessions()), "\n";
$one->status();
echo 'used: ', count($sessions()), "\n";
$two = $db->runtime();
$two->reap();
$three = $db->runtime(['maxRequeues' => 5]);
$three->reap();
echo 'two more objects with the same connection settings: ', count($sessions()), "\n";
for ($i = 0; $i < 200; $i++) {
    $db->runtime()->renewLease(1, 'w', 5);
}
echo '200 more: ', count($sessions()), "\n";
$before = $sessions();
$one->close();
$one->close();
echo 'closed: ', $until(0), "\n";
$two->reap();
echo 'used again: ', count($sessions()), ', another one: ', var_export($sessions() !== $before, true), "\n";
unset($one, $three);
$two->reap();
echo 'some objects are gone: ', count($sessions()), "\n";
unset($two);
echo 'all objects are gone: ', $until(0), "\n";
$runtime = $db->runtime();
$runtime->reap();
$db->link()->query('KILL ' . $sessions()[0]);
$until(0);
$uid = $db->running(2000000000);
var_dump($runtime->renewLease($uid, 'worker:a', 2000000000), count($sessions()));
?>
--EXPECT--
made, not used: 0
used: 1
two more objects with the same connection settings: 1
200 more: 1
closed: 0
used again: 1, another one: true
some objects are gone: 1
all objects are gone: 0
bool(true)
int(1)
