<?php

declare(strict_types=1);

namespace TYPO3\CMS\Core\Database\Event;

/** Stands in for TYPO3's event: the texts of all ext_tables.sql files. */
final class AlterTableDefinitionStatementsEvent
{
    public function __construct(private array $sqlData) {}

    public function getSqlData(): array
    {
        return $this->sqlData;
    }

    public function setSqlData(array $sqlData): void
    {
        $this->sqlData = $sqlData;
    }
}
