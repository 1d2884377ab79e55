<?php

declare(strict_types=1);

namespace NrLlmRuntime\Ffi;

use FFI\CData;
use Throwable;

/**
 * What the failure taxonomy asks of a throwable. The types and their order come from the library, and so does the class that follows.
 *
 * No class is loaded for it and no code of the program runs, except getAttemptErrors() of an exhausted fallback chain.
 *
 * @internal
 */
final class Facts
{
    /** @var array{types: list<class-string>, fallbackChain: int, maxChain: int}|null */
    private static ?array $taxonomy = null;

    /**
     * The arguments failure_type, code, error_class and its length, as the library takes them.
     *
     * @return array{int, ?CData, string, int}
     */
    public static function of(Throwable $error): array
    {
        $class = $error::class;
        [$type, $code] = self::gather($error);

        return [$type, Call::optional($code), $class, strlen($class)];
    }

    /** @return array{int, ?int} */
    private static function gather(Throwable $error): array
    {
        self::$taxonomy ??= Call::json('nrllm_failure_types');
        ['types' => $types, 'fallbackChain' => $chain, 'maxChain' => $limit] = self::$taxonomy;
        for ($followed = 0; $followed <= $limit; $followed++) {
            $type = self::type($error, $types);
            if ($type !== $chain) {
                return [$type, self::code($error)];
            }
            $last = self::lastAttempt($error);
            if ($last === null) {
                break;
            }
            $error = $last;
        }

        return [$chain, null];
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

    /** The code as it is stored: getCode() would ask __get() where the property was unset. */
    private static function code(Throwable $error): ?int
    {
        $properties = get_mangled_object_vars($error);
        $code = $properties["\0*\0code"] ?? $properties['code'] ?? null;

        return is_int($code) ? $code : null;
    }

    private static function lastAttempt(Throwable $error): ?Throwable
    {
        // Not is_callable(): __call() is not the method.
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

    /** A declared property whatever its visibility, without asking __get(). */
    private static function property(object $object, string $name): mixed
    {
        foreach (get_mangled_object_vars($object) as $key => $value) {
            $key = (string) $key;
            if ($key === $name || (str_starts_with($key, "\0") && str_ends_with($key, "\0$name"))) {
                return $value;
            }
        }

        return null;
    }
}
