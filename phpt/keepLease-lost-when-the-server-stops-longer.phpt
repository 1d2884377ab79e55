--TEST--
keepLease(): when the server stops for longer than the lease, it is unknown until the deadline, then lost
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
/** Returns the states that were read until the given one was. */
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
check(until(static fn (): bool => $lease->beats() > 2 && $lease->state() === 'held'), 'heartbeats are sent');
$server->signal(SIGSTOP);
$start = ms();
echo 'stopped for longer: ', $seen($lease, 'lost'), "\n";
$took = (ms() - $start) / 1000 / SLOW;
check($took > 1.9 && $took < 4.5, "at the deadline: $took s");
check($lease->remainingMs() === 0, 'no time left');
$server->signal(SIGCONT);
$row = static fn (): array => $db->row($lease->runUid());
check((int) $row()['lease_expires'] > 0 && $row()['status'] === 'running', 'no reaper has taken it yet');
$expires = $row()['lease_expires'];
check(until(static fn (): bool => threads() === 1), 'the thread is gone with its last lease');
check($row()['lease_expires'] === $expires, 'no heartbeat after the loss');
echo 'continued: ', $lease->state(), "\n";
try {
    $lease->step();
} catch (NrLlmLeaseLostException $error) {
    echo str_starts_with($error->getMessage(), "the lease of 'worker:a' on run 1 is lost: its deadline passed before a heartbeat succeeded (") ? "says why\n" : $error;
}
?>
--EXPECT--
stopped for longer: held unknown lost
continued: lost
says why
