<?php

declare(strict_types=1);

namespace TYPO3\CMS\Reports\Registry;

use TYPO3\CMS\Reports\StatusProviderInterface;

/** Stands in for the registry of EXT:reports. */
class StatusRegistry
{
    /** @var list<StatusProviderInterface> */
    public array $providers = [];

    public function add(StatusProviderInterface $provider): void
    {
        $this->providers[] = $provider;
    }
}
