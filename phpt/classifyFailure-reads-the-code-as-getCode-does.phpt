--TEST--
classifyFailure() reads the code as getCode() returns it, also where a get hook of $code (PHP 8.4) computes it
--DESCRIPTION--
An older PHP has no hooks: there the classes hold the value, or none, that the hook returns, and have to give the same answers.
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/provider.inc';
use Netresearch\NrLlm\Provider\Exception as P;

$hooks = PHP_VERSION_ID >= 80400;
$response = P\ProviderResponseException::class;
/** A class whose $code has the hooks; without hooks one that holds the value. */
function response(string $name, string $declaration, mixed $value, string $extends = P\ProviderResponseException::class): P\ProviderResponseException
{
    global $hooks;
    eval("class $name extends $extends { " . ($hooks ? $declaration : 'public function __construct() { parent::__construct("x"); $this->code = ' . var_export($value, true) . '; }') . ' }');

    return new $name('x', $hooks ? 503 : 0);
}
$responses = [
    'virtual' => response('Virtual', 'public $code { get => 429; }', 429),
    'virtual, protected' => response('Hidden', 'protected $code { get { return 401; } }', 401),
    'backed' => response('Backed', 'protected $code { get => $this->code - 100; }', 403),
    'backed, by reference' => response('Referred', 'private array $all = [404]; protected $code { &get { $code = &$this->all[0]; return $code; } }', 404),
    'inherited' => response('Inherited', '', 429, 'Virtual'),
    'overridden' => response('Overridden', 'public $code { get => parent::$code::get() + 71; }', 500, 'Virtual'),
    'set only, backed' => response('Assigned', 'protected $code { set => $value; }', 503),
    'set only, virtual' => response('WriteOnly', 'protected $code { set { } }', null),
    'redeclared without a hook' => response('Redeclared', 'protected $code = 499;', 503),
    'no int' => response('Text', 'public $code { get => "429"; }', '429'),
    'throws' => response('Throwing', 'public $code { get => throw new LogicException("from the hook"); }', null),
];
foreach ($responses as $label => $response) {
    $failure = NrLlmRuntime::classifyFailure($response);
    echo $label, ': ', $failure, ' ', json_encode($failure->httpStatus()), "\n";
    // Once more where an exhausted chain leads to it.
    check_same($failure, NrLlmRuntime::classifyFailure(new P\FallbackChainExhaustedException([['error' => $response]])), $label);
}
function check_same(NrLlmFailure $failure, NrLlmFailure $other, string $label): void
{
    if ($failure->failureClass() !== $other->failureClass() || $failure->httpStatus() !== $other->httpStatus()) {
        echo "FAILED: $label in a chain: $other\n";
    }
}
// Previous exceptions are not read, with or without a hook.
echo 'previous: ', NrLlmRuntime::classifyFailure(new P\ProviderResponseException('x', 0, $responses['virtual'])), "\n";
// Other types are not asked for their code.
eval('class Connection extends ' . P\ProviderConnectionException::class . ' { ' . ($hooks ? 'public $code { get => exit("the hook ran\n"); }' : '') . ' }');
echo 'another type: ', NrLlmRuntime::classifyFailure(new Connection('x')), "\n";
// An unset property has no hook: getCode() would call __get().
class UnsetCode extends P\ProviderResponseException
{
    protected $code = 429;
    public function __construct()
    {
        unset($this->code);
    }
    public function __get(string $name): mixed
    {
        exit("__get() ran\n");
    }
}
echo 'unset: ', NrLlmRuntime::classifyFailure(new UnsetCode()), "\n";
// What the hook sees is asked once per classification, and the path that writes goes the same way.
final class Count
{
    public static int $calls = 0;
}
$counting = response('Counting', 'public $code { get { Count::$calls++; return 503; } }', 503);
NrLlmRuntime::classifyFailure($counting);
echo 'calls: ', $hooks ? Count::$calls : 1, "\n";
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
foreach (['virtual', 'throws'] as $label) {
    $uid = $db->running(time() + 100);
    echo 'recovered: ', $db->runtime()->recoverFailure($uid, 'worker:a', $responses[$label])->failure(), ', ', $db->line($uid, 'status', 'termination_reason'), "\n";
}
// exit() ends the script: nothing is written for the run.
$uid = $db->running(time() + 100);
eval('class Exiting extends ' . P\ProviderResponseException::class . ' { ' . ($hooks ? 'public $code { get => exit; }' : '') . ' }');
$db->fork(static function () use ($db, $uid, $hooks): int {
    $hooks && $db->runtime()->recoverFailure($uid, 'worker:a', new Exiting('x'));
    echo $hooks ? "FAILED: exit() was ignored\n" : '';
    return 0;
});
echo 'exit: ', $db->line($uid, 'status'), "\n";
?>
--EXPECT--
virtual: rateLimit 429
virtual, protected: auth 401
backed: auth 403
backed, by reference: clientError 404
inherited: rateLimit 429
overridden: serverError 500
set only, backed: serverError 503
set only, virtual: unknown null
redeclared without a hook: serverError 503
no int: unknown null
throws: unknown null
previous: unknown
another type: connection
unset: unknown
calls: 1
recovered: rateLimit, status='queued' termination_reason=''
recovered: unknown, status='failed' termination_reason='not_retryable'
exit: status='running'
