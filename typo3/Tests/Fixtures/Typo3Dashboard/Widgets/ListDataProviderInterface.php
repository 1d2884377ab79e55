<?php

declare(strict_types=1);

namespace TYPO3\CMS\Dashboard\Widgets;

/** Stands in for the interface of EXT:dashboard. */
interface ListDataProviderInterface
{
    public function getItems(): array;
}
