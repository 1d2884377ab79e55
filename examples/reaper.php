<?php

declare(strict_types=1);

// A reaper in plain PHP, for cron: settles the runs of dead workers, and wakes what nobody woke.
//   * * * * * DB_USER=… DB_PASSWORD=… php /path/to/examples/reaper.php
$runtime = new NrLlmRuntime(['driver' => 'pdo_mysql', 'host' => getenv('DB_HOST') ?: 'localhost', 'unix_socket' => getenv('DB_SOCKET') ?: '',
    'dbname' => getenv('DB_NAME') ?: 'typo3', 'user' => getenv('DB_USER') ?: 'typo3', 'password' => getenv('DB_PASSWORD') ?: '']);

do {
    $report = $runtime->reap(limit: 500); // waits for no live worker and blocks none; several reapers share the work
    foreach ($report->requeued() as $run) {
        echo "requeued {$run['uuid']} of {$run['claimedBy']} for attempt ", $run['requeueCount'] + 1, "\n";
        wake($run['uuid']);
    }
    foreach ($report->deadLettered() as $run) {
        echo "dead-lettered {$run['uuid']} of {$run['claimedBy']}: {$run['reason']}\n";
    }
} while ($report->hasMore() && count($report) > count($report->skipped()));

// Queued for ten minutes longer than the backoff: the wake-up never came (a crash, a deploy, a full disk).
foreach ($runtime->strandedRuns(olderThanSeconds: 600) as $run) {
    echo "stranded {$run['uuid']} for {$run['queuedSeconds']} s\n";
    wake($run['uuid']);
}

/** Tell a worker. Nothing to do where workers ask dueRuns(); with TYPO3's message bus, reap() writes the message itself (option wakeUp). */
function wake(string $uuid): void
{
}
