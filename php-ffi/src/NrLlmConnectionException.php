<?php

declare(strict_types=1);

require_once __DIR__ . '/../autoload.php';

// The extension declares the same class; then this file has nothing to do.
if (!class_exists(NrLlmConnectionException::class, false)) {
    /**
     * The server could not be reached or was lost, a time limit passed, or the reply to a write was lost and could not be read back: then the
     * outcome is unknown.
     */
    final class NrLlmConnectionException extends NrLlmException {}
}
