<?php

declare(strict_types=1);

// A reaper in plain PHP, for cron: requeues the runs of dead workers, and finds stranded runs.
//   * * * * * DB_USER=… DB_PASSWORD=… php /path/to/examples/reaper.php
$runtime = new NrLlmRuntime([
    'driver' => 'mysqli',
    'host' => getenv('DB_HOST') ?: 'localhost',
    'unix_socket' => getenv('DB_SOCKET') ?: '',
    'dbname' => getenv('DB_NAME') ?: 'typo3',
    'user' => getenv('DB_USER') ?: 'typo3',
    'password' => getenv('DB_PASSWORD') ?: '',
]);

do {
    $report = $runtime->reap(limit: 500); // blocks no live worker; several reapers share the work
    foreach ($report->requeued() as $run) {
        $attempt = $run['requeueCount'] + 1;
        echo "requeued {$run['uuid']} of {$run['claimedBy']} for attempt $attempt\n";
        notify_worker($run['uuid']);
    }
    foreach ($report->deadLettered() as $run) {
        echo "dead-lettered {$run['uuid']} of {$run['claimedBy']}: {$run['reason']}\n";
    }
} while ($report->hasMore() && count($report) > count($report->skipped()));

// Due for ten minutes: the wake-up was lost in a crash, a deploy, or on a full disk.
foreach ($runtime->strandedRuns(olderThanSeconds: 600) as $run) {
    echo "stranded {$run['uuid']} for {$run['queuedSeconds']} s\n";
    notify_worker($run['uuid']);
}

/**
 * Sends the wake-up. Empty here: workers that ask dueRuns() need none, and with TYPO3's message bus
 * reap() writes the message itself (option wakeUp).
 */
function notify_worker(string $uuid): void {}
