<?php

/**
 * The test of the stub test: a stub with one mistake must be reported by name.
 *
 *   php -n -d extension=/path/to/libnrllm_runtime.so tests/package/stub-mutations.php
 *
 * Each case changes one place in a copy of php-stubs/ and names the difference that has to be
 * reported. Prints one line per case and closes with `N passed, N failed`.
 */

declare(strict_types=1);

require __DIR__ . '/interface.php';

$stubs = dirname(__DIR__, 2) . '/php-stubs';
$extension = describe_extension();

/**
 * name of the change => [file, the text, its replacement, the difference that has to be reported]
 */
$cases = [
    'a wrong default (a number)' => ['NrLlmRuntime', 'reap(int $limit = 50', 'reap(int $limit = 51', 'NrLlmRuntime::reap($limit) default'],
    'a wrong default (null)' => ['NrLlmRuntime', 'reap(int $limit = 50, ?int $now = null', 'reap(int $limit = 50, ?int $now = 0', 'NrLlmRuntime::reap($now) default'],
    'a wrong default (a constant)' => ['NrLlmRuntime', '$leaseSeconds = self::LEASE_SECONDS', '$leaseSeconds = self::MAX_REQUEUES', 'NrLlmRuntime::keepLease($leaseSeconds) default'],
    'a default that is missing' => ['NrLlmRuntime', 'array $options = []): NrLlmReapReport', 'array $options): NrLlmReapReport', 'NrLlmRuntime::reap($options) default'],
    'a default too many' => ['NrLlmRuntime', 'cancelRun(string $uuid)', "cancelRun(string \$uuid = '')", 'NrLlmRuntime::cancelRun($uuid) default'],
    'a missing method' => ['NrLlmFailure', 'public function httpStatus(): ?int', 'public function status(): ?int', 'NrLlmFailure::httpStatus()'],
    'a method too many' => ['NrLlmReapReport', 'Countable, JsonSerializable
{', 'Countable, JsonSerializable
{
    public function extra(): void {}', 'NrLlmReapReport::extra()'],
    'a wrong return type' => ['NrLlmRuntime', 'backoffMs(int $requeueCount): int', 'backoffMs(int $requeueCount): float', 'NrLlmRuntime::backoffMs() returns'],
    'a return type that is not nullable' => ['NrLlmFailure', 'httpStatus(): ?int', 'httpStatus(): int', 'NrLlmFailure::httpStatus() returns'],
    'a return type that is missing' => ['NrLlmRuntime', 'close(): void', 'close()', 'NrLlmRuntime::close() returns'],
    'a wrong parameter type' => ['NrLlmRuntime', 'identity(string $segment)', 'identity(int $segment)', 'NrLlmRuntime::identity($segment) type'],
    'a parameter of another name' => ['NrLlmRuntime', 'renewLease(int $runUid', 'renewLease(int $run', 'NrLlmRuntime::renewLease() parameters'],
    'parameters in another order' => ['NrLlmRuntime', 'requeue(int $runUid, string $claimedBy)', 'requeue(string $claimedBy, int $runUid)', 'NrLlmRuntime::requeue() parameters'],
    'a parameter by reference' => ['NrLlmRuntime', 'requeueStale(int $runUid', 'requeueStale(int &$runUid', 'NrLlmRuntime::requeueStale($runUid) passing'],
    'a method that is not static' => ['NrLlmRuntime', 'public static function classifyFailure', 'public function classifyFailure', 'NrLlmRuntime::classifyFailure()'],
    'a method that is not public' => ['NrLlmRecovery', 'public function wokenUp', 'protected function wokenUp', 'NrLlmRecovery::wokenUp()'],
    'a constant of another value' => ['NrLlmRuntime', 'REQUEUE_BACKOFF_CAP_MS = 600000', 'REQUEUE_BACKOFF_CAP_MS = 60000', 'NrLlmRuntime::REQUEUE_BACKOFF_CAP_MS'],
    'a constant of another name' => ['NrLlmFailure', 'const RATE_LIMIT', 'const RATELIMIT', 'NrLlmFailure::RATE_LIMIT'],
    'a class that is not final' => ['NrLlmReapReport', 'final class', 'class', 'NrLlmReapReport kind'],
    'a class that is abstract' => ['NrLlmException', 'class NrLlmException extends', 'abstract class NrLlmException extends', 'NrLlmException kind'],
    'an interface too few' => ['NrLlmReapReport', 'implements Countable, JsonSerializable', 'implements JsonSerializable', 'NrLlmReapReport interfaces'],
    'another parent' => ['NrLlmQueryException', 'extends NrLlmException', 'extends RuntimeException', 'NrLlmQueryException parent'],
    'a property' => ['NrLlmRecovery', 'final class NrLlmRecovery implements JsonSerializable
{', 'final class NrLlmRecovery implements JsonSerializable
{
public int $attempts = 0;', 'NrLlmRecovery::$attempts'],
    'the known difference, but another type than the known one' => ['NrLlmRuntime', 'array|string $connection', 'array $connection', 'NrLlmRuntime::__construct($connection) type'],
    'a missing class' => ['NrLlmRunCancelledException', 'class NrLlmRunCancelledException', 'class NrLlmCancelledException', 'NrLlmRunCancelledException kind'],
];

$passed = $failed = 0;
$verdict = static function (string $what, ?string $problem) use (&$passed, &$failed): void {
    $problem === null ? $passed++ : $failed++;
    echo $problem === null ? 'ok      ' : 'FAILED  ', $what, $problem === null ? '' : ": $problem", "\n";
};

$differences = interface_differences($extension, describe_stubs_apart($stubs));
$verdict('the stubs as they are', $differences === [] ? null : implode('; ', $differences));

foreach ($cases as $what => [$class, $old, $new, $fact]) {
    $copy = sys_get_temp_dir() . '/nrllm-stubs-' . bin2hex(random_bytes(8));
    mkdir($copy);
    foreach (glob("$stubs/*.php") as $file) {
        copy($file, $copy . '/' . basename($file));
    }
    $source = file_get_contents("$copy/$class.php");
    $problem = null;
    if (substr_count($source, $old) !== 1) {
        $problem = "the case is out of date: $class.php holds what it changes " . substr_count($source, $old) . ' times';
    } else {
        file_put_contents("$copy/$class.php", str_replace($old, $new, $source));
        $found = array_diff(interface_differences($extension, describe_stubs_apart($copy)), $differences);
        $named = array_filter($found, static fn (string $difference): bool => str_starts_with($difference, "$fact:"));
        if ($named === []) {
            $problem = "$fact was not reported" . ($found === [] ? '' : ', but ' . implode('; ', $found));
        }
    }
    array_map('unlink', glob("$copy/*"));
    rmdir($copy);
    $verdict($what, $problem);
}

// Conversely, whatever only the extension has is reported as well.
$described = describe_stubs_apart($stubs);
$missed = [];
foreach (array_keys($extension) as $fact) {
    if (isset(KNOWN_DIFFERENCES[$fact])) {
        continue;
    }
    $without = $described;
    unset($without[$fact]);
    if (count(interface_differences($extension, $without)) <= count($differences) && isset($described[$fact])) {
        $missed[] = $fact;
    }
}
$verdict(count($extension) . ' facts, each left out once', $missed === [] ? null : 'not reported: ' . implode(', ', $missed));

echo "$passed passed, $failed failed\n";
exit($failed === 0 ? 0 : 1);
