--TEST--
A fatal error, the memory limit and exit() end the process in order while objects exist; user code inside a call may throw
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
$uid = $db->running(2000000000);
$runtime = $db->runtime();
// Without Zend's own allocator (as under valgrind) there is no memory limit: another fatal error
// takes its place.
$limited = getenv('USE_ZEND_ALLOC') !== '0';
function use_up_memory(): never
{
    if ($GLOBALS['limited']) {
        ini_set('memory_limit', (string) (memory_get_usage(true) + (4 << 20)));
        for ($all = []; ; ) {
            $all[] = [NrLlmRuntime::classifyFailure(new Exception()), str_repeat('y', 100000)];
        }
    }
    declare_twice();
}
/** A compile error, which ends the process as the memory limit does: past all frames at once. */
function declare_twice(): never
{
    eval('class Exception {}');
}
require __DIR__ . '/inc/provider.inc';
final class Ending extends Netresearch\NrLlm\Provider\Exception\FallbackChainExhaustedException
{
    public function __construct(private readonly Closure $end)
    {
        parent::__construct([]);
    }
    public function getAttemptErrors(): array
    {
        ($this->end)();
    }
}
$ways = [
    'memory limit' => use_up_memory(...),
    'memory limit while a report lives' => static function () use ($runtime): never {
        $report = $runtime->reap();
        $failure = NrLlmRuntime::classifyFailure(new Exception());
        use_up_memory();
    },
    'compile error' => declare_twice(...),
    'memory limit inside getAttemptErrors' => static fn () => $runtime->recoverFailure($uid, 'worker:a', new Ending(use_up_memory(...))),
    'compile error inside getAttemptErrors' => static fn () => $runtime->recoverFailure($uid, 'worker:a', new Ending(declare_twice(...))),
    'exit inside getAttemptErrors' => static fn () => $runtime->recoverFailure($uid, 'worker:a', new Ending(static fn () => exit(7))),
    'exit' => static function (): never {
        exit(9);
    },
];
foreach ($ways as $label => $way) {
    $code = $db->fork(static function () use ($way, $runtime, $uid): int {
        ini_set('display_errors', '0');
        ini_set('log_errors', '0');
        // The child's own connection is open when it ends.
        $runtime->renewLease($uid, 'worker:a', 2000000000);
        $way();
        return 0;
    });
    echo "$label: $code\n";
    check($runtime->renewLease($uid, 'worker:a', 2000000000), 'the parent works on');
}
var_dump($db->row($uid)['status']);
?>
--EXPECT--
memory limit: 255
memory limit while a report lives: 255
compile error: 255
memory limit inside getAttemptErrors: 255
compile error inside getAttemptErrors: 255
exit inside getAttemptErrors: 7
exit: 9
string(7) "running"
