--TEST--
interruptOnLoss: at the end of a script a loss is thrown only where it is caught; no shutdown function is skipped
--EXTENSIONS--
nrllm_runtime
pcntl
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
final class Busy
{
    public function __destruct()
    {
        spin(30);
        echo "a destructor has run, nothing was thrown into it\n";
    }
}
function spin(float $milliseconds): void
{
    for ($end = ms() + $milliseconds; ms() < $end;) {
        strlen(str_repeat('x', 50));
    }
}
/** Until the loss is due, and some time more. */
function spin_past_the_loss(NrLlmLease $lease): void
{
    while ($lease->isHeld()) {
        spin(1);
    }
    spin(30);
}
/** Keeps a lease that is lost within 100 ms. */
function doomed(TestDb $db, bool $cancelled = false): NrLlmLease
{
    static $runtime;
    $uid = $db->running(time() + 100);
    $lease = ($runtime ??= $db->runtime())->keepLease($uid, 'worker:a', 20, ['everyMs' => 100, 'interruptOnLoss' => true]);
    $db->query($cancelled ? "UPDATE tx_nrllm_agentrun SET status = 'cancelled', claimed_by = '' WHERE uid = ?"
        : "UPDATE tx_nrllm_agentrun SET claimed_by = 'worker:b' WHERE uid = ?", [$uid]);
    return $lease;
}
// They run in the order in which they are registered: before the one that drops the database.
register_shutdown_function('time_nanosleep', 0, 300000000);
register_shutdown_function('array_map', 'strlen', array_fill(0, 1000, 'x'));
register_shutdown_function(static function () use (&$lease): void {
    spin_past_the_loss($lease);
    echo 'not thrown where nothing catches it: ', $lease->state(), "\n";
    try {
        spin(30);
    } catch (LogicException | NrLlmRunCancelledException | NrLlmQueryException) {
        echo "FAILED: caught as something else\n";
    } finally {
        echo "nor where others are caught\n";
    }
});
register_shutdown_function(static function () use (&$lease): void {
    try {
        try {
            spin(20000 * patience());
        } catch (NrLlmRunCancelledException) {
            echo "FAILED: caught as something else\n";
        } catch (InvalidArgumentException | NrLlmLeaseLostException $lost) {
            echo $lost::class, "\n";
        }
    } catch (Throwable) {
        echo "FAILED: thrown twice\n";
    }
    // Once.
    spin(30);
});
register_shutdown_function(static function () use (&$db): void {
    $cancelled = doomed($db, cancelled: true);
    try {
        spin_past_the_loss($cancelled);
    } catch (NrLlmLeaseLostException) {
        echo "FAILED: caught as something else\n";
    }
    try {
        spin(20000 * patience());
    } catch (NrLlmRunCancelledException $error) {
        echo $error::class, "\n";
    }
});
register_shutdown_function(static function () use (&$db): void {
    $lost = doomed($db);
    try {
        spin_past_the_loss($lost);
    } catch (NrLlmRunCancelledException) {
        echo "FAILED: caught as something else\n";
    }
    echo "the last shutdown function has run, the lease is {$lost->state()}\n";
});
$db = new TestDb();
$busy = new Busy();
$lease = doomed($db);
echo "the script has ended\n";
?>
--EXPECT--
the script has ended
not thrown where nothing catches it: lost
nor where others are caught
NrLlmLeaseLostException
NrLlmRunCancelledException
the last shutdown function has run, the lease is lost
a destructor has run, nothing was thrown into it
