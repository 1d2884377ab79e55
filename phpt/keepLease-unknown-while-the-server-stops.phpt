--TEST--
keepLease(): when the server stops for less than the lease, it is unknown, then held
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
echo 'stopped: ', $seen($lease, 'unknown'), ', ', $lease->lastError() === null ? 'no error' : 'an error', "\n";
check($lease->isHeld() && $lease->remainingMs() > 0, 'still this process\'s');
$server->signal(SIGCONT);
echo 'continued: ', $seen($lease, 'held'), ', ', $lease->lastError() ?? 'no error', "\n";
$heartbeats = $lease->beats();
check(until(static fn (): bool => $lease->beats() > $heartbeats && $lease->state() === 'held'), 'heartbeats continue');
?>
--EXPECT--
stopped: held unknown, an error
continued: unknown held, no error
