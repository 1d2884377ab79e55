<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Console;

/**
 * Reads option values. The scheduler and callers in PHP give numbers as well as strings.
 */
final class Options
{
    /**
     * Returns a whole number of at least $min in decimal digits, null for anything else:
     * also for one that PHP's int cannot hold.
     */
    public static function integer(mixed $value, int $min): ?int
    {
        if (is_string($value) && preg_match('/^0*([0-9]+)$/D', $value, $match) === 1) {
            $value = filter_var($match[1], FILTER_VALIDATE_INT);
        }

        return is_int($value) && $value >= $min ? $value : null;
    }

    /**
     * Returns bytes as php.ini writes them (134217728, 128M, 1G), null for anything else.
     */
    public static function bytes(mixed $value): ?int
    {
        if (is_int($value)) {
            return $value > 0 ? $value : null;
        }
        if (!is_string($value) || preg_match('/^\s*([0-9]{1,12})\s*([KMG]?)B?\s*$/i', $value, $match) !== 1) {
            return null;
        }
        $bytes = (int)$match[1] * ['' => 1, 'K' => 1024, 'M' => 1048576, 'G' => 1073741824][strtoupper($match[2])];

        // A product that is too large is a float.
        return is_int($bytes) && $bytes > 0 ? $bytes : null;
    }

    /**
     * @param \Closure(mixed): ?int $read
     * @return int|null 0: the option is not given; null: its value is wrong
     */
    public static function given(mixed $value, \Closure $read): ?int
    {
        return $value === null ? 0 : $read($value);
    }
}
