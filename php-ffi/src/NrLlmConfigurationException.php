<?php

declare(strict_types=1);

require_once __DIR__ . '/../autoload.php';

// The extension declares the same class; then this file has nothing to do.
if (!class_exists(NrLlmConfigurationException::class, false)) {
    /**
     * The settings are wrong, the driver is not supported, or the database lacks a table or column
     * that the call needs. Another try does not help. The message says what to change.
     */
    final class NrLlmConfigurationException extends NrLlmException {}
}
