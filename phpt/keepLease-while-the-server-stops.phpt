--TEST--
The server stops for less than the lease: unknown, then held; for longer: unknown until the deadline, then lost for good; and it dies
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$server = new OwnServer();
$db = new TestDb();
$runtime = new NrLlmRuntime($db->connection(), ['queryTimeoutMs' => 500 * SLOW, 'connectTimeoutMs' => 500 * SLOW]);
$keep = static fn (): NrLlmLease => $runtime->keepLease($db->running(time() + 100), 'worker:a', 3 * SLOW, ['everyMs' => 500 * SLOW]);
/** The states that were seen until one was. */
$seen = static function (NrLlmLease $lease, string ...$last): string {
    $states = [];
    check(until(static function () use ($lease, &$states, $last): bool {
        $state = $lease->state();
        if (end($states) !== $state) {
            $states[] = $state;
        }
        check(($lease->remainingMs() > 0) >= in_array($state, ['lost', 'stopped'], true) || !$lease->isHeld(), 'no time when lost');
        return in_array($state, $last, true);
    }), 'one of ' . implode(', ', $last));
    return implode(' ', $states);
};
$lease = $keep();
check(until(static fn (): bool => $lease->beats() > 2 && $lease->state() === 'held'), 'it beats');
$server->signal(SIGSTOP);
echo 'stopped: ', $seen($lease, 'unknown'), ', ', $lease->lastError() === null ? 'no error' : 'an error', "\n";
check($lease->isHeld() && $lease->remainingMs() > 0, 'still this process\'s');
$server->signal(SIGCONT);
echo 'continued: ', $seen($lease, 'held'), ', ', $lease->lastError() ?? 'no error', "\n";
$beats = $lease->beats();
check(until(static fn (): bool => $lease->beats() > $beats && $lease->state() === 'held'), 'it beats on');

$server->signal(SIGSTOP);
$start = ms();
echo 'stopped for longer: ', $seen($lease, 'lost'), "\n";
$took = (ms() - $start) / 1000 / SLOW;
check($took > 1.9 && $took < 4.5, "at the deadline: $took s");
check($lease->remainingMs() === 0, 'no time left');
$server->signal(SIGCONT);
$row = static fn (): array => $db->row($lease->runUid());
check((int) $row()['lease_expires'] > 0 && $row()['status'] === 'running', 'nobody has taken it yet');
$expires = $row()['lease_expires'];
check(until(static fn (): bool => threads() === 1), 'the thread is gone with its last lease');
check($row()['lease_expires'] === $expires, 'no beat after the loss');
echo 'continued: ', $lease->state(), "\n";
try {
    $lease->step();
} catch (NrLlmLeaseLostException $error) {
    echo str_starts_with($error->getMessage(), "the lease of 'worker:a' on run 1 is lost: its deadline passed before a heartbeat succeeded (") ? "says why\n" : $error;
}

$lease = $keep();
check(until(static fn (): bool => $lease->beats() > 2 && $lease->state() === 'held'), 'it beats');
$server->signal(SIGKILL);
echo 'killed: ', $seen($lease, 'lost'), "\n";
$start = ms();
$lease->release();
unset($lease);
check(ms() - $start < 1500 * SLOW, 'the end waits for no server');
echo 'threads ', threads(), "\n";
?>
--EXPECT--
stopped: held unknown, an error
continued: unknown held, no error
stopped for longer: held unknown lost
continued: lost
says why
killed: held unknown lost
threads 1
