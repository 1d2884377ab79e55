--TEST--
Fork: a child and its own child keep leases with the inherited runtime and with a new one, and the parent's lease stays held
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
$own = $db->running(time() + 100);
$lease = $runtime->keepLease($db->running(time() + 100), 'worker:a', 3 * SLOW, ['everyMs' => 100 * SLOW]);
$child = Party::start($db, static function (Party $parent) use ($db, $runtime, $lease, $own): int {
    $inherited = $runtime->keepLease($own, 'worker:a', 3 * SLOW, ['everyMs' => 100 * SLOW]);
    check_renewed($inherited);
    $parent->say("child: {$inherited->state()}, the parent's {$lease->state()}, threads " . threads());
    $inherited->release();
    $new = $db->runtime()->keepLease($own, 'worker:a', 3 * SLOW, ['everyMs' => 100 * SLOW]);
    check_renewed($new);
    $grandchild = Party::start($db, static function (Party $parent) use ($new, $inherited, $lease): int {
        $parent->say("grandchild: {$new->state()} {$inherited->state()} {$lease->state()}, threads " . threads());
        return 0;
    });
    $parent->say((string) $grandchild->hear());
    $grandchild->end();
    check_renewed($new);
    $parent->say("child: {$new->state()}, threads " . threads());
    return 0;
});
while (($line = $child->hear()) !== null) {
    echo $line, "\n";
}
echo $child->end(), "\n";
check_renewed($lease);
?>
--EXPECT--
child: held, the parent's stopped, threads 2
grandchild: stopped stopped stopped, threads 1
child: held, threads 2
0
