<?php

declare(strict_types=1);

namespace NrLlmRuntime\Ffi;

use FFI\CData;
use SensitiveParameterValue;

/**
 * The library's handle of a set of settings. It is freed with its object.
 *
 * When a program ends, destructors run in an unspecified order: one that runs after this object's
 * may still make a call, and gets a new handle of the same settings.
 *
 * @internal
 */
final class Settings
{
    private ?CData $handle = null;
    private readonly SensitiveParameterValue $settings;

    public function __construct(#[\SensitiveParameter] array|string $connection, array $options)
    {
        $connection = Json::encode($connection);
        $options = Json::encode($options);
        // The meaning of `localhost` to PHP on this machine; false where the extension is not
        // loaded.
        $socket = ini_get('mysqli.default_socket') ?: (ini_get('pdo_mysql.default_socket') ?: '');
        $this->settings = new SensitiveParameterValue([$connection, strlen($connection), $options, strlen($options), $socket, strlen($socket)]);
        $this->handle();
    }

    public function handle(): CData
    {
        return $this->handle ??= Call::handle('NrllmRuntime', 'nrllm_runtime_new', ...$this->settings->getValue());
    }

    public function __destruct()
    {
        if ($this->handle !== null) {
            $handle = $this->handle;
            $this->handle = null;
            Library::ffi()->nrllm_runtime_free($handle);
        }
    }
}
