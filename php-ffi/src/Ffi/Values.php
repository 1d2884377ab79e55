<?php

declare(strict_types=1);

namespace NrLlmRuntime\Ffi;

use ReflectionClass;
use WeakMap;

/**
 * Stores the data of the interface's objects outside of them: the objects have no properties, so
 * that no dump, cast or export shows any.
 *
 * @internal
 */
final class Values
{
    /** @var WeakMap<object, mixed>|null */
    private static ?WeakMap $values = null;

    /**
     * Returns a new object of a class that `new` refuses.
     *
     * @template T of object
     *
     * @param class-string<T> $class
     *
     * @return T
     */
    public static function make(string $class, mixed $value): object
    {
        $object = (new ReflectionClass($class))->newInstanceWithoutConstructor();
        self::set($object, $value);

        return $object;
    }

    public static function set(object $object, #[\SensitiveParameter] mixed $value): void
    {
        self::$values ??= new WeakMap();
        self::$values[$object] = $value;
    }

    public static function of(object $object): mixed
    {
        if (self::$values === null || !isset(self::$values[$object])) {
            throw Caller::blame(new \Error('The object of class ' . $object::class . ' was not made as it should be: its constructor was passed over'));
        }

        return self::$values[$object];
    }
}
