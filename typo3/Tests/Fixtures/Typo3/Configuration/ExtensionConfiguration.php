<?php

declare(strict_types=1);

namespace TYPO3\CMS\Core\Configuration;

/** Stands in for TYPO3's: throws where an extension was never configured, as the real one does. */
class ExtensionConfiguration
{
    public function get(string $extension, string $path = ''): mixed
    {
        $values = $GLOBALS['TYPO3_CONF_VARS']['EXTENSIONS'][$extension] ?? throw new \RuntimeException('No extension configuration for extension ' . $extension . ' found.');

        return $path === '' ? $values : $values[$path];
    }
}
