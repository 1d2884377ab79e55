--TEST--
keepLease(): arguments and options are checked before any SQL; the class is final like the others
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
// No server listens there: a check that needed it would be a connection error.
$runtime = new NrLlmRuntime(['driver' => 'mysqli', 'host' => '127.0.0.1', 'port' => 1, 'user' => 'x', 'dbname' => 'x']);
$keep = static fn (mixed ...$arguments) => static fn () => $runtime->keepLease(...$arguments);
thrown('uid 0', $keep(0, 'w'));
thrown('blank owner', $keep(1, ' '));
thrown('long owner', $keep(1, str_repeat('x', 65)));
foreach ([1, 0, -1, PHP_INT_MAX, 4294967295] as $seconds) {
    thrown_class("lease $seconds", $keep(1, 'w', $seconds));
}
thrown('lease 1', $keep(1, 'w', 1));
$cases = [
    ['everyMs' => 99], ['everyMs' => 5001], ['everyMs' => '500'], ['everyMs' => 500.0], ['maxSilentSeconds' => 0], ['maxSilentSeconds' => null],
    ['maxSeconds' => -1], ['maxSeconds' => PHP_INT_MAX], ['interruptOnLoss' => 1], ['interruptOnLoss' => null], ['every' => 500], [500],
];
foreach ($cases as $options) {
    thrown(json_encode($options), $keep(1, 'w', 10, $options));
}
thrown_class('options null', $keep(1, 'w', 10, null));
thrown_class('lease of the wrong type', $keep(1, 'w', '10'));
foreach ([[], ['everyMs' => 100, 'maxSilentSeconds' => 1, 'maxSeconds' => 1, 'interruptOnLoss' => INTERRUPTS], ['everyMs' => 5000, 'interruptOnLoss' => false]] as $options) {
    thrown_class('right: ' . json_encode($options), $keep(1, 'w', 10, $options));
}
thrown_class('named', static fn () => $runtime->keepLease(runUid: 1, claimedBy: 'w', leaseSeconds: 10, options: []));
echo threads(), " thread\n";

$db = new TestDb();
$lease = $db->runtime()->keepLease($db->running(time() + 100), 'worker:a');
$class = new ReflectionClass($lease);
var_dump($class->isFinal(), $class->getProperties());
thrown_class('clone', static fn () => clone $lease);
thrown_class('serialize', static fn () => serialize($lease));
thrown_class('new', static fn () => $class->newInstance());
thrown_class('property', static function () use ($lease): void { $lease->x = 1; });
echo $lease->remainingMs() > 890000 ? 'LEASE_SECONDS' : $lease->remainingMs(), "\n";
?>
--EXPECTF--
uid 0: ValueError: $runUid must be at least 1, 0 given
blank owner: ValueError: %s
long owner: ValueError: %s
lease 1: ValueError
lease 0: ValueError
lease -1: ValueError
lease 9223372036854775807: ValueError
lease 4294967295: ValueError
lease 1: ValueError: $leaseSeconds must be a number of seconds from 2 to %d, 1 given
{"everyMs":99}: ValueError: $options['everyMs'] must be from 100 to 5000 (half the lease), 99 given
{"everyMs":5001}: ValueError: $options['everyMs'] must be from 100 to 5000 (half the lease), 5001 given
{"everyMs":"500"}: TypeError: $options['everyMs'] must be of type int, string given
{"everyMs":500}: TypeError: $options['everyMs'] must be of type int, float given
{"maxSilentSeconds":0}: ValueError: $options['maxSilentSeconds'] must be from 1 to 4294967295 (unlimited is not supported), 0 given
{"maxSilentSeconds":null}: TypeError: $options['maxSilentSeconds'] must be of type int, null given
{"maxSeconds":-1}: ValueError: $options['maxSeconds'] must be from 1 to 4294967295 (unlimited is not supported), -1 given
{"maxSeconds":9223372036854775807}: ValueError: $options['maxSeconds'] must be from 1 to 4294967295 (unlimited is not supported), 9223372036854775807 given
{"interruptOnLoss":1}: TypeError: $options['interruptOnLoss'] must be of type bool, int given
{"interruptOnLoss":null}: TypeError: $options['interruptOnLoss'] must be of type bool, null given
{"every":500}: ValueError: $options has the unknown key 'every'; its keys are everyMs, maxSilentSeconds, maxSeconds, interruptOnLoss
[500]: ValueError: $options has the unknown key '0'; its keys are everyMs, maxSilentSeconds, maxSeconds, interruptOnLoss
options null: TypeError
lease of the wrong type: TypeError
right: []: NrLlmConnectionException
right: {"everyMs":100,"maxSilentSeconds":1,"maxSeconds":1,"interruptOnLoss":%r(true|false)%r}: NrLlmConnectionException
right: {"everyMs":5000,"interruptOnLoss":false}: NrLlmConnectionException
named: NrLlmConnectionException
1 thread
bool(true)
array(0) {
}
clone: Error
serialize: Exception
new: Exception
property: Error
LEASE_SECONDS
