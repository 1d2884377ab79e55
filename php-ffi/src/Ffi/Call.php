<?php

declare(strict_types=1);

namespace NrLlmRuntime\Ffi;

use FFI;
use FFI\CData;
use FFI\CType;

/**
 * A call of the library, with memory for the result and for the error, which is thrown as an
 * exception. The memory is allocated for each call: a signal handler may run between two lines of
 * this file and make its own call. The handler may also throw; where it does so between FFI::addr()
 * and a call that takes its result as an argument, PHP 8.2 crashes. Therefore no call of FFI is an
 * argument of another call.
 *
 * @internal
 */
final class Call
{
    /** The statuses of nrllm_runtime.h as exceptions; any other is NrLlmException. */
    private const EXCEPTIONS = [
        1 => \ValueError::class,
        2 => \NrLlmConfigurationException::class,
        3 => \NrLlmConnectionException::class,
        4 => \NrLlmQueryException::class,
        5 => \NrLlmLeaseLostException::class,
        6 => \NrLlmRunCancelledException::class,
        8 => \TypeError::class,
    ];

    /**
     * The types of that memory, by name. They exist as long as the library is loaded: a pointer
     * refers to its type, and a pointer that remains in the trace of an exception (of a signal
     * handler, for example) would refer to freed memory.
     *
     * @var array<string, CType>
     */
    private static array $types = [];

    /** Calls a function that returns true or false. */
    public static function flag(string $function, #[\SensitiveParameter] mixed ...$arguments): bool
    {
        $ffi = Library::ffi();
        $answer = self::place($ffi, 'bool');
        $place = FFI::addr($answer);
        self::run($ffi, $function, $arguments, $place);

        return $answer->cdata;
    }

    /** Calls a function that returns an integer. */
    public static function integer(string $function, #[\SensitiveParameter] mixed ...$arguments): int
    {
        $ffi = Library::ffi();
        $answer = self::place($ffi, 'int64_t');
        $place = FFI::addr($answer);
        self::run($ffi, $function, $arguments, $place);

        return $answer->cdata;
    }

    /** Calls a function that returns a text. */
    public static function text(string $function, #[\SensitiveParameter] mixed ...$arguments): ?string
    {
        $ffi = Library::ffi();
        $answer = self::place($ffi, 'char *');
        $place = FFI::addr($answer);
        self::run($ffi, $function, $arguments, $place);
        if (FFI::isNull($answer)) {
            return null;
        }
        $text = FFI::string($answer);
        $ffi->nrllm_string_free($answer);

        return $text;
    }

    /**
     * Calls a function that returns JSON.
     *
     * @return array<array-key, mixed>
     */
    public static function json(string $function, #[\SensitiveParameter] mixed ...$arguments): array
    {
        return json_decode((string)self::text($function, ...$arguments), true, 512, JSON_THROW_ON_ERROR);
    }

    /** Calls a function that returns a handle of the given type. */
    public static function handle(string $type, string $function, #[\SensitiveParameter] mixed ...$arguments): CData
    {
        $ffi = Library::ffi();
        $answer = self::place($ffi, "$type *");
        $place = FFI::addr($answer);
        self::run($ffi, $function, $arguments, $place);

        return $answer;
    }

    /** Calls a function without a result. */
    public static function action(string $function, mixed ...$arguments): void
    {
        self::run(Library::ffi(), $function, $arguments);
    }

    /** Returns an optional number as a pointer, or null. */
    public static function optional(?int $number): ?CData
    {
        if ($number === null) {
            return null;
        }
        $place = self::place(Library::ffi(), 'int64_t[1]');
        $place[0] = $number;

        return $place;
    }

    private static function place(FFI $ffi, string $type): CData
    {
        $known = self::$types[$type] ?? null;
        if ($known === null) {
            $known = $ffi->type($type);
            self::$types[$type] = $known;
        }

        return $ffi->new($known);
    }

    private static function run(FFI $ffi, string $function, #[\SensitiveParameter] array $arguments, #[\SensitiveParameter] CData ...$answer): void
    {
        $error = self::place($ffi, 'NrllmError *');
        $place = FFI::addr($error);
        array_push($arguments, ...$answer);
        $arguments[] = $place;
        $status = $ffi->$function(...$arguments);
        Ending::called($ffi);
        if ($status !== 0) {
            $message = $ffi->nrllm_error_message($error);
            $code = $ffi->nrllm_error_code($error);
            $ffi->nrllm_error_free($error);
            $class = self::EXCEPTIONS[$status] ?? \NrLlmException::class;
            throw Caller::blame(new $class($message, $code));
        }
    }
}
