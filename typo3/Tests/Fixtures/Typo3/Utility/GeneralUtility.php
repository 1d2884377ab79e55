<?php

declare(strict_types=1);

namespace TYPO3\CMS\Core\Utility;

/** Stands in for what TYPO3 writes into its dumped container in the place of `new`. */
final class GeneralUtility
{
    public static function makeInstanceForDi(string $class, mixed ...$arguments): object
    {
        return new $class(...$arguments);
    }
}
