<?php

declare(strict_types=1);

require_once __DIR__ . '/../autoload.php';

// The extension declares the same class; then this file has nothing to do.
if (!class_exists(NrLlmException::class, false)) {
    /**
     * The base of all exceptions of the runtime. A wrong argument is a TypeError or a ValueError
     * instead, thrown before anything is sent to the server.
     */
    class NrLlmException extends RuntimeException {}
}
