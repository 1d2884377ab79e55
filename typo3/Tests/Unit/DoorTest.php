<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Unit;

use NrLlmRuntime\Typo3\Door\Door;
use NrLlmRuntime\Typo3\Door\DoorClosedException;
use NrLlmRuntime\Typo3\Settings\ConnectionSettings;
use NrLlmRuntime\Typo3\Settings\RuntimeSettings;
use NrLlmRuntime\Typo3\Tests\Support\MemoryLogger;
use PHPUnit\Framework\TestCase;
use TYPO3\CMS\Core\Configuration\ExtensionConfiguration;

final class DoorTest extends TestCase
{
    private const SOMEBODY_ELSES = 'The class NrLlmRuntime is not that of the package nrllm-runtime/ffi; the stubs for static analysis do not belong '
        . 'on a site.';

    protected function setUp(): void
    {
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'] = ['driver' => 'mysqli', 'host' => 'db', 'user' => 'u',
            'password' => 'secret-word', 'dbname' => 'd'];
        (new \ReflectionClass(Door::class))->setStaticPropertyValue('said', []);
    }

    protected function tearDown(): void
    {
        unset($GLOBALS['TYPO3_CONF_VARS']);
    }

    public function testThePathsAndTheirReasons(): void
    {
        $cases = [
            // extension, bridge's folder, the bridge's problem => path, last reason
            [true, null, null, Door::EXTENSION, 'The PHP extension nrllm_runtime ' . (string)phpversion('nrllm_runtime') . ' is loaded.'],
            [true, '/vendor/ffi', null, Door::EXTENSION, 'The PHP extension nrllm_runtime ' . (string)phpversion('nrllm_runtime')
                . ' is loaded.'],
            [false, '/vendor/ffi', null, Door::FFI, 'The FFI bridge (nrllm-runtime/ffi ' . \NrLlmRuntime::VERSION . ') is used.'],
            [false, '/vendor/ffi', 'set ffi.enable=true', Door::NONE,
                'The FFI bridge (nrllm-runtime/ffi) cannot be used: set ffi.enable=true'],
            // In this process the class is there, so it must be somebody else's.
            [false, null, null, Door::NONE, self::SOMEBODY_ELSES],
        ];
        foreach ($cases as [$extension, $folder, $problem, $path, $reason]) {
            $door = $this->door($extension, $folder, $problem);
            self::assertSame($path, $door->path());
            self::assertSame($path !== Door::NONE, $door->isOpen());
            self::assertSame($reason, $door->reasons()[count($door->reasons()) - 1]);
            self::assertSame($path === Door::NONE ? '' : \NrLlmRuntime::VERSION, $door->version());
        }
    }

    public function testAClosedDoorThrowsAndTellsTheLogOnce(): void
    {
        $log = new MemoryLogger();
        $door = $this->door(false, null, null, $log);
        $door->sayClosed();
        $door->sayClosed();
        $this->door(false, null, null, $log)->sayClosed();
        self::assertSame([
            'The native runtime is not used: nr_llm\'s own PHP code stays in charge of agent runs. The PHP extension nrllm_runtime is not loaded. '
            . self::SOMEBODY_ELSES,
        ], $log->lines());
        $this->expectException(DoorClosedException::class);
        $door->runtime();
    }

    public function testAnotherDbmsClosesTheDoorWhateverIsInstalled(): void
    {
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default']['driver'] = 'pdo_sqlite';
        $door = $this->door(true, null, null);
        self::assertSame(Door::NONE, $door->path());
        self::assertStringContainsString('with the driver "pdo_sqlite"', $door->reasons()[0]);
    }

    public function testTheRealDoorOfThisProcess(): void
    {
        $door = new Door(new ConnectionSettings(), new RuntimeSettings(new ExtensionConfiguration()), new MemoryLogger());
        self::assertSame(getenv('NRLLM_TYPO3_DOOR') === 'ffi' ? Door::FFI : Door::EXTENSION, $door->path(), implode(' ', $door->reasons()));
        self::assertInstanceOf(\NrLlmRuntime::class, $door->runtime());
        self::assertSame($door->runtime(), $door->runtime());
        self::assertStringNotContainsString('secret-word', print_r($door->runtime(), true));
    }

    private function door(bool $extension, ?string $folder, ?string $problem, ?MemoryLogger $log = null): Door
    {
        return new class($extension, $folder, $problem, new ConnectionSettings(), new RuntimeSettings(new ExtensionConfiguration()),
            $log ?? new MemoryLogger()) extends Door {
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
