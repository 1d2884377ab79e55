<?php

declare(strict_types=1);

namespace TYPO3\CMS\Dashboard;

/** Stands in for the registry of EXT:dashboard. */
class WidgetRegistry
{
    /** @var array<string, object> */
    public array $widgets = [];

    public function registerWidget(string $identifier, object $widget): void
    {
        $this->widgets[$identifier] = $widget;
    }
}
