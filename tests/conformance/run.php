<?php

/**
 * One set of cases for both bindings: the extension, and the FFI bridge. Each case prints one line:
 * values with their types, exceptions with class, code, message, their line and the calls of their
 * trace, and rows of the table. bin/suites/51-conformance runs this with each binding and compares
 * the output with expected/, which is the contract.
 *
 *   php run.php [NAME…]     all files of cases/, or those named
 */

declare(strict_types=1);

require __DIR__ . '/../../phpt/inc/provider.inc';
require __DIR__ . '/../../phpt/inc/db.inc';

/** Replaces what differs between runs and machines, and not between the bindings. */
function same_everywhere(string $text): string
{
    return strtr($text, $GLOBALS['replacements']);
}

/** Returns a value as a caller sees it, with its type, without PHP's serialisation of objects. */
function shown(mixed $value): string
{
    return match (true) {
        is_array($value) => '[' . implode(', ', array_map(
            static fn (int|string $key): string => (array_is_list($value) ? '' : $key . ': ') . shown($value[$key]),
            array_keys($value),
        )) . ']',
        is_object($value) => $value::class . (method_exists($value, 'jsonSerialize') ? ' ' . shown($value->jsonSerialize()) : ''),
        is_string($value) => "'" . addcslashes($value, "\0..\37'\\\177..\377") . "'",
        default => var_export($value, true),
    };
}

/** Prints what a call returns or throws. */
function show(string $name, callable $call): mixed
{
    try {
        $result = $call();
        echo same_everywhere("$name: " . shown($result)), "\n";

        return $result;
    } catch (Throwable $error) {
        if ($error instanceof TypeError && !str_starts_with($error->getMessage(), '$')) {
            // PHP's own words: for a function in PHP the place of the call follows, and from 8.3 on
            // true and false have names of their own.
            $message = preg_replace(['/, called in .*/s', '/\b(true|false) given/'], ['', 'bool given'], $error->getMessage());
            echo "$name: ", $error::class, $error instanceof ArgumentCountError ? '' : " $message", "\n";

            return $error;
        }
        $frame = $error->getTrace()[0];
        echo same_everywhere(sprintf('%s: %s(%d) %s, %s calls %s%s%s', $name, $error::class, $error->getCode(), addcslashes($error->getMessage(), "\0..\37"),
            basename($error->getFile()), $frame['class'] ?? '', $frame['type'] ?? '', $frame['function'])), "\n";

        return $error;
    }
}

/** Prints columns of a row. */
function row(TestDb $db, int $uid, string ...$columns): void
{
    echo '    ', $db->line($uid, ...($columns ?: ['status', 'claimed_by', 'lease_expires', 'requeue_count', 'pending_effect', 'termination_reason', 'error_class', 'queued_request'])), "\n";
}

/** A database for a file of cases. */
function database(array $options = []): TestDb
{
    $db = new TestDb($options);
    $GLOBALS['replacements'][$db->name] = '<database>';

    return $db;
}

$replacements = [
    (string) getenv('NRLLM_TEST_SOCKET') => '<socket>',
    '127.0.0.1:' . getenv('NRLLM_TEST_PORT') => '<address>',
];
foreach (array_slice($argv, 1) ?: array_map(static fn (string $file): string => basename($file, '.php'), glob(__DIR__ . '/cases/*.php')) as $file) {
    echo "== $file\n";
    (static function () use ($file): void {
        require __DIR__ . "/cases/$file.php";
    })();
}
