<?php

/**
 * A worker script: handles requests in a loop, with one runtime and one kept lease for all of them.
 * A request that ends the script ends what the script kept, and nothing of another thread.
 */

declare(strict_types=1);

require __DIR__ . '/common.inc';

$database = database();
$runtime = runtime();
$own = keep($database, $runtime, sprintf('script-%d.%d', host_thread(), host_request()), false);

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
            // The end of the variable releases the lease.
            break;
        case 2:
            throw new RuntimeException('an exception, on purpose');
        case 3:
            if ($lease !== null) {
                outlive($lease);
            }
    }
};
while (host_handle_request($handler)) {
}
