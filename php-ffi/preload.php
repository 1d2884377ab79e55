<?php

/**
 * For opcache.preload: with ffi.enable=preload PHP lets preloaded code use FFI outside the command
 * line too. No library is loaded here.
 */

declare(strict_types=1);

require_once __DIR__ . '/autoload.php';
foreach ([...glob(__DIR__ . '/src/*.php') ?: [], ...glob(__DIR__ . '/src/Ffi/*.php') ?: []] as $file) {
    require_once $file;
}
