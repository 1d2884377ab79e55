<?php

declare(strict_types=1);

use NrLlmRuntime\Typo3\DependencyInjection\OverrideNrLlmServicesPass;
use Symfony\Component\DependencyInjection\Compiler\PassConfig;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;

// A pass instead of entries in Services.yaml: entries that replace nr_llm's are lost, silently,
// when nr_llm is loaded after this package. Below 100 the attributes (#[AsCommand]) have become
// tags, above 0 TYPO3 has not yet written the commands into its registry.
return static function (ContainerConfigurator $configurator, ContainerBuilder $builder): void {
    $builder->addCompilerPass(new OverrideNrLlmServicesPass(), PassConfig::TYPE_BEFORE_OPTIMIZATION, 10);
};
