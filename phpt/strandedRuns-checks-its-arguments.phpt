--TEST--
strandedRuns() checks its arguments before any SQL, and names a missing column or table
--EXTENSIONS--
nrllm_runtime
mysqli
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$runtime = new NrLlmRuntime(['driver' => 'mysqli', 'host' => '127.0.0.1', 'port' => 1, 'user' => 'u', 'dbname' => 'd'], ['connectTimeoutMs' => 200]);
foreach ([
    'age negative' => fn () => $runtime->strandedRuns(-1),
    'age in milliseconds' => fn () => $runtime->strandedRuns(1700000000000),
    'stranded: limit 0' => fn () => $runtime->strandedRuns(60, 0),
    'stranded: now negative' => fn () => $runtime->strandedRuns(60, 5, -1),
    'stranded: now in milliseconds' => fn () => $runtime->strandedRuns(60, 5, 1700000000000),
] as $label => $call) {
    thrown($label, $call);
}
foreach ([
    'age a string' => fn () => $runtime->strandedRuns('60'),
    'no age' => fn () => $runtime->strandedRuns(),
    'wakeUp a string' => fn () => $runtime->strandedRuns(60, 5, null, 'default'),
    'no server for a sweep' => fn () => $runtime->strandedRuns(60),
] as $label => $call) {
    thrown_class($label, $call);
}
foreach (['requeueCount' => false, 'create' => false] as $option => $value) {
    $db = new TestDb([$option => $value]);
    $word = $option === 'create' ? 'tx_nrllm_agentrun' : 'requeue_count';
    try {
        $db->runtime()->strandedRuns(60);
    } catch (NrLlmConfigurationException $error) {
        echo str_contains($error->getMessage(), $word) ? "names $word" : $error->getMessage(), "\n";
    }
}
?>
--EXPECT--
age negative: ValueError: $olderThanSeconds must be a number of seconds from 0 to 4294967295, -1 given
age in milliseconds: ValueError: $olderThanSeconds must be a number of seconds from 0 to 4294967295, 1700000000000 given
stranded: limit 0: ValueError: $limit must be at least 1, 0 given
stranded: now negative: ValueError: $now must be a unix time in seconds (not milliseconds) from 0 to 4294967295, -1 given
stranded: now in milliseconds: ValueError: $now must be a unix time in seconds (not milliseconds) from 0 to 4294967295, 1700000000000 given
age a string: TypeError
no age: ArgumentCountError
wakeUp a string: TypeError
no server for a sweep: NrLlmConnectionException
names requeue_count
names tx_nrllm_agentrun
