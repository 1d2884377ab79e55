--TEST--
recoverFailure(): the delay is the larger of the backoff and the failure's retryAfterSeconds, at most an hour; the property is read without user code
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/provider.inc';
require __DIR__ . '/inc/db.inc';
use Netresearch\NrLlm\Provider\Exception as P;

function user_code(): never
{
    echo "user code ran\n";
    exit(1);
}
class Open extends P\CircuitOpenException
{
    public function __construct(public readonly int $retryAfterSeconds)
    {
        parent::__construct('open');
    }
}
class Below extends Open
{
}
class Hidden extends P\CircuitOpenException
{
    private int $retryAfterSeconds = 77;
    public function __get(string $name): mixed
    {
        user_code();
    }
}
class BelowHidden extends Hidden
{
}
class Unset_ extends P\CircuitOpenException
{
    protected int $retryAfterSeconds;
    public function __get(string $name): mixed
    {
        user_code();
    }
}
class Text extends P\CircuitOpenException
{
    public string $retryAfterSeconds = '90';
}
class Shared extends P\CircuitOpenException
{
    public static int $retryAfterSeconds = 90;
}
class Magic extends P\CircuitOpenException
{
    public function __get(string $name): mixed
    {
        user_code();
    }
}
#[AllowDynamicProperties]
class Added extends P\CircuitOpenException
{
}
eval('class Virtual extends ' . P\CircuitOpenException::class . ' { ' . (PHP_VERSION_ID >= 80400 ? 'public int $retryAfterSeconds { get => user_code(); }' : '') . ' }');
$added = new Added();
$added->retryAfterSeconds = 90;
$chain = fn (mixed $error) => new P\FallbackChainExhaustedException([['configuration' => 'c', 'error' => $error]]);
$errors = [
    'longer than the backoff' => new Open(90), 'shorter' => new Open(5), 'zero' => new Open(0), 'negative' => new Open(-1), 'more than an hour' => new Open(86400),
    'as large as can be' => new Open(PHP_INT_MAX), 'inherited' => new Below(90), 'private' => new Hidden(), 'private, of the class above' => new BelowHidden(),
    'unset' => new Unset_(), 'text' => new Text(), 'static' => new Shared(), 'by __get()' => new Magic(), 'dynamic' => $added, 'virtual' => new Virtual(),
    'last attempt' => $chain(new Open(90)), 'none' => new P\CircuitOpenException('x'), 'not retryable' => new class(90) extends Exception {
        public function __construct(public int $retryAfterSeconds)
        {
        }
    },
];
$db = new TestDb();
$runtime = $db->runtime();
foreach ($errors as $label => $error) {
    $failure = NrLlmRuntime::classifyFailure($error);
    $recovery = $runtime->recoverFailure($db->running(2000000000), 'worker:a', $error);
    check($failure->jsonSerialize()['retryAfterSeconds'] === $failure->retryAfterSeconds(), $label);
    printf("%-28s %-11s asks for %-19s waits %s\n", $label, $failure, var_export($failure->retryAfterSeconds(), true), $recovery->delayMs() ?? '-');
}
?>
--EXPECT--
longer than the backoff      circuitOpen asks for 90                  waits 90000
shorter                      circuitOpen asks for 5                   waits 30000
zero                         circuitOpen asks for 0                   waits 30000
negative                     circuitOpen asks for NULL                waits 30000
more than an hour            circuitOpen asks for 86400               waits 3600000
as large as can be           circuitOpen asks for 9223372036854775807 waits 3600000
inherited                    circuitOpen asks for 90                  waits 90000
private                      circuitOpen asks for 77                  waits 77000
private, of the class above  circuitOpen asks for 77                  waits 77000
unset                        circuitOpen asks for NULL                waits 30000
text                         circuitOpen asks for NULL                waits 30000
static                       circuitOpen asks for NULL                waits 30000
by __get()                   circuitOpen asks for NULL                waits 30000
dynamic                      circuitOpen asks for NULL                waits 30000
virtual                      circuitOpen asks for NULL                waits 30000
last attempt                 circuitOpen asks for 90                  waits 90000
none                         circuitOpen asks for NULL                waits 30000
not retryable                unknown     asks for 90                  waits -
