--TEST--
strandedRuns(), dueRuns(): arguments are judged before any SQL; a missing column is named
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
    'due: limit 0' => fn () => $runtime->dueRuns(0),
    'due: limit negative' => fn () => $runtime->dueRuns(-5),
    'due: now negative' => fn () => $runtime->dueRuns(5, -1),
    'due: now in milliseconds' => fn () => $runtime->dueRuns(5, 1700000000000),
] as $label => $call) {
    thrown($label, $call);
}
foreach ([
    'age a string' => fn () => $runtime->strandedRuns('60'),
    'no age' => fn () => $runtime->strandedRuns(),
    'limit null' => fn () => $runtime->dueRuns(null),
    'now a float' => fn () => $runtime->dueRuns(5, 1.5),
    'wakeUp a string' => fn () => $runtime->strandedRuns(60, 5, null, 'default'),
    'no server' => fn () => $runtime->dueRuns(),
    'no server for a sweep' => fn () => $runtime->strandedRuns(60),
] as $label => $call) {
    thrown_class($label, $call);
}
foreach (['requeueCount' => false, 'create' => false] as $option => $value) {
    $db = new TestDb([$option => $value]);
    $word = $option === 'create' ? 'tx_nrllm_agentrun' : 'requeue_count';
    foreach (['strandedRuns' => [60], 'dueRuns' => []] as $method => $arguments) {
        try {
            $db->runtime()->$method(...$arguments);
        } catch (NrLlmConfigurationException $error) {
            echo $method, ': ', str_contains($error->getMessage(), $word) ? "names $word" : $error->getMessage(), "\n";
        }
    }
}
?>
--EXPECT--
age negative: ValueError: $olderThanSeconds must be a number of seconds from 0 to 4294967295, -1 given
age in milliseconds: ValueError: $olderThanSeconds must be a number of seconds from 0 to 4294967295, 1700000000000 given
stranded: limit 0: ValueError: $limit must be at least 1, 0 given
stranded: now negative: ValueError: $now must be a unix time in seconds (not milliseconds) from 0 to 4294967295, -1 given
stranded: now in milliseconds: ValueError: $now must be a unix time in seconds (not milliseconds) from 0 to 4294967295, 1700000000000 given
due: limit 0: ValueError: $limit must be at least 1, 0 given
due: limit negative: ValueError: $limit must be at least 1, -5 given
due: now negative: ValueError: $now must be a unix time in seconds (not milliseconds) from 0 to 4294967295, -1 given
due: now in milliseconds: ValueError: $now must be a unix time in seconds (not milliseconds) from 0 to 4294967295, 1700000000000 given
age a string: TypeError
no age: ArgumentCountError
limit null: TypeError
now a float: TypeError
wakeUp a string: TypeError
no server: NrLlmConnectionException
no server for a sweep: NrLlmConnectionException
strandedRuns: names requeue_count
dueRuns: names requeue_count
strandedRuns: names tx_nrllm_agentrun
dueRuns: names tx_nrllm_agentrun
