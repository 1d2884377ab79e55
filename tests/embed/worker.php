<?php

/**
 * A worker script: it handles requests in a loop, with one runtime and one kept lease for all of them. A request that ends the script
 * ends what it kept, and nothing of another thread's.
 */

declare(strict_types=1);

require __DIR__ . '/common.inc';

$database = database();
$runtime = runtime();
$owner = sprintf('script-%d.%d', host_thread(), host_request());
$uid = queued($database, $owner);
holds($runtime->claimQueued($uid, $owner, time() + 60 * patience()), 'the run of the script is claimed');
$own = $runtime->keepLease($uid, $owner, 60 * patience(), ['everyMs' => 100 * patience()]);

$handler = static function () use ($database, $runtime, $own): void {
    $before = $own->beats();
    $lease = work($database, $runtime);
    holds($own->isHeld(), 'the lease of the script is held in each of its requests');
    holds(until(static fn (): bool => $own->beats() > $before), 'and renewed');
    host_checked();
    switch ((host_thread() + host_request()) % 4) {
        case 0:
            exit(0);
        case 1:
            // Released with the variable.
            break;
        case 2:
            throw new RuntimeException('an exception, on purpose');
        case 3:
            if ($lease !== null) {
                goes_on($lease);
            }
    }
};
while (host_handle_request($handler)) {
}
