<?php

declare(strict_types=1);

require_once __DIR__ . '/../autoload.php';

// The extension declares the same class; then this file has nothing to do.
if (!class_exists(NrLlmLeaseLostException::class, false)) {
    /**
     * This process does not own the run, or no longer: another worker owns it, it was requeued, it
     * is gone or terminal, or the lease expired.
     */
    final class NrLlmLeaseLostException extends NrLlmException {}
}
