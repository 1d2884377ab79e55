--TEST--
The extension: its name, version, constants and classes
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
$extension = new ReflectionExtension('nrllm_runtime');
echo $extension->getName(), "\n";
var_dump($extension->getVersion() === NrLlmRuntime::VERSION, phpversion('nrllm_runtime') === NrLlmRuntime::VERSION);
var_dump(preg_match('/^version = "(.*)"$/m', file_get_contents(__DIR__ . '/../Cargo.toml'), $m), $m[1] === NrLlmRuntime::VERSION);
var_dump(NrLlmRuntime::LEASE_SECONDS, NrLlmRuntime::MAX_REQUEUES, NrLlmRuntime::REQUEUE_BACKOFF_MS, NrLlmRuntime::REQUEUE_BACKOFF_CAP_MS);
foreach ([NrLlmFailure::class, NrLlmRecovery::class] as $class) {
    foreach ((new ReflectionClass($class))->getConstants() as $name => $value) {
        echo "$class::$name = $value\n";
    }
}
$classes = array_keys($extension->getClasses());
sort($classes);
echo implode("\n", array_diff($classes, ['NrLlmLease'])), "\n";
var_dump($extension->getINIEntries(), array_keys($extension->getFunctions()));
?>
--EXPECT--
nrllm_runtime
bool(true)
bool(true)
int(1)
bool(true)
int(900)
int(3)
int(30000)
int(600000)
NrLlmFailure::CONNECTION = connection
NrLlmFailure::RATE_LIMIT = rateLimit
NrLlmFailure::AUTH = auth
NrLlmFailure::CONFIGURATION = configuration
NrLlmFailure::CLIENT_ERROR = clientError
NrLlmFailure::SERVER_ERROR = serverError
NrLlmFailure::CIRCUIT_OPEN = circuitOpen
NrLlmFailure::UNKNOWN = unknown
NrLlmRecovery::REQUEUED = requeued
NrLlmRecovery::DEAD_LETTERED = dead_lettered
NrLlmRecovery::LEASE_LOST = lease_lost
NrLlmConfigurationException
NrLlmConnectionException
NrLlmException
NrLlmFailure
NrLlmLeaseLostException
NrLlmQueryException
NrLlmReapReport
NrLlmRecovery
NrLlmRunCancelledException
NrLlmRuntime
array(0) {
}
array(0) {
}
