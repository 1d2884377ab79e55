--TEST--
keepLease(): a process that was stopped past its deadline and continued reads lost at once
--EXTENSIONS--
nrllm_runtime
--INI--
opcache.jit=disable
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
// No JIT: forked processes share its memory and its lock, and one that is stopped while it holds
// that lock blocks all of them.
$db = new TestDb();
$ways = ['state' => static fn (NrLlmLease $l): string => $l->state(), 'isHeld' => static fn (NrLlmLease $l): string => $l->isHeld() ? 'held' : 'lost',
    'remainingMs' => static fn (NrLlmLease $l): string => $l->remainingMs() > 0 ? 'held' : 'lost',
    'step' => static function (NrLlmLease $l): string { try { $l->step(); return 'held'; } catch (NrLlmLeaseLostException) { return 'lost'; } }];
// A process per method, all stopped at the same time: each calls in a loop, so that it is stopped
// at any point.
$parties = $uids = [];
foreach ($ways as $label => $way) {
    $uids[$label] = $db->running(time() + 100);
    $parties[$label] = Party::start($db, static function (Party $parent) use ($db, $uids, $label, $way): int {
        $lease = $db->runtime()->keepLease($uids[$label], 'worker:a', 2 * SLOW);
        $before = hrtime(true);
        $parent->say('kept');
        while (true) {
            // The gap is measured before the method is called.
            $now = hrtime(true);
            $answer = $way($lease);
            if ($now - $before > 2e9 * SLOW) {
                $parent->say("the first answer: $answer, then " . $lease->state());
                return 0;
            }
            $before = $now;
        }
    });
}
foreach ($parties as $party) {
    check($party->hear() === 'kept', 'kept');
    posix_kill($party->pid, SIGSTOP);
}
$runtime = $db->runtime();
$start = ms();
$reaped = [];
check(until(static function () use ($runtime, &$reaped): bool {
    $reaped = [...$reaped, ...$runtime->reap()->requeued()];
    return count($reaped) === 4;
}), 'the leases run out and are reaped');
check(until(static fn (): bool => ms() - $start > 2500 * SLOW), 'past the lease');
foreach ($parties as $label => $party) {
    posix_kill($party->pid, SIGCONT);
    echo $label, ': ', $party->hear(), ', ', $party->end(), ', ', $db->line($uids[$label], 'status', 'lease_expires', 'requeue_count'), "\n";
}
?>
--EXPECT--
state: the first answer: lost, then lost, 0, status='queued' lease_expires='0' requeue_count='1'
isHeld: the first answer: lost, then lost, 0, status='queued' lease_expires='0' requeue_count='1'
remainingMs: the first answer: lost, then lost, 0, status='queued' lease_expires='0' requeue_count='1'
step: the first answer: lost, then lost, 0, status='queued' lease_expires='0' requeue_count='1'
