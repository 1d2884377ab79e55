--TEST--
interruptOnLoss: a deadline that passes without the server's reply is thrown
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
// The deadline passes without a reply from the server.
$uid = $db->running(time() + 100);
$lease = $runtime->keepLease($uid, 'worker:a', 2 * SLOW, ['everyMs' => 1000 * SLOW, 'maxSilentSeconds' => 1, 'interruptOnLoss' => true]);
thrown_class('deadline', static function (): void { while (true); });
echo $lease->lastError() === null ? 'no error' : 'the limit is named', "\n";
?>
--EXPECTF--
deadline: NrLlmLeaseLostException
the limit is named
