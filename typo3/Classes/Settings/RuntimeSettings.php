<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Settings;

use TYPO3\CMS\Core\Configuration\ExtensionConfiguration;

/**
 * The extension configuration (ext_conf_template.txt). TYPO3 stores it as strings, and an
 * administrator may have written anything. A value that cannot be used is replaced by the default
 * and named by problems(): the status command, the log and the command that meets it report it.
 */
final class RuntimeSettings
{
    public const CLOCK_CALLER = 'caller';
    public const CLOCK_DATABASE = 'database';
    public const FALLBACK_PHP = 'php';
    public const FALLBACK_NONE = 'none';
    public const DEFAULT_LEASE_SECONDS = 60;
    /** The settings that the reaper reads. */
    public const OF_THE_REAPER = ['clock', 'fallback', 'transport', 'connectTimeoutMs', 'queryTimeoutMs'];
    private const KEYS = ['keeper', 'leaseSeconds', 'maxSilentSeconds', 'maxSeconds', 'clock', 'fallback', 'transport',
        'connectTimeoutMs', 'queryTimeoutMs'];
    private const OFF = [false, 0, '0', '', 'false', 'off', 'no'];
    private const ON = [null, true, 1, '1', 'true', 'on', 'yes'];
    private const WHERE = 'Correct it in Admin Tools > Settings > Extension Configuration > nrllm_runtime, or in '
        . 'TYPO3_CONF_VARS[EXTENSIONS][nrllm_runtime].';

    /** @var array<string, mixed>|null */
    private ?array $values = null;
    /** @var array<string, string> */
    private array $problems = [];

    public function __construct(private readonly ExtensionConfiguration $configuration) {}

    public function keepsLeases(): bool
    {
        $value = $this->value('keeper');
        $value = is_string($value) ? strtolower(trim($value)) : $value;
        if (!in_array($value, self::OFF, true) && !in_array($value, self::ON, true)) {
            $this->report('keeper', '0 or 1', $value, '1');
        }

        return !in_array($value, self::OFF, true);
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

    /**
     * @return self::CLOCK_CALLER|self::CLOCK_DATABASE
     */
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
        $value = $this->value('transport') ?? '';
        if (!is_string($value)) {
            $this->report('transport', 'the name of a transport', $value, 'the transport of the routing');
        }

        return is_string($value) ? trim($value) : '';
    }

    /**
     * @return array{
     *     clock: 'caller'|'database', connectTimeoutMs: int, queryTimeoutMs: int, table: string
     * } the options of NrLlmRuntime
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
     * Returns what is wrong with the settings and how to correct it, a text for each.
     *
     * @param list<string>|null $of only these settings; null: all, and names that are no setting
     * @return list<string>
     */
    public function problems(?array $of = null): array
    {
        $this->keepsLeases();
        $this->leaseSeconds();
        $this->maxSilentSeconds();
        $this->maxSeconds();
        $this->fallback();
        $this->transport();
        $this->forRuntime();
        if ($of !== null) {
            return array_values(array_intersect_key($this->problems, array_flip($of)));
        }
        $unknown = [];
        foreach (array_diff(array_keys($this->values()), self::KEYS) as $key) {
            $unknown[] = sprintf('There is no extension setting "%s"; known are %s. ', $key, implode(', ', self::KEYS)) . self::WHERE;
        }

        return [...array_values($this->problems), ...$unknown];
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
            $this->report($key, sprintf('a whole number from %d to %d', $min, $max), $value, (string)$default);

            return $default;
        }

        return $number;
    }

    /**
     * @template TChoice of string
     * @param non-empty-list<TChoice> $choices the first one is the default
     * @return TChoice
     */
    private function choice(string $key, array $choices): string
    {
        $value = $this->value($key);
        if ($value === null || $value === '') {
            return $choices[0];
        }
        if (!in_array($value, $choices, true)) {
            $this->report($key, implode(' or ', $choices), $value, $choices[0]);

            return $choices[0];
        }

        return $value;
    }

    private function report(string $key, string $wanted, mixed $value, string $used): void
    {
        $given = is_scalar($value) ? '"' . (is_bool($value) ? ($value ? 'true' : 'false') : (string)$value) . '"' : get_debug_type($value);
        $this->problems[$key] = sprintf('The extension setting %s must be %s, not %s; %s is used instead. ', $key, $wanted, $given, $used)
            . self::WHERE;
    }

    private function value(string $key): mixed
    {
        return $this->values()[$key] ?? null;
    }

    /**
     * @return array<string, mixed>
     */
    private function values(): array
    {
        if ($this->values !== null) {
            return $this->values;
        }
        try {
            $values = $this->configuration->get('nrllm_runtime');
        } catch (\Throwable) {
            // Not configured yet (first deployment): TYPO3 throws, the defaults are right.
            $values = [];
        }

        return $this->values = is_array($values) ? $values : [];
    }
}
