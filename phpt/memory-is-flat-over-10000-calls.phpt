--TEST--
10 000 calls of every kind leave no PHP memory allocated, also where they throw
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/provider.inc';
require __DIR__ . '/inc/db.inc';
use Netresearch\NrLlm\Provider\Exception as P;
$db = new TestDb();
$runtime = $db->runtime();
$connection = $db->connection();
$uid = $db->running(2000000000);
$chain = new P\FallbackChainExhaustedException([['configuration' => 'a', 'error' => new P\ProviderResponseException('x', 503)]]);
$catch = static function (callable $call): void {
    try {
        $call();
    } catch (Throwable) {
    }
};
$work = [
    'classify' => [10000, static fn () => json_encode(NrLlmRuntime::classifyFailure($chain)) . NrLlmRuntime::classifyFailure(new Exception())],
    'renew' => [10000, static fn () => $runtime->renewLease($uid, 'worker:a', 2000000000)],
    'lost' => [2000, static fn () => $runtime->recoverFailure($uid, 'worker:b', $chain)->jsonSerialize()],
    'dry run' => [500, static fn () => json_encode($runtime->reap(5, 2100000000, ['dryRun' => true, 'except' => [1, 2], 'only' => [$uid]]))],
    'status' => [200, static fn () => $runtime->status()],
    'statics' => [10000, static fn () => NrLlmRuntime::identity('worker') . NrLlmRuntime::backoffMs(3)],
    'objects' => [10000, static fn () => new NrLlmRuntime($connection, ['jitter' => 0.1])],
    'errors' => [10000, static function () use ($catch, $runtime, $connection): void {
        $catch(static fn () => $runtime->claimQueued(0, 'w', 1));
        $catch(static fn () => $runtime->claimQueued(1, str_repeat('x', 100), 1));
        $catch(static fn () => $runtime->reap(5, null, ['nope' => [1, 2, 3]]));
        $catch(static fn () => new NrLlmRuntime($connection, ['nope' => 1]));
        $catch(static fn () => new NrLlmRuntime(['driver' => 'x'] + $connection));
        $catch(static fn () => $runtime->renewLease('x', 'w', 1));
    }],
];
foreach ($work as $label => [$times, $call]) {
    // Under valgrind, which is slow, valgrind itself reports leaks.
    $times = intdiv($times, patience());
    for ($i = 0; $i < 20; $i++) {
        $call();
    }
    gc_collect_cycles();
    $before = memory_get_usage();
    for ($i = 0; $i < $times; $i++) {
        $call();
    }
    gc_collect_cycles();
    $grown = memory_get_usage() - $before;
    echo $label, ': ', $grown < 4096 ? 'flat' : "$grown bytes more", "\n";
}
?>
--EXPECT--
classify: flat
renew: flat
lost: flat
dry run: flat
status: flat
statics: flat
objects: flat
errors: flat
