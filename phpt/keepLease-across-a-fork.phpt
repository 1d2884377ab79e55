--TEST--
Fork with the keeper running: the child's copy is stopped, the parent's heartbeats continue; the child keeps leases of its own; both ways round
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
$options = ['everyMs' => 100 * SLOW];
$uid = $db->running(time() + 100);
$own = $db->running(time() + 100);
$lease = $runtime->keepLease($uid, 'worker:a', 3 * SLOW, $options);
$goes_on = static function (NrLlmLease $lease): void {
    $beats = $lease->beats();
    check(until(static fn (): bool => $lease->beats() > $beats + 1), 'the beats go on');
    check($lease->state() === 'held', 'and it is held');
};
$goes_on($lease);
$copy = static function (NrLlmLease $lease): string {
    $step = 'nothing';
    try {
        $lease->step();
    } catch (NrLlmLeaseLostException $error) {
        $step = $error->getMessage();
    }
    return implode(', ', [$lease->state(), var_export($lease->isHeld(), true), $lease->remainingMs(), $lease->lastError(), $lease->runUid() . $lease->claimedBy(), $step]);
};
echo "-- the child only reads\n";
$child = Party::start($db, static function (Party $parent) use ($copy, $lease): int {
    $parent->say($copy($lease) . ', threads ' . threads());
    $lease->release();
    return 7;
});
echo $child->hear(), "\n", $child->end(), "\n";
$goes_on($lease);

echo "-- the child keeps its own, with the runtime it inherited and with a new one\n";
$child = Party::start($db, static function (Party $parent) use ($db, $runtime, $lease, $own, $goes_on): int {
    $mine = $runtime->keepLease($own, 'worker:a', 3 * SLOW, ['everyMs' => 100 * SLOW]);
    $goes_on($mine);
    $parent->say($mine->state() . ' ' . $lease->state() . ' threads ' . threads());
    $mine->release();
    $again = $db->runtime()->keepLease($own, 'worker:a', 3 * SLOW, ['everyMs' => 100 * SLOW]);
    $goes_on($again);
    // A child of the child.
    $grandchild = Party::start($db, static function (Party $parent) use ($again, $lease, $mine): int {
        $parent->say($again->state() . ' ' . $mine->state() . ' ' . $lease->state() . ' threads ' . threads());
        return 0;
    });
    $parent->say((string) $grandchild->hear());
    $grandchild->end();
    $goes_on($again);
    $parent->say('held, threads ' . threads());
    return 0;
});
while (($line = $child->hear()) !== null) {
    echo $line, "\n";
}
echo $child->end(), "\n";
$goes_on($lease);

echo "-- the child is first: it keeps a lease, and the parent starts, ends and starts its keeper meanwhile\n";
$lease->release();
$child = Party::start($db, static function (Party $parent) use ($runtime, $own, $goes_on): int {
    $mine = $runtime->keepLease($own, 'worker:a', 3 * SLOW, ['everyMs' => 100 * SLOW]);
    $parent->say('kept');
    $parent->hear();
    $goes_on($mine);
    $parent->say($mine->state());
    return 0;
});
$child->hear();
$lease = $runtime->keepLease($uid, 'worker:a', 3 * SLOW, $options);
$goes_on($lease);
$lease->release();
$lease = $runtime->keepLease($uid, 'worker:a', 3 * SLOW, $options);
$child->say('go on');
echo $child->hear(), ' ', $child->end(), "\n";
$goes_on($lease);

echo "-- many forks, at any moment of the thread\n";
$codes = [];
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
foreach ($children as $party) {
    @$codes[$party->end()]++;
}
ksort($codes);
echo json_encode($codes), "\n";
$goes_on($lease);
echo $db->line($uid, 'status', 'claimed_by'), ' ', $lease->state(), ' threads ', threads(), "\n";
$lease->release();
echo 'threads ', threads(), "\n";
?>
--EXPECT--
-- the child only reads
stopped, false, 0, it belongs to the process that this one was forked from, 1worker:a, the lease of 'worker:a' on run 1 is not kept any more: it belongs to the process that this one was forked from, threads 1
7
-- the child keeps its own, with the runtime it inherited and with a new one
held stopped threads 2
stopped stopped stopped threads 1
held, threads 2
0
-- the child is first: it keeps a lease, and the parent starts, ends and starts its keeper meanwhile
held 0
-- many forks, at any moment of the thread
{"1":13,"2":13,"137":14}
status='running' claimed_by='worker:a' held threads 2
threads 1
