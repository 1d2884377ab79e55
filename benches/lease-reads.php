<?php

/**
 * Measures the cost of a read of a kept lease, including the call from PHP:
 *   php -d extension=target/release/libnrllm_runtime.so benches/lease-reads.php
 * Needs a server as the tests do (NRLLM_TEST_SOCKET, _USER, _PASSWORD). Each figure is the best of
 * 50 batches, so that other load has little effect; the cost of the empty loop is subtracted.
 */

declare(strict_types=1);

require dirname(__DIR__) . '/phpt/inc/db.inc';

$db = new TestDb();
$lease = $db->runtime()->keepLease($db->running(time() + 100), 'worker:a');
const BATCH = 20000;
$best = static function (callable $batch): float {
    $nanoseconds = INF;
    for ($i = 0; $i < 50; $i++) {
        $start = hrtime(true);
        $batch();
        $nanoseconds = min($nanoseconds, (hrtime(true) - $start) / BATCH);
    }

    return $nanoseconds;
};
$empty = $best(static function (): void { for ($i = 0; $i < BATCH; $i++); });
$reads = [
    'state()' => static function () use ($lease): void { for ($i = 0; $i < BATCH; $i++) { $lease->state(); } },
    'isHeld()' => static function () use ($lease): void { for ($i = 0; $i < BATCH; $i++) { $lease->isHeld(); } },
    'remainingMs()' => static function () use ($lease): void { for ($i = 0; $i < BATCH; $i++) { $lease->remainingMs(); } },
    'step()' => static function () use ($lease): void { for ($i = 0; $i < BATCH; $i++) { $lease->step(); } },
    'beats()' => static function () use ($lease): void { for ($i = 0; $i < BATCH; $i++) { $lease->beats(); } },
    'hrtime(), to compare' => static function (): void { for ($i = 0; $i < BATCH; $i++) { hrtime(true); } },
];
$slow = false;
foreach ($reads as $label => $batch) {
    $cost = $best($batch) - $empty;
    $slow = $slow || $cost > 200;
    printf("%-22s %6.1f ns\n", $label, $cost);
}
exit($slow ? 1 : 0);
