--TEST--
Fork: the child closes its copies of the parent's sockets, and the parent's connections stay open (rule 29)
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
$runtime = $db->runtime();
$uid = $db->running(2000000000);
$sockets = static function (): array {
    // A thread-safe PHP keeps the resolved path of /proc/self, also across a fork.
    clearstatcache(true);
    $links = array_map(static fn (string $fd): string => (string) @readlink("/proc/self/fd/$fd"), scandir('/proc/self/fd'));
    return array_filter($links, static fn (string $link): bool => str_starts_with($link, 'socket:'));
};
$before = $sockets();
$lease = $runtime->keepLease($uid, 'worker:a', 30, ['everyMs' => 200]);
$deadline = hrtime(true) + (int) 10e9;
while ($lease->beats() < 3 && hrtime(true) < $deadline) {
    usleep(20000);
}
// The socket of the connection for calls and heartbeats, and socket pairs of the runtimes.
$connected = static fn (): int => (int) $db->value('SELECT COUNT(*) FROM information_schema.processlist WHERE db = ? AND id <> CONNECTION_ID()', [$db->name]);
var_dump($connected());
$ours = array_diff($sockets(), $before);
$code = $db->fork(static fn (): int => count($ours) - count(array_intersect($sockets(), $ours)));
echo "closed by the child: $code\n";
var_dump($runtime->renewLease($uid, 'worker:a', 2000000031), $connected());
$heartbeats = $lease->beats();
while ($lease->beats() < $heartbeats + 3 && hrtime(true) < $deadline) {
    usleep(20000);
}
var_dump($lease->state());
?>
--EXPECT--
int(1)
closed by the child: 1
bool(true)
int(1)
string(4) "held"
