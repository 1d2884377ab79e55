<?php

/**
 * Measures the cost of a call: prints `name<TAB>microseconds`, the median of several rounds.
 * bin/bench-ffi runs it through the extension and through the FFI bridge, on the database that
 * NRLLM_BENCH_DATABASE names.
 */

declare(strict_types=1);

$start = hrtime(true);
NrLlmRuntime::backoffMs(1);
$first = (hrtime(true) - $start) / 1000;

$connection = ['driver' => 'mysqli', 'unix_socket' => getenv('NRLLM_TEST_SOCKET'), 'user' => getenv('NRLLM_TEST_USER'), 'password' => getenv('NRLLM_TEST_PASSWORD'), 'dbname' => getenv('NRLLM_BENCH_DATABASE')];
$runtime = new NrLlmRuntime($connection);
$error = new RuntimeException('x', 503);
// Run 1 is held by `worker:a`, the others are stale.
$lease = $runtime->keepLease(1, 'worker:a');
$report = $runtime->reap(50, null, ['dryRun' => true]);
if (count($report) !== 50) {
    fwrite(STDERR, 'expected 50 stale runs, found ' . count($report) . "\n");
    exit(1);
}
$calls = [
    'backoffMs()' => [20000, static fn () => NrLlmRuntime::backoffMs(3)],
    'classifyFailure()' => [10000, static fn () => NrLlmRuntime::classifyFailure($error)],
    'new NrLlmRuntime()' => [5000, static fn () => new NrLlmRuntime($connection)],
    'NrLlmLease::isHeld()' => [20000, static fn () => $lease->isHeld()],
    'renewLease()' => [2000, static fn () => $runtime->renewLease(1, 'worker:a', 2000000000)],
    'leaseState()' => [2000, static fn () => $runtime->leaseState(1, 'worker:a')],
    'reap(), dry run of 50' => [300, static fn () => $runtime->reap(50, null, ['dryRun' => true])->requeued()],
    'status()' => [300, static fn () => $runtime->status()],
];
printf("first call\t%.2f\n", $first);
foreach ($calls as $name => [$times, $call]) {
    $rounds = [];
    for ($round = 0; $round < 7; $round++) {
        $start = hrtime(true);
        for ($i = 0; $i < $times; $i++) {
            $call();
        }
        $rounds[] = (hrtime(true) - $start) / $times / 1000;
    }
    sort($rounds);
    printf("%s\t%.2f\n", $name, $rounds[3]);
}
