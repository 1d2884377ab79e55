<?php

declare(strict_types=1);

namespace TYPO3\CMS\Core\Information;

/** Stands in for TYPO3's version. */
class Typo3Version
{
    public static string $version = '13.4.18';

    public function getVersion(): string
    {
        return self::$version;
    }

    public function getMajorVersion(): int
    {
        return (int)self::$version;
    }
}
