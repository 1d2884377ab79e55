--TEST--
identity(): segment, host, pid and nonce; the same within a process, another after a fork, at most 64 bytes
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
$worker = NrLlmRuntime::identity(segment: 'worker');
[$segment, $host, $pid, $nonce] = explode(':', $worker);
var_dump($segment, (int) $pid === getmypid(), str_starts_with(gethostname(), $host), strlen($nonce) >= 8);
var_dump(NrLlmRuntime::identity('worker') === $worker, NrLlmRuntime::identity('resume') === "resume:$host:$pid:$nonce");
$longest = NrLlmRuntime::identity(str_repeat('s', 24));
var_dump(strlen($longest) <= 64, str_ends_with($longest, ":$pid:$nonce"));
$file = tempnam(sys_get_temp_dir(), 'nrllm');
$codes = [];
for ($i = 0; $i < 2; $i++) {
    $codes[] = $db->fork(static function () use ($file): int {
        file_put_contents($file, NrLlmRuntime::identity('worker') . "\n", FILE_APPEND);
        return NrLlmRuntime::identity('worker') === NrLlmRuntime::identity('worker') ? 0 : 1;
    });
}
$others = file($file, FILE_IGNORE_NEW_LINES);
unlink($file);
var_dump($codes, count(array_unique([...$others, $worker])));
$nonces = array_map(static fn (string $identity): string => explode(':', $identity)[3], [...$others, $worker]);
var_dump(count(array_unique($nonces)), NrLlmRuntime::identity('worker') === $worker);
?>
--EXPECT--
string(6) "worker"
bool(true)
bool(true)
bool(true)
bool(true)
bool(true)
bool(true)
bool(true)
array(2) {
  [0]=>
  int(0)
  [1]=>
  int(0)
}
int(3)
int(3)
bool(true)
