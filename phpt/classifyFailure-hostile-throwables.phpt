--TEST--
classifyFailure() never autoloads, never throws, runs no user code but getAttemptErrors(), and follows deep and cyclic chains without recursion
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
$loaded = [];
spl_autoload_register(static function (string $class) use (&$loaded): void {
    $loaded[] = $class;
});
// None of nr_llm's classes is loaded: no type matches, and none is autoloaded.
final class Loud extends Exception
{
    public function __toString(): string
    {
        echo "user code ran\n";
        return 'x';
    }
    public function __get(string $name): mixed
    {
        echo "user code ran\n";
        return null;
    }
    public function __call(string $name, array $arguments): mixed
    {
        echo "user code ran\n";
        return null;
    }
}
echo NrLlmRuntime::classifyFailure(new Loud()), ' ', count($loaded), "\n";
require __DIR__ . '/inc/provider.inc';
use Netresearch\NrLlm\Provider\Exception as P;

class OddCode extends P\ProviderResponseException
{
    public function __construct(mixed $code)
    {
        parent::__construct('x');
        $this->code = $code;
    }
}
foreach (['429', 429.0, null, [429], new stdClass(), true] as $code) {
    echo get_debug_type($code), ' as the code: ', NrLlmRuntime::classifyFailure(new OddCode($code)), "\n";
}
class UnsetCode extends P\ProviderResponseException
{
    public function __construct()
    {
        unset($this->code);
    }
}
echo 'no code at all: ', NrLlmRuntime::classifyFailure(new UnsetCode()), "\n";
class Throwing extends P\FallbackChainExhaustedException
{
    public function getAttemptErrors(): array
    {
        throw new LogicException('from getAttemptErrors');
    }
}
echo 'getAttemptErrors throws: ', NrLlmRuntime::classifyFailure(new Throwing([])), "\n";
class Counting extends P\FallbackChainExhaustedException
{
    public static int $calls = 0;
    public function getAttemptErrors(): array
    {
        self::$calls++;
        return [['error' => $this]];
    }
}
echo 'a cycle: ', NrLlmRuntime::classifyFailure(new Counting([])), ', ended ', Counting::$calls <= 100001 ? 'in time' : 'too late: ' . Counting::$calls, "\n";
$chain = new P\ProviderResponseException('deep', 429);
for ($i = 0; $i < 50000; $i++) {
    $chain = new P\FallbackChainExhaustedException([['error' => $chain]]);
}
echo '50 000 deep: ', NrLlmRuntime::classifyFailure($chain), "\n";
// PHP frees such a chain by recursion of its own: it is dismantled here, so that only the
// classification is tested.
$parts = [];
$attempts = new ReflectionProperty(P\FallbackChainExhaustedException::class, 'attempts');
while ($chain instanceof P\FallbackChainExhaustedException) {
    $parts[] = $chain;
    $chain = $attempts->getValue($chain)[0]['error'];
}
// From the outermost: each has no other reference, and refers to one that is still in the list.
foreach (array_keys($parts) as $i) {
    unset($parts[$i]);
}
echo count($loaded), " classes asked for\n";
$anonymous = new class ('x') extends P\ProviderConnectionException {
};
$failure = NrLlmRuntime::classifyFailure($anonymous);
var_dump($failure->failureClass(), $failure->errorClass(), str_contains($failure->errorClass(), "\0"), str_contains($failure->errorClass(), __DIR__));
?>
--EXPECTF--
unknown 0
string as the code: unknown
float as the code: unknown
null as the code: unknown
array as the code: unknown
stdClass as the code: unknown
bool as the code: unknown
no code at all: unknown
getAttemptErrors throws: unknown
a cycle: unknown, ended in time
50 000 deep: rateLimit
0 classes asked for
string(10) "connection"
string(%d) "Netresearch\NrLlm\Provider\Exception\ProviderConnectionException@anonymous"
bool(false)
bool(false)
