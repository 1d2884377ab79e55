<?php

/**
 * A request of the classic style. Its end releases what it kept, and nothing of another thread.
 */

declare(strict_types=1);

require __DIR__ . '/common.inc';

$database = database();
$runtime = runtime();

// The previous request on this thread has ended its heartbeats, so this value stays in the row.
$previous = sprintf('thread-%d.%d', host_thread(), host_request() - 1);
$own = " WHERE claimed_by = ? AND status = 'running'";
$database->execute_query('UPDATE ' . TABLE . ' SET lease_expires = 77' . $own, [$previous]);

$lease = work($database, $runtime);

$renewed = $database->execute_query(
    'SELECT COUNT(*) FROM ' . TABLE . $own . ' AND lease_expires <> 77',
    [$previous],
)->fetch_row()[0];
holds((int) $renewed === 0, 'the lease of an ended request is not renewed');
host_checked();

// Requests of different threads end in different ways at the same time.
switch ((host_thread() + host_request()) % 4) {
    case 0:
        exit(0);
    case 1:
        // The variable holds the kept lease until the request ends.
        break;
    case 2:
        trigger_error('a fatal error, on purpose', E_USER_ERROR);
        break;
    case 3:
        if ($lease !== null) {
            outlive($lease);
        }
}
