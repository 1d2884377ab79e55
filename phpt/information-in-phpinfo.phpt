--TEST--
phpinfo() and php --ri show the version, the features, TLS and the threads
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
ob_start();
(new ReflectionExtension('nrllm_runtime'))->info();
$lines = explode("\n", trim(ob_get_clean()));
echo array_shift($lines), "\n";
$reported = [];
foreach (array_filter($lines) as $line) {
    [$name, $value] = explode(' => ', $line, 2);
    $reported[$name] = $value;
}
echo implode("\n", array_keys($reported)), "\n";
var_dump($reported['Version'] === NrLlmRuntime::VERSION, str_contains($reported['Features'], 'php'), str_contains($reported['TLS'], 'rustls'), $reported['Threads'] !== '');
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
