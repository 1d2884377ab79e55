<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Runtime;

/**
 * There is no way to the native runtime; the message says why and what to do.
 */
final class RuntimeUnavailableException extends \RuntimeException {}
