<?php

declare(strict_types=1);

namespace NrLlmRuntime\Ffi;

use ReflectionProperty;
use Throwable;

/**
 * Sets the origin of an exception to the line that called the runtime, as the extension does,
 * instead of a line of this package.
 *
 * @internal
 */
final class Caller
{
    /**
     * @template T of Throwable
     *
     * @param T $error an exception that was just made in this package
     *
     * @return T
     */
    public static function blame(Throwable $error): Throwable
    {
        $trace = $error->getTrace();
        $own = dirname(__DIR__) . DIRECTORY_SEPARATOR;
        while (isset($trace[0]['file']) && str_starts_with($trace[0]['file'], $own)) {
            array_shift($trace);
        }
        // A frame that PHP itself called (array_map() …) has no file; the next frame is the caller
        // of PHP.
        foreach ($trace as $frame) {
            if (isset($frame['file'], $frame['line'])) {
                $base = $error instanceof \Exception ? \Exception::class : \Error::class;
                (new ReflectionProperty($base, 'file'))->setValue($error, $frame['file']);
                (new ReflectionProperty($base, 'line'))->setValue($error, $frame['line']);
                (new ReflectionProperty($base, 'trace'))->setValue($error, $trace);
                break;
            }
        }

        return $error;
    }
}
