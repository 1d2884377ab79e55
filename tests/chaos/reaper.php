<?php

declare(strict_types=1);

// A reaper: one tick after the other, with wake-ups in the transaction of the requeue where workers
// receive messages.
require __DIR__ . '/actor.inc';

for ($tick = 1; !$stopping; $tick++) {
    try {
        note('reaping', ['tick' => $tick]);
        // A clock that is wrong, where the round asks for one; else the module's own.
        $now = ($round['skew'] ?? 0) === 0 ? null : time() + $round['skew'];
        $report = $runtime->reap(50, $now, ['wakeUp' => wakeUp()]);
        $short = fn(array $run): array => array_intersect_key($run, ['uid' => 1, 'requeueCount' => 1, 'reason' => 1, 'wokenUp' => 1, 'confirmed' => 1]);
        note('reaped', ['tick' => $tick, 'requeued' => array_map($short, $report->requeued()), 'deadLettered' => array_map($short, $report->deadLettered()), 'skipped' => count($report->skipped())]);
    } catch (NrLlmException $error) {
        elsewhere($error);
    }
    usleep(120_000);
}
note('ended');
