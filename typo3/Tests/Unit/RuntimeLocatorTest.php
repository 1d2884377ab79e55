<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Unit;

use NrLlmRuntime\Typo3\Runtime\RuntimeLocator;
use NrLlmRuntime\Typo3\Runtime\RuntimeUnavailableException;
use NrLlmRuntime\Typo3\Settings\ConnectionSettings;
use NrLlmRuntime\Typo3\Settings\RuntimeSettings;
use NrLlmRuntime\Typo3\Tests\Support\MemoryLogger;
use PHPUnit\Framework\TestCase;
use TYPO3\CMS\Core\Configuration\ExtensionConfiguration;

final class RuntimeLocatorTest extends TestCase
{
    private const OTHER_PACKAGES = 'The class NrLlmRuntime is not that of the package nrllm-runtime/ffi; the stubs for static analysis do not belong '
        . 'on a site.';

    protected function setUp(): void
    {
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'] = ['driver' => 'mysqli', 'host' => 'db', 'user' => 'u',
            'password' => 'secret-word', 'dbname' => 'd'];
        (new \ReflectionClass(RuntimeLocator::class))->setStaticPropertyValue('logged', []);
    }

    protected function tearDown(): void
    {
        unset($GLOBALS['TYPO3_CONF_VARS']);
    }

    public function testTheBindingsAndTheirReasons(): void
    {
        $cases = [
            // extension, bridge's folder, the bridge's problem => path, last reason
            [true, null, null, RuntimeLocator::EXTENSION, 'The PHP extension nrllm_runtime ' . (string)phpversion('nrllm_runtime') . ' is loaded.'],
            [true, '/vendor/ffi', null, RuntimeLocator::EXTENSION, 'The PHP extension nrllm_runtime ' . (string)phpversion('nrllm_runtime')
                . ' is loaded.'],
            [false, '/vendor/ffi', null, RuntimeLocator::FFI, 'The FFI bridge (nrllm-runtime/ffi ' . \NrLlmRuntime::VERSION . ') is used.'],
            [false, '/vendor/ffi', 'set ffi.enable=true', RuntimeLocator::NONE,
                'The FFI bridge (nrllm-runtime/ffi) cannot be used: set ffi.enable=true'],
            // In this process the class is there, so it must be another package's.
            [false, null, null, RuntimeLocator::NONE, self::OTHER_PACKAGES],
        ];
        foreach ($cases as [$extension, $folder, $problem, $path, $reason]) {
            $locator = $this->locator($extension, $folder, $problem);
            self::assertSame($path, $locator->binding());
            self::assertSame($path !== RuntimeLocator::NONE, $locator->isAvailable());
            self::assertSame($reason, $locator->reasons()[count($locator->reasons()) - 1]);
            self::assertSame($path === RuntimeLocator::NONE ? '' : \NrLlmRuntime::VERSION, $locator->version());
        }
    }

    public function testWithoutARuntimeItThrowsAndLogsOnce(): void
    {
        $log = new MemoryLogger();
        $locator = $this->locator(false, null, null, $log);
        $locator->logFallback();
        $locator->logFallback();
        $this->locator(false, null, null, $log)->logFallback();
        self::assertSame([
            'The native runtime is not used: nr_llm\'s own PHP code executes agent runs. The PHP extension nrllm_runtime is not loaded. '
            . self::OTHER_PACKAGES,
        ], $log->lines());
        $this->expectException(RuntimeUnavailableException::class);
        $locator->runtime();
    }

    public function testAnotherDbmsHasNoRuntime(): void
    {
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default']['driver'] = 'pdo_sqlite';
        $locator = $this->locator(true, null, null);
        self::assertSame(RuntimeLocator::NONE, $locator->binding());
        self::assertStringContainsString('with the driver "pdo_sqlite"', $locator->reasons()[0]);
    }

    public function testTheBindingOfThisProcess(): void
    {
        $locator = new RuntimeLocator(new ConnectionSettings(), new RuntimeSettings(new ExtensionConfiguration()), new MemoryLogger());
        self::assertSame(getenv('NRLLM_TYPO3_BINDING') === 'ffi' ? RuntimeLocator::FFI : RuntimeLocator::EXTENSION, $locator->binding(), implode(' ', $locator->reasons()));
        self::assertInstanceOf(\NrLlmRuntime::class, $locator->runtime());
        self::assertSame($locator->runtime(), $locator->runtime());
        self::assertStringNotContainsString('secret-word', print_r($locator->runtime(), true));
    }

    private function locator(bool $extension, ?string $folder, ?string $problem, ?MemoryLogger $log = null): RuntimeLocator
    {
        return new class (
            $extension,
            $folder,
            $problem,
            new ConnectionSettings(),
            new RuntimeSettings(new ExtensionConfiguration()),
            $log ?? new MemoryLogger(),
        ) extends RuntimeLocator {
            public function __construct(
                private readonly bool $extension,
                private readonly ?string $folder,
                private readonly ?string $problem,
                ConnectionSettings $connection,
                RuntimeSettings $settings,
                MemoryLogger $logger,
            ) {
                parent::__construct($connection, $settings, $logger);
            }

            protected function extensionIsLoaded(): bool
            {
                return $this->extension;
            }

            protected function bridgeFolder(): ?string
            {
                return $this->folder;
            }

            protected function tryBridge(): ?string
            {
                return $this->problem;
            }
        };
    }
}
