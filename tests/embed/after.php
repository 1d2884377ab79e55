<?php

/**
 * After all other threads have ended: none of their connections and threads are left, and a new
 * thread can keep a lease.
 */

declare(strict_types=1);

require __DIR__ . '/common.inc';

$database = database();
$left = static fn (): int => (int) $database->query(
    'SELECT COUNT(*) FROM information_schema.processlist
     WHERE db = DATABASE() AND id <> CONNECTION_ID()',
)->fetch_row()[0];
holds(until(static fn (): bool => $left() === 0), 'no connection of an ended thread is left');
holds(until(static fn (): bool => os_threads() === 2), 'the main thread and this one are left');

$lease = keep($database, runtime(), 'after', false);
holds(until(static fn (): bool => $lease->beats() >= 3), 'the lease of a new thread is renewed');
host_checked();
