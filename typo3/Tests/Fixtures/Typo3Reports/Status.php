<?php

declare(strict_types=1);

namespace TYPO3\CMS\Reports;

use TYPO3\CMS\Core\Type\ContextualFeedbackSeverity;

/** Stands in for the status of EXT:reports. */
class Status
{
    public function __construct(
        public readonly string $title,
        public readonly string $value,
        public readonly string $message = '',
        public readonly ContextualFeedbackSeverity $severity = ContextualFeedbackSeverity::OK,
    ) {}
}
