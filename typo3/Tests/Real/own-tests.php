<?php

declare(strict_types=1);

// PHPUnit's bootstrap for nr_llm's own tests on a real site. Classes of the tests are looked for in
// NRLLM_REAL_COPIES first, where run.php puts those that it has to change.

$site = (string)getenv('NRLLM_REAL_SITE');
require $site . '/vendor/autoload.php';
spl_autoload_register(static function (string $class) use ($site): void {
    $prefix = 'Netresearch\\NrLlm\\Tests\\';
    if (!str_starts_with($class, $prefix)) {
        return;
    }
    foreach ([(string)getenv('NRLLM_REAL_COPIES'), $site . '/vendor/netresearch/nr-llm/Tests'] as $folder) {
        $file = $folder . '/' . str_replace('\\', '/', substr($class, strlen($prefix))) . '.php';
        if (is_file($file)) {
            require_once $file;

            return;
        }
    }
}, true, true);
$base = new \TYPO3\TestingFramework\Core\Testbase();
$base->defineOriginalRootPath();
$base->createDirectory(constant('ORIGINAL_ROOT') . 'typo3temp/var/tests');
$base->createDirectory(constant('ORIGINAL_ROOT') . 'typo3temp/var/transient');
