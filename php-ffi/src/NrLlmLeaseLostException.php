<?php

declare(strict_types=1);

require_once __DIR__ . '/../autoload.php';

// The extension declares the same class; then this file has nothing to do.
if (!class_exists(NrLlmLeaseLostException::class, false)) {
    /**
     * The lease is not, or no longer, this process's: another owner has the run, it was requeued, it is gone or finished, or the lease ran out.
     */
    final class NrLlmLeaseLostException extends NrLlmException {}
}
