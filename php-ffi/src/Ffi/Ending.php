<?php

declare(strict_types=1);

namespace NrLlmRuntime\Ffi;

use FFI;

/**
 * The end of a request. The library is not told of it, and outside the command line its process goes on to the next request.
 *
 * Destructors and shutdown functions of the program may still settle runs, in an order that nobody knows. So from the moment the end
 * is seen, connections are closed after each call, and none is left open by the last one.
 *
 * @internal
 */
final class Ending
{
    private static bool $near = false;
    private static ?self $last = null;

    private function __construct(private readonly FFI $ffi) {}

    /** The library is loaded, once a request; twice where a signal handler that uses it came in between. */
    public static function begin(FFI $ffi): void
    {
        if (self::$last !== null) {
            return;
        }
        // What a request that ended without its destructors has left in this process.
        $ffi->nrllm_reset();
        self::$last ??= new self($ffi);
        // Registered from within a shutdown function, it runs behind those of the program.
        register_shutdown_function(static function () use ($ffi): void {
            register_shutdown_function(static fn() => self::finish($ffi));
        });
    }

    /** Whether the program is in its last shutdown function or in its destructors. */
    public static function isNear(): bool
    {
        return self::$near;
    }

    /** A call was made. */
    public static function called(FFI $ffi): void
    {
        if (self::$near) {
            $ffi->nrllm_close_all();
        }
    }

    private static function finish(FFI $ffi): void
    {
        self::$near = true;
        // After a fatal error no destructor runs; after an exception that nobody caught they do.
        $error = error_get_last();
        $fatal = $error !== null && ($error['type'] & (E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR)) !== 0
            && !str_starts_with($error['message'], 'Uncaught ');
        if ($fatal) {
            $ffi->nrllm_reset();
        } else {
            $ffi->nrllm_close_all();
        }
    }

    /** Where an exception in a shutdown function has kept those behind it from running, this is the sign of the end. */
    public function __destruct()
    {
        self::$near = true;
        $this->ffi->nrllm_close_all();
    }
}
