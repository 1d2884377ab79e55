<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Settings;

/**
 * TYPO3's settings cannot be used as they are. The message names the setting and the remedy, and
 * never a secret.
 */
final class SettingsException extends \RuntimeException {}
