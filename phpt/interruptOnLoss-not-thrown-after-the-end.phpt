--TEST--
interruptOnLoss: no exception after a release, a destruction or the end of the run, nor where it was not requested
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
$options = ['everyMs' => 100 * SLOW, 'interruptOnLoss' => true];
$keep = static function (array $more = []) use ($db, $runtime, $options): NrLlmLease {
    return $runtime->keepLease($db->running(time() + 100), 'worker:a', 2 * SLOW, $more + $options);
};
$lose = static fn (NrLlmLease $lease, string $set = "claimed_by = 'worker:b'") => $db->query("UPDATE tx_nrllm_agentrun SET $set WHERE uid = ?", [$lease->runUid()]);
/** Safe points for a while: whatever is to be thrown is thrown here. */
$busy = static function (): string {
    try {
        for ($end = ms() + 400 * SLOW; ms() < $end;);
        return 'left alone';
    } catch (NrLlmException $error) {
        return 'interrupted: ' . $error->getMessage();
    }
};
$lease = $keep(['interruptOnLoss' => false]);
$lose($lease);
echo 'not asked for: ', $busy(), ', ', $lease->state(), "\n";

$lease = $keep();
$lose($lease);
$lease->release();
echo 'released before it was noticed: ', $busy(), ', ', $lease->state(), "\n";

$lease = $keep();
$lose($lease);
unset($lease);
echo 'destroyed: ', $busy(), "\n";

foreach (["status = 'completed'", "status = 'failed'", "status = 'waiting_for_input'"] as $ended) {
    $lease = $keep();
    $lose($lease, "$ended, claimed_by = '', lease_expires = 0");
    echo "$ended: ", $busy(), ', ', $lease->state(), "\n";
}
?>
--EXPECT--
not asked for: left alone, lost
released before it was noticed: left alone, stopped
destroyed: left alone
status = 'completed': left alone, stopped
status = 'failed': left alone, stopped
status = 'waiting_for_input': left alone, stopped
