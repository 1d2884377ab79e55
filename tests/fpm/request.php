<?php

declare(strict_types=1);

/**
 * A request to the FPM workers with a kept lease: `what` selects how it ends. The response is one
 * line of JSON.
 */

$what = $_GET['what'];
$uid = (int) ($_GET['uid'] ?? 0);
// A class of its own: an exception in this request must not come from the one before.
$answer = static function (array $facts): void {
    echo json_encode($facts + ['pid' => getmypid(), 'threads' => count(scandir('/proc/self/task')) - 2]), "\n";
    flush();
};
if ($what === 'plain') {
    $answer([]);
    return;
}
if ($what === 'busy') {
    // No lease is kept here: an interrupt of this loop would belong to another request.
    try {
        for ($end = hrtime(true) + 120_000_000; hrtime(true) < $end;);
        $answer(['interrupted' => false]);
    } catch (Throwable $error) {
        $answer(['interrupted' => $error->getMessage()]);
    }
    return;
}
$connection = json_decode(getenv('NRLLM_FPM_CONNECTION'), true);
$runtime = new NrLlmRuntime($connection);
$lease = $runtime->keepLease($uid, 'worker:a', 4, ['everyMs' => 100, 'interruptOnLoss' => true]);
$until_renewed = static function (int $heartbeats) use ($lease): void {
    for ($end = hrtime(true) + 5_000_000_000; $lease->beats() < $heartbeats && hrtime(true) < $end;) {
        usleep(1000);
    }
};
switch ($what) {
    case 'keep':
        $until_renewed(2);
        $answer(['state' => $lease->state(), 'heartbeats' => $lease->beats()]);
        break;
    case 'long':
        // Continues while the master is reloaded or stopped.
        $answer(['state' => $lease->state()]);
        for ($end = hrtime(true) + 1_000_000_000; hrtime(true) < $end; usleep(10000)) {
            $lease->step();
        }
        $answer(['state' => $lease->state(), 'ended' => true]);
        break;
    case 'exit':
        $answer(['state' => $lease->state()]);
        exit(1);
    case 'fatal':
        $answer(['state' => $lease->state()]);
        undefined_function();
        break;
    case 'memory':
        $answer(['state' => $lease->state()]);
        ini_set('memory_limit', (string) (memory_get_usage(true) + (4 << 20)));
        str_repeat('x', 64 << 20);
        break;
    case 'static':
        // Held by something that is destroyed after the request's shutdown.
        (new class () {
            public static mixed $kept = null;
        })::$kept = $lease;
        $answer(['state' => $lease->state()]);
        break;
    case 'lost':
        // The loss comes at about the moment at which the request ends: it is thrown here or
        // nowhere.
        $runtime->requeue($uid, 'worker:a');
        try {
            usleep((int) ($_GET['after'] ?? 100) * 1000);
            $answer(['interrupted' => false]);
        } catch (NrLlmLeaseLostException $error) {
            $answer(['interrupted' => $error->getMessage()]);
        }
        break;
    case 'many':
        $more = [];
        for ($i = 0; $i < 20; $i++) {
            $more[] = $runtime->keepLease($uid, 'worker:a', 4, ['everyMs' => 100 + $i]);
        }
        $until_renewed(2);
        $answer(['state' => $lease->state(), 'heartbeats' => $lease->beats()]);
        break;
}
