<?php

declare(strict_types=1);

namespace TYPO3\CMS\Dashboard\Widgets;

/** Stands in for the configuration that EXT:dashboard makes from a widget's tag. */
class WidgetConfiguration
{
    public function __construct(public readonly array $tag) {}
}
