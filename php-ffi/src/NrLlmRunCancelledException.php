<?php

declare(strict_types=1);

require_once __DIR__ . '/../autoload.php';

// The extension declares the same class; then this file has nothing to do.
if (!class_exists(NrLlmRunCancelledException::class, false)) {
    /**
     * The run was cancelled.
     */
    final class NrLlmRunCancelledException extends NrLlmException {}
}
