<?php

declare(strict_types=1);

namespace NrLlmRuntime\Ffi;

/**
 * Converts PHP's values to the JSON that the library reads. Strings are bytes and keys may be
 * integers in PHP: values without a JSON form are written as an object with one key (`$hex`,
 * `$entries`, `$float`, `$type`). jsonSerialize() of objects is not called.
 *
 * @internal
 */
final class Json
{
    /** The maximum depth of arrays; no option needs a deeper one. */
    private const MAX_DEPTH = 8;

    public static function encode(#[\SensitiveParameter] array|string $value): string
    {
        return json_encode(self::tree($value, 0), JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_PRESERVE_ZERO_FRACTION | JSON_THROW_ON_ERROR);
    }

    /** Returns the name of a value's type as the runtime writes it, without class names. */
    public static function typeName(#[\SensitiveParameter] mixed $value): string
    {
        return match (true) {
            $value === null, is_scalar($value), is_array($value) => get_debug_type($value),
            is_object($value) => 'object',
            default => 'resource',
        };
    }

    /** Returns the type of a value as PHP names it in its own TypeError. */
    public static function given(#[\SensitiveParameter] mixed $value): string
    {
        return match (true) {
            is_bool($value) && PHP_VERSION_ID >= 80300 => $value ? 'true' : 'false',
            is_object($value) => get_debug_type($value),
            default => self::typeName($value),
        };
    }

    private static function tree(#[\SensitiveParameter] mixed $value, int $depth): mixed
    {
        return match (true) {
            $value === null, is_bool($value), is_int($value) => $value,
            is_string($value) => self::isUtf8($value) ? $value : ['$hex' => bin2hex($value)],
            is_float($value) => is_finite($value) ? $value : ['$float' => is_nan($value) ? 'NAN' : ($value > 0 ? 'INF' : '-INF')],
            is_array($value) => $depth < self::MAX_DEPTH ? self::entries($value, $depth + 1) : ['$type' => 'array'],
            default => ['$type' => self::typeName($value)],
        };
    }

    /** @param array<array-key, mixed> $values */
    private static function entries(#[\SensitiveParameter] array $values, int $depth): array
    {
        $plain = true;
        $tree = [];
        foreach ($values as $key => $value) {
            $tree[$key] = self::tree($value, $depth);
            $plain = $plain && (is_int($key) || (self::isUtf8($key) && !str_starts_with($key, '$')));
        }
        if ($plain) {
            return $tree;
        }
        $pairs = [];
        foreach ($tree as $key => $value) {
            $pairs[] = [self::tree($key, $depth), $value];
        }

        return ['$entries' => $pairs];
    }

    private static function isUtf8(#[\SensitiveParameter] string $text): bool
    {
        return preg_match('//u', $text) === 1;
    }
}
