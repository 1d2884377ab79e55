--TEST--
interruptOnLoss: a cancelled run is thrown as NrLlmRunCancelledException
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
// Cancelled by another caller: the other exception.
$uid = $db->running(time() + 100);
$lease = $runtime->keepLease($uid, 'worker:a', 2 * SLOW, ['everyMs' => 100 * SLOW, 'interruptOnLoss' => true]);
$runtime->cancelRun($db->row($uid)['uuid']);
thrown('cancelled', static function (): void { while (true); });
?>
--EXPECTF--
cancelled: NrLlmRunCancelledException: run %d was cancelled; 'worker:a' does not hold it any more
