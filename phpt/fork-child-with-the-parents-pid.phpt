--TEST--
Fork: a child with its parent's pid has an identity, a connection and leases of its own
--DESCRIPTION--
In a new pid namespace the first process has pid 1, as its parent may have in its own; and a pid is given again after its holder's end.
Where namespaces are not permitted, the child has another pid and the rest is the same.
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
$uid = $db->running(2000000000);
$own = $db->running(2000000000);
/** Makes the next child the first process of a new namespace, if the system permits it. */
$namespace = static fn (): bool => @pcntl_unshare(CLONE_NEWPID) || @pcntl_unshare(CLONE_NEWUSER | CLONE_NEWPID);
$namespaces = $namespace();
$code = $db->fork(static function () use ($db, $runtime, $uid, $own, $namespace, $namespaces): int {
    $pid = getmypid();
    $identity = NrLlmRuntime::identity('worker');
    check($runtime->renewLease($uid, 'worker:a', 2000000001), 'the parent renews');
    $lease = $runtime->keepLease($own, 'worker:a', 20, ['everyMs' => 100 * SLOW]);
    check(until(static fn (): bool => $lease->beats() > 2), 'the parent sends heartbeats');
    $parents = connections($db);
    echo count($parents), " connections\n";
    $namespaces = $namespaces && $namespace();
    $code = $db->fork(static function () use ($db, $runtime, $uid, $own, $lease, $pid, $identity, $parents, $namespaces): int {
        check($namespaces === (getmypid() === $pid), 'the same pid');
        check(NrLlmRuntime::identity('worker') !== $identity && NrLlmRuntime::identity('worker') === NrLlmRuntime::identity('worker'), 'another identity');
        echo 'child: ', $lease->state(), "\n";
        var_dump($runtime->renewLease($uid, 'worker:a', 2000000002));
        echo count(array_diff(connections($db), $parents)), ' of its own', "\n";
        $mine = $runtime->keepLease($own, 'worker:a', 20, ['everyMs' => 100 * SLOW]);
        check(until(static fn (): bool => $mine->beats() > 2), 'the child sends heartbeats');
        $runtime->close();
        echo 'child: ', $mine->state(), "\n";
        return 0;
    });
    $start = ms();
    var_dump($code, $runtime->renewLease($uid, 'worker:a', 2000000003));
    check(ms() - $start < 2000 * patience(), 'the parent does not wait');
    $heartbeats = $lease->beats();
    check(until(static fn (): bool => $lease->beats() > $heartbeats + 1), 'heartbeats continue');
    var_dump(connections($db) === $parents, NrLlmRuntime::identity('worker') === $identity);
    echo $lease->state(), "\n";
    return 0;
});
var_dump($code);
?>
--EXPECT--
1 connections
child: stopped
bool(true)
1 of its own
child: held
int(0)
bool(true)
bool(true)
bool(true)
held
int(0)
