--TEST--
phpinfo() and php --ri tell the version, the features, TLS and the threads
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
(new ReflectionExtension('nrllm_runtime'))->info();
?>
--EXPECTF--

nrllm_runtime
%A
%s => %d.%d.%d%S
%A
