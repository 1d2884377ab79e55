--TEST--
dueRuns() checks its arguments before any SQL, and names a missing column or table
--EXTENSIONS--
nrllm_runtime
mysqli
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$runtime = new NrLlmRuntime(['driver' => 'mysqli', 'host' => '127.0.0.1', 'port' => 1, 'user' => 'u', 'dbname' => 'd'], ['connectTimeoutMs' => 200]);
foreach ([
    'due: limit 0' => fn () => $runtime->dueRuns(0),
    'due: limit negative' => fn () => $runtime->dueRuns(-5),
    'due: now negative' => fn () => $runtime->dueRuns(5, -1),
    'due: now in milliseconds' => fn () => $runtime->dueRuns(5, 1700000000000),
] as $label => $call) {
    thrown($label, $call);
}
foreach ([
    'limit null' => fn () => $runtime->dueRuns(null),
    'now a float' => fn () => $runtime->dueRuns(5, 1.5),
    'no server' => fn () => $runtime->dueRuns(),
] as $label => $call) {
    thrown_class($label, $call);
}
foreach (['requeueCount' => false, 'create' => false] as $option => $value) {
    $db = new TestDb([$option => $value]);
    $word = $option === 'create' ? 'tx_nrllm_agentrun' : 'requeue_count';
    try {
        $db->runtime()->dueRuns();
    } catch (NrLlmConfigurationException $error) {
        echo str_contains($error->getMessage(), $word) ? "names $word" : $error->getMessage(), "\n";
    }
}
?>
--EXPECT--
due: limit 0: ValueError: $limit must be at least 1, 0 given
due: limit negative: ValueError: $limit must be at least 1, -5 given
due: now negative: ValueError: $now must be a unix time in seconds (not milliseconds) from 0 to 4294967295, -1 given
due: now in milliseconds: ValueError: $now must be a unix time in seconds (not milliseconds) from 0 to 4294967295, 1700000000000 given
limit null: TypeError
now a float: TypeError
no server: NrLlmConnectionException
names requeue_count
names tx_nrllm_agentrun
