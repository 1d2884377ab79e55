<?php

declare(strict_types=1);

require_once __DIR__ . '/../autoload.php';

// The extension declares the same class; then this file has nothing to do.
if (!class_exists(NrLlmException::class, false)) {
    /**
     * The base of every exception of the runtime. A wrong argument is no such exception: it is a TypeError or a ValueError, thrown before
     * anything is sent to the server.
     */
    class NrLlmException extends RuntimeException {}
}
