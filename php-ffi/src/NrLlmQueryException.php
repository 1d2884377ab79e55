<?php

declare(strict_types=1);

require_once __DIR__ . '/../autoload.php';

// The extension declares the same class; then this file has nothing to do.
if (!class_exists(NrLlmQueryException::class, false)) {
    /**
     * The server refused a statement. `getCode()` is the server's error number (1142 for a missing
     * grant, for example).
     */
    final class NrLlmQueryException extends NrLlmException {}
}
