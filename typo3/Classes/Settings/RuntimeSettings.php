<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Settings;

use TYPO3\CMS\Core\Configuration\ExtensionConfiguration;

/**
 * The extension configuration (ext_conf_template.txt). TYPO3 stores it as strings, and an administrator may have written anything: a
 * value out of range is replaced by the default and named in problems(), which the status command and the log show.
 */
final class RuntimeSettings
{
    public const CLOCK_CALLER = 'caller';
    public const CLOCK_DATABASE = 'database';
    public const FALLBACK_PHP = 'php';
    public const FALLBACK_NONE = 'none';
    public const DEFAULT_LEASE_SECONDS = 60;

    /** @var array<string, mixed>|null */
    private ?array $values = null;
    /** @var array<string, string> */
    private array $problems = [];

    public function __construct(private readonly ExtensionConfiguration $configuration) {}

    public function keepsLeases(): bool
    {
        $value = $this->value('keeper');

        return !in_array(is_string($value) ? strtolower(trim($value)) : $value, [false, 0, '0', '', 'false', 'off', 'no'], true)
            || $value === null;
    }

    public function leaseSeconds(): int
    {
        return $this->integer('leaseSeconds', self::DEFAULT_LEASE_SECONDS, 2, 86400);
    }

    public function maxSilentSeconds(): int
    {
        return $this->integer('maxSilentSeconds', 3600, 1, 31536000);
    }

    public function maxSeconds(): int
    {
        return $this->integer('maxSeconds', 86400, 1, 31536000);
    }

    public function clock(): string
    {
        return $this->choice('clock', [self::CLOCK_CALLER, self::CLOCK_DATABASE]);
    }

    public function fallback(): string
    {
        return $this->choice('fallback', [self::FALLBACK_PHP, self::FALLBACK_NONE]);
    }

    /**
     * The messenger transport to wake runs through, or '' for the one that the routing names.
     */
    public function transport(): string
    {
        $value = $this->value('transport');

        return is_string($value) ? trim($value) : '';
    }

    /**
     * @return array<string, mixed> the options of NrLlmRuntime
     */
    public function forRuntime(): array
    {
        return [
            'table' => ConnectionSettings::RUN_TABLE,
            'clock' => $this->clock(),
            'connectTimeoutMs' => $this->integer('connectTimeoutMs', 3000, 100, 600000),
            'queryTimeoutMs' => $this->integer('queryTimeoutMs', 5000, 100, 600000),
        ];
    }

    /**
     * @return list<string> a sentence for each value that could not be used
     */
    public function problems(): array
    {
        $this->leaseSeconds();
        $this->maxSilentSeconds();
        $this->maxSeconds();
        $this->fallback();
        $this->forRuntime();

        return array_values($this->problems);
    }

    private function integer(string $key, int $default, int $min, int $max): int
    {
        $value = $this->value($key);
        if ($value === null || $value === '') {
            return $default;
        }
        $digits = is_string($value) && preg_match('/^\s*[0-9]{1,10}\s*$/', $value) === 1;
        $number = is_int($value) ? $value : ($digits ? (int)trim($value) : -1);
        if ($number < $min || $number > $max) {
            $this->problems[$key] = sprintf(
                'The extension setting %s must be a whole number from %d to %d; %d is used instead.',
                $key,
                $min,
                $max,
                $default,
            );

            return $default;
        }

        return $number;
    }

    /**
     * @param non-empty-list<string> $choices the first one is the default
     */
    private function choice(string $key, array $choices): string
    {
        $value = $this->value($key);
        if ($value === null || $value === '') {
            return $choices[0];
        }
        if (!in_array($value, $choices, true)) {
            $this->problems[$key] = sprintf('The extension setting %s must be %s; %s is used instead.', $key, implode(' or ', $choices),
                $choices[0]);

            return $choices[0];
        }

        return $value;
    }

    private function value(string $key): mixed
    {
        if ($this->values === null) {
            try {
                $values = $this->configuration->get('nrllm_runtime');
            } catch (\Throwable) {
                // Not configured yet (first deployment): TYPO3 throws, the defaults are right.
                $values = [];
            }
            $this->values = is_array($values) ? $values : [];
        }

        return $this->values[$key] ?? null;
    }
}
