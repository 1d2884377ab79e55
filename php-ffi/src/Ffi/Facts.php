<?php

declare(strict_types=1);

namespace NrLlmRuntime\Ffi;

use FFI\CData;
use Throwable;

/**
 * Reads the facts about a throwable that the failure taxonomy needs. The library supplies the types
 * and their order, and derives the failure class.
 *
 * No class is loaded and no code of the program runs, except getAttemptErrors() of an exhausted
 * fallback chain and a get hook of `$code` (PHP 8.4).
 *
 * @internal
 */
final class Facts
{
    /**
     * @var array{
     *     types: list<class-string>, fallbackChain: int, byCode: int, maxChain: int
     * }|null
     */
    private static ?array $taxonomy = null;

    /**
     * Returns the arguments failure_type, code, retry_after_seconds, error_class and its length, as
     * the library takes them.
     *
     * @return array{int, ?CData, ?CData, string, int}
     */
    public static function of(Throwable $error): array
    {
        $class = $error::class;
        [$type, $code, $retryAfter] = self::gather($error);

        return [$type, Call::optional($code), Call::optional($retryAfter), $class, strlen($class)];
    }

    /** @return array{int, ?int, ?int} */
    private static function gather(Throwable $error): array
    {
        $taxonomy = self::$taxonomy ??= Call::json('nrllm_failure_types');
        ['types' => $types, 'fallbackChain' => $chain, 'byCode' => $byCode, 'maxChain' => $limit] = $taxonomy;
        $retryAfter = null;
        for ($followed = 0; $followed <= $limit; $followed++) {
            // The waiting time of the deciding error, or else that of the nearest exception that
            // wraps it.
            $retryAfter = self::retryAfter($error) ?? $retryAfter;
            $type = self::type($error, $types);
            if ($type !== $chain) {
                return [$type, $type === $byCode ? self::code($error) : null, $retryAfter];
            }
            $last = self::lastAttempt($error);
            if ($last === null) {
                return [$chain, null, $retryAfter];
            }
            $error = $last;
        }

        return [$chain, null, null];
    }

    /** @param list<class-string> $types */
    private static function type(Throwable $error, array $types): int
    {
        foreach ($types as $index => $type) {
            // instanceof never loads a class, and one that is not loaded has no instances.
            if ($error instanceof $type) {
                return $index + 1;
            }
        }

        return 0;
    }

    /**
     * Returns what getCode() returns. Without a hook the stored code is read: getCode() would call
     * __get() where the property was unset.
     */
    private static function code(Throwable $error): ?int
    {
        if (PHP_VERSION_ID >= 80400 && (new \ReflectionProperty($error, 'code'))->hasHook(\PropertyHookType::Get)) {
            try {
                $code = $error->getCode();
            } catch (Throwable) {
                return null;
            }

            return is_int($code) ? $code : null;
        }
        $properties = get_mangled_object_vars($error);
        $code = $properties["\0*\0code"] ?? $properties['code'] ?? null;

        return is_int($code) ? $code : null;
    }

    /**
     * Returns the value of a declared int property `retryAfterSeconds`, read without a hook and
     * without __get(). A negative waiting time counts as none.
     */
    private static function retryAfter(Throwable $error): ?int
    {
        for ($class = $error::class; $class !== false; $class = get_parent_class($class)) {
            if (property_exists($class, 'retryAfterSeconds')) {
                $property = new \ReflectionProperty($class, 'retryAfterSeconds');
                $declaring = $property->getDeclaringClass()->name;
                $key = match (true) {
                    $property->isStatic() => null,
                    $property->isPrivate() => "\0$declaring\0retryAfterSeconds",
                    $property->isProtected() => "\0*\0retryAfterSeconds",
                    default => 'retryAfterSeconds',
                };
                $value = $key === null ? null : (get_mangled_object_vars($error)[$key] ?? null);

                return is_int($value) && $value >= 0 ? $value : null;
            }
        }

        return null;
    }

    private static function lastAttempt(Throwable $error): ?Throwable
    {
        // method_exists() instead of is_callable(), which is also true for __call().
        if (!method_exists($error, 'getAttemptErrors')) {
            return null;
        }
        $method = new \ReflectionMethod($error, 'getAttemptErrors');
        if (!$method->isPublic() || $method->isStatic()) {
            return null;
        }
        try {
            $attempts = $error->getAttemptErrors();
        } catch (Throwable) {
            return null;
        }
        if (!is_array($attempts) || $attempts === [] || !array_is_list($attempts)) {
            return null;
        }
        $last = $attempts[count($attempts) - 1];
        $failure = match (true) {
            is_array($last) => $last['error'] ?? null,
            is_object($last) => self::property($last, 'error'),
            default => null,
        };

        return $failure instanceof Throwable ? $failure : null;
    }

    /**
     * Returns a property that the object's own class declares, whatever its visibility; otherwise a
     * dynamic one of the object; otherwise a private one of the parent class. Neither __get() nor a
     * hook is called: a virtual property has no value here.
     */
    private static function property(object $object, string $name): mixed
    {
        $values = get_mangled_object_vars($object);
        $class = $object::class;
        $keys = ["\0$class\0$name", $name, "\0*\0$name"];
        while (!property_exists($class, $name) && ($class = get_parent_class($class)) !== false) {
            $keys[] = "\0$class\0$name";
        }
        foreach ($keys as $key) {
            if (array_key_exists($key, $values)) {
                return $values[$key];
            }
        }

        return null;
    }
}
