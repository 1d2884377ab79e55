--TEST--
interruptOnLoss beside signal handlers: every handler is called, and none twice
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
// Signal handlers use the same flag of the engine: each is called, and none twice.
$calls = 0;
pcntl_async_signals(true);
pcntl_signal(SIGUSR1, static function () use (&$calls): void { $calls++; });
$lease = $keep();
for ($i = 1; $i <= 50; $i++) {
    posix_kill(getmypid(), SIGUSR1);
    check(until(static function () use (&$calls, $i): bool { return $calls === $i; }), 'the handler is called');
}
$lose($lease);
$thrown = 0;
for ($end = ms() + 600 * SLOW; ms() < $end;) {
    try {
        posix_kill(getmypid(), SIGUSR1);
        $i++;
        for ($pause = ms() + 1; ms() < $pause;);
    } catch (NrLlmLeaseLostException) {
        $thrown++;
    }
}
echo "signals: thrown $thrown, ", $calls >= 50 ? 'handlers called' : "$calls calls", "\n";

// A handler that throws at the same moment: both are thrown, the handler's as the previous one. The
// loss is noticed inside usleep(), which the alarm ends.
pcntl_signal(SIGALRM, static function (): never { throw new DomainException('of the handler'); });
$lease = $keep();
$lose($lease);
pcntl_alarm(SLOW);
try {
    usleep(5000000 * SLOW);
    echo "neither\n";
} catch (Throwable $error) {
    echo $error::class, ', previous ', $error->getPrevious() === null ? 'none' : $error->getPrevious()::class, "\n";
}
?>
--EXPECT--
signals: thrown 1, handlers called
NrLlmLeaseLostException, previous DomainException
