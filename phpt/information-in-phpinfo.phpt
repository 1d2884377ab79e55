--TEST--
phpinfo() and php --ri tell the version, the features, TLS and the threads
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
ob_start();
(new ReflectionExtension('nrllm_runtime'))->info();
$lines = explode("\n", trim(ob_get_clean()));
echo array_shift($lines), "\n";
$told = [];
foreach (array_filter($lines) as $line) {
    [$name, $value] = explode(' => ', $line, 2);
    $told[$name] = $value;
}
echo implode("\n", array_keys($told)), "\n";
var_dump($told['Version'] === NrLlmRuntime::VERSION, str_contains($told['Features'], 'php'), str_contains($told['TLS'], 'rustls'), $told['Threads'] !== '');
?>
--EXPECTF--
nrllm_runtime
NrLlmRuntime
Version
Features
%ATLS
Threads
Thread safety
bool(true)
bool(true)
bool(true)
bool(true)
