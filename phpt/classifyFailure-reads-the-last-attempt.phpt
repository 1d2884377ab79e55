--TEST--
classifyFailure(): the last attempt may be an object; its error is the property that its own class declares, one that was added, or one of a parent class
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/provider.inc';
use Netresearch\NrLlm\Provider\Exception as P;

class PrivateAbove
{
    private mixed $error;

    public function __construct(mixed $error = null)
    {
        $this->error = $error;
    }
}
class Below extends PrivateAbove
{
}
#[AllowDynamicProperties]
class Redeclared extends PrivateAbove
{
    public mixed $error;
}
#[AllowDynamicProperties]
class Open extends PrivateAbove
{
}
class FarBelow extends Below
{
}
class ProtectedAttempt
{
    public function __construct(protected mixed $error)
    {
    }
}
class Promoted extends ProtectedAttempt
{
}
final class Asking
{
    public mixed $error = 1;

    public function __construct()
    {
        unset($this->error);
    }
    public function __get(string $name): mixed
    {
        echo "user code ran\n";
        return null;
    }
}
final class OfTheClass
{
    public static mixed $error;
}
$connection = new P\ProviderConnectionException('x');
$limit = new P\ProviderResponseException('x', 429);
OfTheClass::$error = $connection;
$redeclared = new Redeclared($connection);
$redeclared->error = $limit;
$unset = new Redeclared($connection);
unset($unset->error);
$added = new Open($connection);
$added->error = $limit;
$null = new Open($connection);
$null->error = null;
$reference = new stdClass();
$reference->error = &$limit;
$looked = (object) ['error' => $limit, 'configuration' => 'x'];
foreach ($looked as $value);
$attempts = [
    'stdClass' => (object) ['error' => $connection],
    'a reference' => $reference,
    'looked through' => $looked,
    'private' => new PrivateAbove($connection),
    'private above' => new Below($connection),
    'private far above' => new FarBelow($connection),
    'redeclared' => $redeclared,
    'redeclared, not set' => new Redeclared($connection),
    'redeclared, unset' => $unset,
    'added beside a private one above' => $added,
    'null added beside it' => $null,
    'nothing added beside it' => new Open($connection),
    'protected' => new ProtectedAttempt($connection),
    'protected above' => new Promoted($connection),
    'anonymous' => new class ($connection) extends ProtectedAttempt {
    },
    'private of an anonymous one' => new class ($connection) {
        public function __construct(private mixed $error)
        {
        }
    },
    'unset, with __get()' => new Asking(),
    'static' => new OfTheClass(),
    'none' => new stdClass(),
    'an array in an object' => new ArrayObject(['error' => $connection]),
];
foreach ($attempts as $label => $attempt) {
    echo $label, ': ', NrLlmRuntime::classifyFailure(new P\FallbackChainExhaustedException([$attempt])), "\n";
}
?>
--EXPECT--
stdClass: connection
a reference: rateLimit
looked through: rateLimit
private: connection
private above: connection
private far above: connection
redeclared: rateLimit
redeclared, not set: unknown
redeclared, unset: unknown
added beside a private one above: rateLimit
null added beside it: unknown
nothing added beside it: connection
protected: connection
protected above: connection
anonymous: connection
private of an anonymous one: connection
unset, with __get(): unknown
static: unknown
none: unknown
an array in an object: unknown
