--TEST--
interruptOnLoss: a loss that step() has thrown is not thrown again
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
// A caller that step() has thrown to is not interrupted as well.
$lease = $keep();
$lose($lease);
try {
    for ($end = ms() + 2000 * SLOW; ms() < $end;) {
        $lease->step();
    }
    echo "never noticed\n";
} catch (NrLlmLeaseLostException) {
    echo 'thrown once, by step() or by the interrupt: ';
}
echo $busy(), "\n";
?>
--EXPECT--
thrown once, by step() or by the interrupt: left alone
