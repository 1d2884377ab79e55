<?php

declare(strict_types=1);

namespace NrLlmRuntime\Ffi;

use FFI;

/**
 * Detects the end of a request. The library is not notified of it, and outside the command line its
 * process continues with the next request.
 *
 * Destructors and shutdown functions of the program may still end runs, in an unspecified order.
 * Therefore, once the end is detected, connections are closed after each call, and the last call
 * leaves none open.
 *
 * @internal
 */
final class Ending
{
    private static bool $near = false;
    private static ?self $last = null;

    private function __construct(private readonly FFI $ffi) {}

    /**
     * Called when the library is loaded, once per request; twice where a signal handler that uses
     * it runs in between.
     */
    public static function begin(FFI $ffi): void
    {
        if (self::$last !== null) {
            return;
        }
        // Removes what a request that ended without its destructors has left in this process.
        $ffi->nrllm_reset();
        self::$last ??= new self($ffi);
        // Registered from within a shutdown function, it runs behind those of the program.
        register_shutdown_function(static function () use ($ffi): void {
            register_shutdown_function(static fn() => self::finish($ffi));
        });
    }

    /** Returns whether the program is in its last shutdown function or in its destructors. */
    public static function isNear(): bool
    {
        return self::$near;
    }

    /** Called after each call of the library. */
    public static function called(FFI $ffi): void
    {
        if (self::$near) {
            $ffi->nrllm_close_all();
        }
    }

    private static function finish(FFI $ffi): void
    {
        self::$near = true;
        // After a fatal error no destructor runs; after an uncaught exception destructors do run.
        $error = error_get_last();
        $fatal = $error !== null && ($error['type'] & (E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR)) !== 0
            && !str_starts_with($error['message'], 'Uncaught ');
        if ($fatal) {
            $ffi->nrllm_reset();
        } else {
            $ffi->nrllm_close_all();
        }
    }

    /**
     * Destroying this object indicates the end where an exception in a shutdown function has kept
     * later ones from running.
     */
    public function __destruct()
    {
        self::$near = true;
        $this->ffi->nrllm_close_all();
    }
}
