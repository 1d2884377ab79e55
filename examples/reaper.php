<?php

declare(strict_types=1);

// A reaper in plain PHP, for cron: settles the runs of dead workers, and wakes what nobody woke.
//   * * * * * php /path/to/examples/reaper.php
$runtime = new NrLlmRuntime(getenv('NRLLM_DATABASE') ?: 'mysql://typo3:secret@localhost/typo3');

do {
    $report = $runtime->reap(limit: 500); // never waits for a live worker, never blocks one; several may run at once
    foreach ($report->requeued() as $run) {
        echo "requeued {$run['uuid']} of {$run['claimedBy']}, attempt ", $run['requeueCount'] + 1, "\n";
        wake($run['uuid']);
    }
    foreach ($report->deadLettered() as $run) {
        echo "failed {$run['uuid']} of {$run['claimedBy']}: {$run['reason']}\n";
    }
} while ($report->hasMore() && count($report->requeued()) + count($report->deadLettered()) > 0);

// Queued for ten minutes longer than its backoff: the wake-up never came (a crash, a deploy, a full disk).
foreach ($runtime->strandedRuns(olderThanSeconds: 600) as $run) {
    echo "stranded {$run['uuid']} for {$run['queuedSeconds']} s\n";
    wake($run['uuid']);
}

/** Tell a worker. Nothing to do where workers ask `dueRuns()`; with TYPO3's message bus, let `reap()` write the message (`wakeUp`). */
function wake(string $uuid): void
{
}
