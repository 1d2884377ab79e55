--TEST--
A fatal error, the memory limit and exit() while objects live end the process in order; user code inside a call may throw
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
$uid = $db->running(2000000000);
$runtime = $db->runtime();
$ways = [
    'memory limit' => static function (): void {
        ini_set('memory_limit', (string) (memory_get_usage(true) + (4 << 20)));
        str_repeat('x', 64 << 20);
    },
    'memory limit while a report lives' => static function () use ($runtime): void {
        $report = $runtime->reap();
        $failure = NrLlmRuntime::classifyFailure(new Exception());
        ini_set('memory_limit', (string) (memory_get_usage(true) + (4 << 20)));
        while (true) {
            $all[] = [$report, $failure, NrLlmRuntime::classifyFailure(new Exception()), str_repeat('y', 100000)];
        }
    },
    'fatal inside getAttemptErrors' => static function () use ($runtime, $uid): void {
        require_once __DIR__ . '/inc/provider.inc';
        $runtime->recoverFailure($uid, 'worker:a', new class ([]) extends Netresearch\NrLlm\Provider\Exception\FallbackChainExhaustedException {
            public function getAttemptErrors(): array
            {
                ini_set('memory_limit', (string) (memory_get_usage(true) + (4 << 20)));
                return [str_repeat('z', 64 << 20)];
            }
        });
    },
    'exit inside getAttemptErrors' => static function () use ($runtime, $uid): void {
        require_once __DIR__ . '/inc/provider.inc';
        $runtime->recoverFailure($uid, 'worker:a', new class ([]) extends Netresearch\NrLlm\Provider\Exception\FallbackChainExhaustedException {
            public function getAttemptErrors(): array
            {
                exit(7);
            }
        });
    },
    'exit' => static function (): never {
        exit(9);
    },
];
foreach ($ways as $label => $way) {
    $code = $db->fork(static function () use ($way, $runtime, $uid): int {
        ini_set('display_errors', '0');
        ini_set('log_errors', '0');
        // The child's own connection is open when the end comes.
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
fatal inside getAttemptErrors: 255
exit inside getAttemptErrors: 7
exit: 9
string(7) "running"
