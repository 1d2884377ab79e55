<?php

declare(strict_types=1);

namespace TYPO3\CMS\Dashboard\Widgets;

/**
 * Stands in for the list widget of EXT:dashboard, with the arguments that a registration gives it.
 */
class ListWidget
{
    public function __construct(
        public readonly WidgetConfiguration $configuration,
        public readonly ListDataProviderInterface $dataProvider,
    ) {}
}
