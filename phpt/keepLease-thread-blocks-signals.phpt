--TEST--
keepLease(): the heartbeat thread blocks signals; all handlers run on PHP's thread while heartbeats continue
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
pcntl_async_signals(true);
$calls = ['chld' => 0, 'alrm' => 0, 'usr1' => 0, 'term' => 0];
pcntl_signal(SIGCHLD, static function () use (&$calls): void { $calls['chld']++; while (pcntl_waitpid(-1, $status, WNOHANG) > 0); });
pcntl_signal(SIGUSR1, static function () use (&$calls): void { $calls['usr1']++; });
pcntl_signal(SIGTERM, static function () use (&$calls): void { $calls['term']++; });
pcntl_signal(SIGALRM, static function () use (&$calls): void { $calls['alrm']++; pcntl_alarm(1); });
$lease = $runtime->keepLease($db->running(time() + 100), 'worker:a', 3 * SLOW, ['everyMs' => 100 * SLOW]);
check(until(static fn (): bool => $lease->beats() > 1), 'heartbeats are sent');
foreach (array_diff(scandir('/proc/self/task'), ['.', '..', (string) getmypid()]) as $thread) {
    preg_match('/^SigBlk:\s*([0-9a-f]+)/m', file_get_contents("/proc/self/task/$thread/status"), $match);
    $open = [];
    for ($signal = 1; $signal <= 31; $signal++) {
        if (!((hexdec(substr($match[1], -8)) >> ($signal - 1)) & 1)) {
            $open[] = $signal;
        }
    }
    // ILL, TRAP, ABRT, BUS, FPE, KILL, SEGV, STOP, SYS: faults, and the two that cannot be blocked.
    echo 'not blocked: ', implode(' ', $open), "\n";
}
preg_match('/^SigBlk:\s*([0-9a-f]+)/m', file_get_contents('/proc/self/status'), $match);
echo 'the own mask is as it was: ', hexdec($match[1]) === 0 ? 'empty' : $match[1], "\n";
// The kernel gives a signal to any thread of the process that does not block it.
pcntl_alarm(1);
$heartbeats = $lease->beats();
$start = ms();
for ($i = 1; $i <= 200; $i++) {
    if ($i % 2) {
        if (pcntl_fork() === 0) {
            posix_kill(getmypid(), SIGKILL);
        }
    }
    posix_kill(getmypid(), SIGUSR1);
    check(until(static function () use (&$calls, $i): bool { return $calls['usr1'] === $i; }), 'every handler runs, in this thread');
}
posix_kill(getmypid(), SIGTERM);
check(until(static function () use (&$calls): bool { return $calls['chld'] > 0 && $calls['alrm'] > 0 && $calls['term'] === 1; }), 'all kinds');
check(until(static fn (): bool => $lease->beats() > $heartbeats + 2), 'heartbeats continue');
echo $lease->state(), ' ', $calls['usr1'], "\n";
pcntl_alarm(0);
?>
--EXPECT--
not blocked: 4 5 6 7 8 9 11 19 31
the own mask is as it was: empty
held 200
