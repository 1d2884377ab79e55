--TEST--
interruptOnLoss: a loss during classification is thrown when that returns, and does not change the result for another run
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
require __DIR__ . '/inc/provider.inc';
use Netresearch\NrLlm\Provider\Exception as P;

/** Returns its attempts after the lease was lost and some more code has run. */
class Slow extends P\FallbackChainExhaustedException
{
    public static Closure $until;

    public function getAttemptErrors(): array
    {
        check(until(self::$until), 'the loss');
        for ($i = 0; $i < 100000; $i++);
        echo "  reported\n";
        return [['error' => new P\ProviderConnectionException('x')]];
    }
}
/**
 * The same in a hook of the code. An older PHP than 8.4 has no hooks: there it is a chain as above.
 */
eval(PHP_VERSION_ID >= 80400
    ? 'class SlowCode extends ' . P\ProviderResponseException::class . ' { public $code { get { (new Slow([]))->getAttemptErrors(); return 503; } } }'
    : 'class SlowCode extends Slow { public function __construct() { parent::__construct([]); } }');
/** Catches every exception. */
final class Greedy extends P\FallbackChainExhaustedException
{
    public function getAttemptErrors(): array
    {
        try {
            return (new Slow([]))->getAttemptErrors();
        } catch (Throwable $error) {
            echo '  caught ', $error::class, "\n";
            throw $error;
        }
    }
}
$db = new TestDb();
$runtime = $db->runtime();
$other = 0;
$calls = [
    'classifyFailure' => static fn () => NrLlmRuntime::classifyFailure(new Slow([])),
    'greedy' => static fn () => NrLlmRuntime::classifyFailure(new Greedy([])),
    'in a chain' => static fn () => NrLlmRuntime::classifyFailure(new P\FallbackChainExhaustedException([['error' => new Slow([])]])),
    'in a fiber' => static fn () => (new Fiber(static fn () => NrLlmRuntime::classifyFailure(new Slow([]))))->start(),
    'in a hook' => static fn () => NrLlmRuntime::classifyFailure(new SlowCode()),
    'recoverFailure' => static function () use ($runtime, &$other): void { $runtime->recoverFailure($other, 'worker:a', new Slow([])); },
];
foreach ($calls as $label => $call) {
    $uid = $db->running(time() + 100);
    $other = $db->running(time() + 100);
    $lease = $runtime->keepLease($uid, 'worker:a', 20 * SLOW, ['everyMs' => 100 * SLOW, 'interruptOnLoss' => true]);
    // Requeued during the call and not before, so that the loss is noticed in it.
    Slow::$until = static function () use ($db, $lease, $uid): bool {
        $db->query("UPDATE tx_nrllm_agentrun SET claimed_by = 'worker:b' WHERE uid = ?", [$uid]);
        return $lease->state() === 'lost';
    };
    echo "$label\n";
    thrown_class('  thrown', $call);
    thrown_class('  once', static function (): void {
        for ($end = ms() + 150; ms() < $end;);
    });
    $lease->release();
}
echo $db->line($other, 'status', 'requeue_count'), "\n";
// A release during the classification cancels the interrupt, as everywhere.
$uid = $db->running(time() + 100);
$lease = $runtime->keepLease($uid, 'worker:a', 20 * SLOW, ['everyMs' => 100 * SLOW, 'interruptOnLoss' => true]);
Slow::$until = static function () use ($db, $lease, $uid): bool {
    $db->query("UPDATE tx_nrllm_agentrun SET claimed_by = 'worker:b' WHERE uid = ?", [$uid]);
    return $lease->state() === 'lost' && $lease->release() === null;
};
$failure = NrLlmRuntime::classifyFailure(new Slow([]));
echo "released: $failure\n";
// An exception of user code during the classification is dropped: classification never throws.
final class Throwing extends P\FallbackChainExhaustedException
{
    public function getAttemptErrors(): array
    {
        throw new LogicException('from getAttemptErrors');
    }
}
echo 'throwing: ', NrLlmRuntime::classifyFailure(new Throwing([])), "\n";
?>
--EXPECT--
classifyFailure
  reported
  thrown: NrLlmLeaseLostException
  once: nothing thrown
greedy
  reported
  thrown: NrLlmLeaseLostException
  once: nothing thrown
in a chain
  reported
  thrown: NrLlmLeaseLostException
  once: nothing thrown
in a fiber
  reported
  thrown: NrLlmLeaseLostException
  once: nothing thrown
in a hook
  reported
  thrown: NrLlmLeaseLostException
  once: nothing thrown
recoverFailure
  reported
  thrown: NrLlmLeaseLostException
  once: nothing thrown
status='queued' requeue_count='1'
  reported
released: connection
throwing: unknown
