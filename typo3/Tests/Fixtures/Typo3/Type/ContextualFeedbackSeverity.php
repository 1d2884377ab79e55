<?php

declare(strict_types=1);

namespace TYPO3\CMS\Core\Type;

/** Stands in for TYPO3's enum. */
enum ContextualFeedbackSeverity: int
{
    case NOTICE = -2;
    case INFO = -1;
    case OK = 0;
    case WARNING = 1;
    case ERROR = 2;
}
