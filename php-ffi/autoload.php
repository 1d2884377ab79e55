<?php

/**
 * The classes of this package by name, for programs without Composer's autoloader. Including this
 * file declares nothing and loads no library; that is left to the first use.
 */

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    $file = match (true) {
        str_starts_with($class, 'NrLlmRuntime\\Ffi\\') => 'Ffi/' . substr($class, 17),
        str_starts_with($class, 'NrLlm') => $class,
        default => null,
    };
    if ($file !== null && preg_match('~^[A-Za-z]+(/[A-Za-z]+)?$~D', $file) === 1 && is_file(__DIR__ . "/src/$file.php")) {
        // require instead of require_once: an exception of a signal handler may have kept a file
        // from declaring its class.
        require __DIR__ . "/src/$file.php";
    }
});
