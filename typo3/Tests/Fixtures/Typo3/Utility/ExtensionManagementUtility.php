<?php

declare(strict_types=1);

namespace TYPO3\CMS\Core\Utility;

/**
 * Stands in for TYPO3's: the version in an extension's own manifest, also where Composer does not
 * know the extension.
 */
final class ExtensionManagementUtility
{
    /** @var array<string, string> */
    public static array $versions = ['nrllm_runtime' => '0.1.0', 'nr_llm' => '0.33.0'];

    public static function getExtensionVersion(string $key): string
    {
        return self::$versions[$key] ?? '';
    }
}
