--TEST--
Results compare by value; a runtime and a lease are equal to themselves alone
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/provider.inc';
require __DIR__ . '/inc/db.inc';
use Netresearch\NrLlm\Provider\Exception as P;

$db = new TestDb();
$runtime = $db->runtime();
$classify = NrLlmRuntime::classifyFailure(...);
$connection = new P\ProviderConnectionException('x');
$requeued = $runtime->recoverFailure($db->running(time() + 100), 'worker:a', $connection);
$again = $runtime->recoverFailure($db->running(time() + 100), 'worker:a', $connection);
$lost = $runtime->recoverFailure($db->running(time() + 100), 'worker:b', $connection);
$empty = $runtime->reap(5);
$db->running(time() - 100);
$one = $runtime->reap(5, null, ['dryRun' => true]);
$lease = $runtime->keepLease($db->running(time() + 100), 'worker:a', 60);
$other = $runtime->keepLease($db->running(time() + 100), 'worker:a', 60);
foreach ([
    'failures of two classes' => [$classify($connection), $classify(new OverflowException('x')), false],
    'failures alike' => [$classify(new OverflowException('x')), $classify(new OverflowException('y')), true],
    'failures of one class, of other errors' => [$classify(new OverflowException('x')), $classify(new UnderflowException('x')), false],
    'recoveries alike' => [$requeued, $again, true],
    'recoveries of two outcomes' => [$requeued, $lost, false],
    'a part alike' => [$requeued->failure(), $lost->failure(), true],
    'reports' => [$empty, $one, false],
    'reports alike' => [$one, $runtime->reap(5, null, ['dryRun' => true]), true],
    'two classes' => [$requeued, $empty, false],
    'a value and itself' => [$one, $one, true],
    'runtimes of the same settings' => [$runtime, $db->runtime(), false],
    'a runtime and itself' => [$runtime, $runtime, true],
    'leases' => [$lease, $other, false],
    'a lease and itself' => [$lease, $lease, true],
] as $label => [$a, $b, $equal]) {
    if (($a == $b) !== $equal || ($a != $b) === $equal || in_array($a, [$b]) !== $equal || $a < $b || $a > $b) {
        echo "$label: ", var_export($a == $b, true), "\n";
    }
}
// A failure is its class, as a string.
var_dump($classify($connection) == 'connection', $classify($connection) == 'unknown');
$lease->release();
$other->release();
?>
--EXPECT--
bool(true)
bool(false)
