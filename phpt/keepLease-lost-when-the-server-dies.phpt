--TEST--
keepLease(): when the server dies, the lease is lost at its deadline, and its release does not wait
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
$server->signal(SIGKILL);
echo 'killed: ', $seen($lease, 'lost'), "\n";
$start = ms();
$lease->release();
unset($lease);
check(ms() - $start < 1500 * SLOW, 'the end waits for no server');
echo 'threads ', threads(), "\n";
?>
--EXPECT--
killed: held unknown lost
threads 1
