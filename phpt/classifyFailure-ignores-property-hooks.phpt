--TEST--
classifyFailure() runs no hook (PHP 8.4) of an attempt's $error: a virtual property has no value, a backed one is read as it is stored
--DESCRIPTION--
The engine gives such a property no slot but the offset 2^32 - 1: what lies there is no part of the object. An older PHP has no hooks: there a
class without the property, but with __get(), has to give the same answers.
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/provider.inc';
use Netresearch\NrLlm\Provider\Exception as P;

function user_code(): never
{
    echo "user code ran\n";
    exit(1);
}
$hooks = PHP_VERSION_ID >= 80400;
$classes = [
    'Alone' => ['', 'public ?Throwable $error { get => user_code(); }'],
    'BesideOthers' => ['', 'public int $a = 1; public mixed $error { get => user_code(); set { user_code(); } } private int $b = 2;'],
    'Above' => ['', 'protected mixed $error { get => user_code(); }'],
    'Below' => ['extends Above', 'public int $c = 3;'],
];
foreach ($classes as $name => [$extends, $body]) {
    eval("class $name $extends { " . ($hooks ? $body : 'public function __get(string $name): mixed { user_code(); }') . ' }');
    echo $name, ': ', NrLlmRuntime::classifyFailure(new P\FallbackChainExhaustedException([new $name()])), "\n";
}
// A property with a hook and a value has the value in its slot: that is read, as for any property,
// and the hook is not run.
eval('class Backed { public mixed $error' . ($hooks ? ' { get => user_code() ?? $this->error; set => $value; }' : ';') . ' }');
$attempt = new Backed();
$attempt->error = new P\ProviderConnectionException('x');
echo 'Backed: ', NrLlmRuntime::classifyFailure(new P\FallbackChainExhaustedException([$attempt])), "\n";
// The operation that writes reads the property in the same way.
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
$uid = $db->running(time() + 100);
echo 'recovered: ', $db->runtime()->recoverFailure($uid, 'worker:a', new P\FallbackChainExhaustedException([new Alone()]))->failure(), "\n";
?>
--EXPECT--
Alone: unknown
BesideOthers: unknown
Above: unknown
Below: unknown
Backed: connection
recovered: unknown
