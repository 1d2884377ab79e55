--TEST--
interruptOnLoss: a loss interrupts busy code within 0.5 s, wherever it runs, and once
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
final class Busy
{
    public function __destruct()
    {
        while (true) {
        }
    }
}
function endless(): iterable
{
    for ($i = 0; ; $i++) {
        yield $i;
    }
}
function deep(int $n): void
{
    $n === 0 ? deep(50) : deep_again($n - 1);
}
function deep_again(int $n): void
{
    if ($n > 0) {
        deep_again($n - 1);
        return;
    }
    while (true) {
        strlen('a native call');
    }
}
$db = new TestDb();
$runtime = $db->runtime();
$thief = thief($db);
$places = [
    'busy loop' => static function (): void {
        while (true) {
        }
    },
    'loop with arithmetic' => static function (): void {
        for ($i = 0, $x = 1.5; ; $i++) {
            $x = $x * 1.0000001 + $i % 7;
        }
    },
    'loop of native calls' => static function (): void {
        while (true) {
            hash('sha256', 'x');
        }
    },
    'deep in calls' => static fn () => deep(20),
    'generator' => static function (): void {
        foreach (endless() as $i) {
        }
    },
    'callback of a native function' => static function (): void {
        usort_forever();
    },
    'fiber' => static function (): void {
        $fiber = new Fiber(static function (): void {
            try {
                Fiber::suspend(1);
                while (true) {
                }
            } finally {
                echo '  finally in the fiber', "\n";
            }
        });
        $fiber->start();
        $fiber->resume();
    },
    'destructor' => static function (): void {
        $busy = new Busy();
        unset($busy);
    },
    'exception handler' => static function (): void {
        try {
            throw new LogicException('first');
        } catch (LogicException) {
            while (true) {
            }
        }
    },
    'output buffer' => static function (): void {
        ob_start(static function (string $text): string {
            return $text;
        });
        try {
            while (true) {
            }
        } finally {
            ob_end_clean();
        }
    },
];
function usort_forever(): void
{
    array_map(static function (int $n): int {
        while (true) {
        }
    }, [1]);
}
foreach ($places as $label => $place) {
    $how = $lease = null;
    $when = in_time(500 * SLOW, static function () use ($db, $runtime, $thief, $place, &$how, &$lease): float {
        $uid = $db->running(time() + 100);
        $lease = $runtime->keepLease($uid, 'worker:a', 2 * SLOW, ['everyMs' => 100 * SLOW, 'interruptOnLoss' => true]);
        $finally = false;
        $thief->say((string) $uid);
        try {
            try {
                $place();
            } finally {
                $finally = true;
            }
        } catch (NrLlmLeaseLostException $error) {
            $took = ms() - (float) $thief->hear();
            $source = file(__FILE__)[$error->getLine() - 1];
            $how = sprintf('%s, %s, line %s, %s', $finally ? 'finally ran' : 'no finally', $error->getFile() === __FILE__ ? 'this file' : $error->getFile(),
                preg_match('/while|for|strlen|hash|\}|yield|\$x/', $source) ? 'of the loop' : trim($source), $lease->state());
            check($error->getMessage() === "the lease of 'worker:a' on run $uid is lost: the run is back on the queue", $error->getMessage());
        }
        return $took;
    });
    echo "$label: $how, $when\n";
    // Once: the code that continues is not interrupted again.
    for ($end = ms() + 150; ms() < $end;);
    thrown_class('  step', $lease->step(...));
}
$thief->say('end');
$thief->end();
?>
--EXPECTF--
busy loop: finally ran, this file, line of the loop, lost, in time
  step: NrLlmLeaseLostException
loop with arithmetic: finally ran, this file, line of the loop, lost, in time
  step: NrLlmLeaseLostException
loop of native calls: finally ran, this file, line of the loop, lost, in time
  step: NrLlmLeaseLostException
deep in calls: finally ran, this file, line of the loop, lost, in time
  step: NrLlmLeaseLostException
generator: finally ran, this file, line of the loop, lost, in time
  step: NrLlmLeaseLostException
callback of a native function: finally ran, this file, line of the loop, lost, in time
  step: NrLlmLeaseLostException
  finally in the fiber
fiber: finally ran, this file, line of the loop, lost, in time
  step: NrLlmLeaseLostException
destructor: finally ran, this file, line of the loop, lost, in time
  step: NrLlmLeaseLostException
exception handler: finally ran, this file, line of the loop, lost, in time
  step: NrLlmLeaseLostException
output buffer: finally ran, this file, line of the loop, lost, in time
  step: NrLlmLeaseLostException
