<?php

/**
 * After all threads have ended: nothing of theirs is left, and a new thread can keep a lease.
 */

declare(strict_types=1);

require __DIR__ . '/common.inc';

$database = database();
$connections = static fn (): array => array_column($database->query("SELECT id, command, info FROM information_schema.processlist
    WHERE db = DATABASE() AND id <> CONNECTION_ID()")->fetch_all(MYSQLI_NUM), 0);
holds(until(static fn (): bool => $connections() === []), 'connections of threads that have ended are left');
holds(until(static fn (): bool => os_threads() === 2), 'threads are left: ' . os_threads());

$runtime = runtime();
$uid = queued($database, 'after');
holds($runtime->claimQueued($uid, 'after', time() + 60 * patience()), 'a run is claimed');
$lease = $runtime->keepLease($uid, 'after', 60 * patience(), ['everyMs' => 50 * patience()]);
holds(until(static fn (): bool => $lease->beats() >= 3), 'and its lease is renewed');
host_checked();
