<?php

/**
 * One request of the classic style: its end releases what it kept, and nothing of another thread's.
 */

declare(strict_types=1);

require __DIR__ . '/common.inc';

$database = database();
$runtime = runtime();

// The end of the last request on this thread ended its heartbeats: this mark stays in the row.
$last = sprintf('thread-%d.%d', host_thread(), host_request() - 1);
$database->execute_query("UPDATE tx_nrllm_agentrun SET lease_expires = 77 WHERE claimed_by = ? AND status = 'running'", [$last]);

$lease = work($database, $runtime);

$renewed = $database->execute_query("SELECT COUNT(*) FROM tx_nrllm_agentrun WHERE claimed_by = ? AND status = 'running' AND lease_expires <> 77", [$last]);
holds((int) $renewed->fetch_row()[0] === 0, 'a lease of the last request on this thread is renewed');
host_checked();

// Requests that end in every way, side by side.
switch ((host_thread() + host_request()) % 4) {
    case 0:
        exit(0);
    case 1:
        // A kept lease in a variable until the request ends.
        break;
    case 2:
        trigger_error('a fatal error, on purpose', E_USER_ERROR);
    case 3:
        if ($lease !== null) {
            goes_on($lease);
        }
}
