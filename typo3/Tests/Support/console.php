<?php

declare(strict_types=1);

// One command of a site in a process of its own, as `vendor/bin/typo3 COMMAND OPTIONS` is;
// TYPO3_CONF_VARS as JSON in NRLLM_TYPO3_CONF.

namespace NrLlmRuntime\Typo3\Tests\Support;

use Symfony\Component\Console\Application;
use TYPO3\CMS\Core\Console\CommandRegistry;

require dirname(__DIR__) . '/bootstrap.php';

$GLOBALS['TYPO3_CONF_VARS'] = json_decode((string)getenv('NRLLM_TYPO3_CONF'), true) ?: [];
if (is_file((string)getenv('NRLLM_TYPO3_PREPARE'))) {
    require (string)getenv('NRLLM_TYPO3_PREPARE');
}
$registry = Site::build([Site::nrLlmFolder(), Site::typo3Folder()], HandProxy::addWhereNeeded(...))->get(CommandRegistry::class);
$application = new Application('site', '1');
$application->setCatchExceptions(true);
foreach (array_keys($registry->commands) as $name) {
    $command = $registry->get($name);
    method_exists($application, 'addCommand') ? $application->addCommand($command) : $application->add($command);
}
$application->run();
