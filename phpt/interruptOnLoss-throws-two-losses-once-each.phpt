--TEST--
interruptOnLoss: two leases lost in one native call are thrown once each
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
// Two leases are lost in one native call: each is thrown once, one as the previous of the other.
[$one, $two] = [$keep(), $keep()];
$lose($one);
$lose($two);
$messages = [];
try {
    usleep(500000 * SLOW);
} catch (NrLlmLeaseLostException $error) {
    for (; $error !== null; $error = $error->getPrevious()) {
        $messages[] = preg_replace('/.*run (\d+) .*/', '$1', $error->getMessage());
    }
}
sort($messages);
echo 'two: ', $messages === [(string) $one->runUid(), (string) $two->runUid()] ? 'each once' : json_encode($messages), ', then ', $busy(), "\n";
?>
--EXPECT--
two: each once, then left alone
