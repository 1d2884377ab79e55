<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Runtime;

use NrLlmRuntime\Typo3\Settings\ConnectionSettings;
use NrLlmRuntime\Typo3\Settings\RuntimeSettings;
use NrLlmRuntime\Typo3\Settings\SettingsException;
use Psr\Log\LoggerInterface;

/**
 * Finds the binding of the native runtime: the PHP extension, else the FFI bridge, else none.
 *
 * The class NrLlmRuntime alone proves nothing, since the stubs for static analysis declare it too.
 * The extension is recognised by its name, the bridge by the package that the class's file belongs
 * to.
 */
class RuntimeLocator
{
    public const EXTENSION = 'extension';
    public const FFI = 'ffi';
    public const NONE = 'none';

    private ?string $binding = null;
    /** @var list<string> */
    private array $reasons = [];
    private ?object $runtime = null;
    /** @var array<string, true> static, so that a message is logged once per process */
    private static array $logged = [];

    public function __construct(
        private readonly ConnectionSettings $connection,
        private readonly RuntimeSettings $settings,
        private readonly LoggerInterface $logger,
    ) {}

    /**
     * Returns the binding: one of the constants of this class.
     */
    public function binding(): string
    {
        return $this->binding ??= $this->find();
    }

    public function isAvailable(): bool
    {
        return $this->binding() !== self::NONE;
    }

    /**
     * Returns why it is this binding, a text for each reason.
     *
     * @return list<string>
     */
    public function reasons(): array
    {
        $this->binding();

        return $this->reasons;
    }

    /**
     * Returns the runtime, one per process and settings. It connects at its first call that
     * needs the database.
     *
     * @return \NrLlmRuntime
     * @throws RuntimeUnavailableException where there is no path
     * @throws SettingsException
     * @throws \NrLlmConfigurationException where the runtime refuses TYPO3's settings
     */
    public function runtime(): object
    {
        if (!$this->isAvailable()) {
            throw new RuntimeUnavailableException(implode(' ', $this->reasons));
        }

        return $this->runtime ??= $this->make();
    }

    /**
     * Opens and closes a connection beside the runtime's own, as the heartbeat thread will. It
     * proves that the server gives one.
     *
     * @throws \NrLlmException where the connection is refused
     */
    public function probeSecondConnection(): void
    {
        $options = $this->settings->forRuntime();
        // Objects of equal settings share one connection.
        $options['connectTimeoutMs'] = (int)$options['connectTimeoutMs'] + 1;
        $probe = new \NrLlmRuntime($this->connection->forRuntime(), $options);
        try {
            $probe->leaseState(4294967295, 'probe');
        } finally {
            $probe->close();
        }
    }

    /**
     * Returns the runtime's version, '' where there is none.
     */
    public function version(): string
    {
        return $this->isAvailable() ? (string)constant('NrLlmRuntime::VERSION') : '';
    }

    /**
     * Logs once per process that nr_llm's own PHP code stays in use.
     */
    public function logFallback(): void
    {
        $this->logOnce(
            $this->settings->fallback() === RuntimeSettings::FALLBACK_PHP
                ? 'The native runtime is not used: nr_llm\'s own PHP code executes agent runs. {reason}'
                : 'The native runtime cannot be used, and the extension setting "fallback" forbids nr_llm\'s own PHP code. {reason}',
            ['reason' => implode(' ', $this->reasons())],
        );
    }

    /**
     * @param array<string, mixed> $context
     */
    public function logOnce(string $message, array $context = []): void
    {
        $key = $message . "\0" . serialize($context);
        if (!isset(self::$logged[$key])) {
            self::$logged[$key] = true;
            $this->logger->warning($message, $context);
        }
    }

    protected function extensionIsLoaded(): bool
    {
        return extension_loaded('nrllm_runtime');
    }

    /**
     * The folder of the package nrllm-runtime/ffi, where it is the one that declares NrLlmRuntime;
     * null otherwise.
     */
    protected function bridgeFolder(): ?string
    {
        if (!class_exists('NrLlmRuntime')) {
            return null;
        }
        $file = (new \ReflectionClass('NrLlmRuntime'))->getFileName();
        for ($folder = $file === false ? '' : dirname($file), $i = 0; $i < 5 && strlen($folder) > 1; $i++, $folder = dirname($folder)) {
            if (is_file($folder . '/composer.json')) {
                $package = json_decode((string)file_get_contents($folder . '/composer.json'), true);

                return is_array($package) && ($package['name'] ?? '') === 'nrllm-runtime/ffi' ? $folder : null;
            }
        }

        return null;
    }

    /**
     * Makes the bridge load its library: null when it does, else its own words on what is in the
     * way.
     */
    protected function tryBridge(): ?string
    {
        try {
            \NrLlmRuntime::backoffMs(0);

            return null;
        } catch (\Throwable $error) {
            return $error->getMessage();
        }
    }

    private function find(): string
    {
        try {
            $supported = $this->connection->isSupported();
            $driver = $this->connection->driver();
        } catch (SettingsException $error) {
            $this->reasons = [$error->getMessage()];

            return self::NONE;
        }
        if (!$supported) {
            $this->reasons = [sprintf(
                'The table %s is on the connection "%s" with the driver "%s"; the native runtime knows MySQL and MariaDB (mysqli, pdo_mysql) only.',
                ConnectionSettings::RUN_TABLE,
                $this->connection->connectionName(),
                $driver,
            )];

            return self::NONE;
        }
        if ($this->extensionIsLoaded()) {
            $this->reasons = [sprintf('The PHP extension nrllm_runtime %s is loaded.', (string)phpversion('nrllm_runtime'))];

            return self::EXTENSION;
        }
        $this->reasons = ['The PHP extension nrllm_runtime is not loaded.'];
        $folder = $this->bridgeFolder();
        if ($folder === null) {
            $this->reasons[] = class_exists('NrLlmRuntime')
                ? 'The class NrLlmRuntime is not that of the package nrllm-runtime/ffi; the stubs for static analysis do not belong on a site.'
                : 'The package nrllm-runtime/ffi is not installed. Install one of the two (Documentation/Installation.md).';

            return self::NONE;
        }
        $problem = $this->tryBridge();
        if ($problem !== null) {
            $this->reasons[] = 'The FFI bridge (nrllm-runtime/ffi) cannot be used: ' . $problem;

            return self::NONE;
        }
        $this->reasons[] = sprintf('The FFI bridge (nrllm-runtime/ffi %s) is used.', (string)constant('NrLlmRuntime::VERSION'));

        return self::FFI;
    }

    private function make(): \NrLlmRuntime
    {
        foreach ($this->settings->problems() as $problem) {
            $this->logOnce($problem);
        }
        foreach ($this->connection->initCommandFindings() as $finding) {
            $this->logOnce($finding);
        }

        return new \NrLlmRuntime($this->connection->forRuntime(), $this->settings->forRuntime());
    }
}
