--TEST--
The version is one: the module's, the class constant's, and the crate's
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
$top = getenv('NRLLM_TOP') ?: dirname(__DIR__);
preg_match('/^version = "(.+)"$/m', file_get_contents("$top/Cargo.toml"), $crate);
var_dump(phpversion('nrllm_runtime') === $crate[1], NrLlmRuntime::VERSION === $crate[1], (new ReflectionExtension('nrllm_runtime'))->getVersion() === $crate[1]);
?>
--EXPECT--
bool(true)
bool(true)
bool(true)
