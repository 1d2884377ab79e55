<?php

declare(strict_types=1);

namespace TYPO3\CMS\Reports;

/** Stands in for the interface of EXT:reports. */
interface StatusProviderInterface
{
    public function getStatus(): array;

    public function getLabel(): string;
}
