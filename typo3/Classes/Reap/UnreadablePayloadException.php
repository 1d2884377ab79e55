<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Reap;

/**
 * The stored payload of a run cannot be decrypted. Its class name goes into the run's error_class
 * where an administrator ends the run.
 */
final class UnreadablePayloadException extends \RuntimeException {}
