--TEST--
interruptOnLoss: a loss in a shutdown function is thrown there
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
// Before the function that drops the database.
$pid = getmypid();
register_shutdown_function(static function () use ($pid): void {
    if (getmypid() !== $pid) {
        return;
    }
    $GLOBALS['db']->query("UPDATE tx_nrllm_agentrun SET claimed_by = 'worker:b' WHERE uid = ?", [$GLOBALS['uid']]);
    thrown_class('shutdown function', static function (): void { while (true); });
});
$db = new TestDb();
$runtime = $db->runtime();
// In a shutdown function.
$uid = $db->running(time() + 100);
$lease = $runtime->keepLease($uid, 'worker:a', 2 * SLOW, ['everyMs' => 100 * SLOW, 'interruptOnLoss' => true]);
echo "end of the script\n";
?>
--EXPECTF--
end of the script
shutdown function: NrLlmLeaseLostException
