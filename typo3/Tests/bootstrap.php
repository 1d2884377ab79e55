<?php

declare(strict_types=1);

// Debian's packages bring an autoload file each, found over the include path; ours, and the
// stand-ins for nr_llm and TYPO3, follow here. NRLLM_TYPO3_BACKEND=none: EXT:reports and
// EXT:dashboard are not installed. NRLLM_TYPO3_VARIANT: none (nr_llm is not installed), Added,
// Changed (other releases' interfaces); the 0.33 shape otherwise.
error_reporting(E_ALL & ~E_DEPRECATED & ~E_USER_DEPRECATED);
foreach ([
    'Psr/Log', 'Psr/Container', 'Symfony/Component/Console', 'Symfony/Component/Config', 'Symfony/Component/Yaml',
    'Symfony/Component/VarExporter',
    'Symfony/Component/DependencyInjection', 'Symfony/Component/Messenger', 'Symfony/Component/Messenger/Bridge/Doctrine', 'Doctrine/DBAL',
    'JsonSchema',
] as $library) {
    $file = stream_resolve_include_path($library . '/autoload.php');
    if ($file !== false) {
        require_once $file;
    } elseif ($library !== 'Symfony/Component/Messenger/Bridge/Doctrine') {
        // In symfony 5.4 the doctrine transport is part of another package's autoload file, or
        // found by name below.
        fwrite(STDERR, "The tests need Debian's package of $library (bin/setup installs it).\n");
        exit(2);
    }
}
// NRLLM_TYPO3_BINDING=ffi: the bridge in the place of the extension, with the library of
// NRLLM_FFI_LIBRARY.
if (getenv('NRLLM_TYPO3_BINDING') === 'ffi') {
    define('NRLLM_RUNTIME_LIBRARY', (string)getenv('NRLLM_FFI_LIBRARY'));
    require_once dirname(__DIR__, 2) . '/php-ffi/autoload.php';
}
spl_autoload_register(static function (string $class): void {
    $variant = (string)getenv('NRLLM_TYPO3_VARIANT');
    $backend = (string)getenv('NRLLM_TYPO3_BACKEND');
    $folders = [
        'NrLlmRuntime\Typo3\Tests\\' => [__DIR__],
        'NrLlmRuntime\Typo3\\' => [dirname(__DIR__) . '/Classes'],
        'TYPO3\CMS\Core\\' => [__DIR__ . '/Fixtures/Typo3'],
        'Netresearch\NrLlm\\' => $variant === 'none' ? []
            : [__DIR__ . '/Fixtures/Variants/' . $variant, __DIR__ . '/Fixtures/NrLlm/Classes'],
        'Psr\EventDispatcher\\' => [__DIR__ . '/Fixtures/Psr/EventDispatcher'],
        'Symfony\Contracts\EventDispatcher\\' => [__DIR__ . '/Fixtures/SymfonyContracts/EventDispatcher'],
        'TYPO3\CMS\Reports\\' => $backend === 'none' ? [] : [__DIR__ . '/Fixtures/Typo3Reports'],
        'TYPO3\CMS\Dashboard\\' => $backend === 'none' ? [] : [__DIR__ . '/Fixtures/Typo3Dashboard'],
        'Symfony\Component\Messenger\Bridge\Doctrine\\' => array_map(
            static fn(string $path): string => $path . '/Symfony/Component/Messenger/Bridge/Doctrine',
            explode(PATH_SEPARATOR, (string)get_include_path()),
        ),
    ];
    foreach ($folders as $prefix => $places) {
        if (!str_starts_with($class, $prefix)) {
            continue;
        }
        foreach ($places as $place) {
            $file = $place . '/' . str_replace('\\', '/', substr($class, strlen($prefix))) . '.php';
            if (is_file($file)) {
                require_once $file;

                return;
            }
        }
        if ($prefix === 'NrLlmRuntime\Typo3\Tests\\') {
            return;
        }
    }
});
