<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\EventListener;

use NrLlmRuntime\Typo3\Settings\ConnectionSettings;
use TYPO3\CMS\Core\Database\Event\AlterTableDefinitionStatementsEvent;

/**
 * Takes the statement of ext_tables.sql out again where no other extension declares the run table:
 * a table of nothing but a key cannot be created, and would stop the database comparison of the
 * whole site.
 */
final class OfferKeyOnlyToExistingTable
{
    public function __invoke(AlterTableDefinitionStatementsEvent $event): void
    {
        $own = trim((string)file_get_contents(dirname(__DIR__, 2) . '/ext_tables.sql'));
        $others = [];
        $declared = false;
        foreach ($event->getSqlData() as $key => $sql) {
            if (is_string($sql) && trim($sql) === $own) {
                continue;
            }
            $others[$key] = $sql;
            $declared = $declared || (is_string($sql)
                && preg_match(
                    '/\bCREATE\s+TABLE\s+(IF\s+NOT\s+EXISTS\s+)?[`"]?' . ConnectionSettings::RUN_TABLE . '[`"]?\s*\(/i',
                    $sql,
                ) === 1);
        }
        if (!$declared) {
            $event->setSqlData($others);
        }
    }
}
