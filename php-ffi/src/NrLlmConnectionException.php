<?php

declare(strict_types=1);

require_once __DIR__ . '/../autoload.php';

// The extension declares the same class; then this file has nothing to do.
if (!class_exists(NrLlmConnectionException::class, false)) {
    /**
     * The server could not be reached, the connection was lost, or a time limit passed. When the
     * message says `outcome unknown`, the reply to a write was lost and the row could not be read
     * back.
     */
    final class NrLlmConnectionException extends NrLlmException {}
}
