--TEST--
Fork: the child uses a connection of its own, with the inherited object and with a new one; the parent's connection stays usable
--DESCRIPTION--
A child that used the parent's socket would mix up the replies of both; one that closed it would silence the parent.
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
$runtime = $db->runtime();
$uid = $db->running(2000000000);
$stale = $db->running(5);
var_dump($runtime->renewLease($uid, 'worker:a', 2000000001));
$session = static fn (): string => (string) $db->value('SELECT GROUP_CONCAT(id ORDER BY id) FROM information_schema.processlist WHERE db = ? AND id <> CONNECTION_ID()', [$db->name]);
$parents = $session();
for ($round = 0; $round < 3; $round++) {
    $code = $db->fork(static function () use ($runtime, $db, $uid, $stale, $round): int {
        $ok = $runtime->renewLease($uid, 'worker:a', 2000000010 + $round)
            && !$runtime->renewLease($uid, 'worker:b', 2000000000)
            && $db->runtime()->renewLease($uid, 'worker:a', 2000000020 + $round)
            && count($runtime->reap()->requeued()) === ($round === 0 ? 1 : 0)
            && $runtime->status()['counts']['running'] === 1;
        if ($round === 2) {
            $runtime->close();
            $ok = $ok && $runtime->renewLease($uid, 'worker:a', 2000000022);
        }
        return $ok ? 0 : 1;
    });
    echo "child $round: $code; parent: ";
    $start = hrtime(true);
    var_dump($runtime->renewLease($uid, 'worker:a', 2000000030 + $round));
    check((hrtime(true) - $start) / 1e6 < 2000 * patience(), 'the parent does not wait');
}
var_dump($session() === $parents, $db->row($uid)['lease_expires'], $db->row($stale)['status']);
?>
--EXPECT--
bool(true)
child 0: 0; parent: bool(true)
child 1: 0; parent: bool(true)
child 2: 0; parent: bool(true)
bool(true)
string(10) "2000000032"
string(6) "queued"
