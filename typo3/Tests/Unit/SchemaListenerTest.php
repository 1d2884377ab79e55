<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Unit;

use NrLlmRuntime\Typo3\EventListener\OfferKeyOnlyToExistingTable;
use PHPUnit\Framework\TestCase;
use TYPO3\CMS\Core\Database\Event\AlterTableDefinitionStatementsEvent;

final class SchemaListenerTest extends TestCase
{
    public function testTheKeyIsOfferedOnlyWhereTheTableIsDeclared(): void
    {
        $own = (string)file_get_contents(dirname(__DIR__, 2) . '/ext_tables.sql');
        self::assertMatchesRegularExpression('/KEY \w+ \(status, lease_expires\)/', $own);
        $pages = 'CREATE TABLE pages (uid int);';
        $event = new AlterTableDefinitionStatementsEvent([$pages, $own, "CREATE TABLE tx_nrllm_agentrun_event (\n run int\n);"]);
        (new OfferKeyOnlyToExistingTable())($event);
        self::assertNotContains($own, $event->getSqlData());
        self::assertCount(2, $event->getSqlData());
        foreach (["CREATE TABLE tx_nrllm_agentrun (\n uid int\n);",
            'create table if not exists `tx_nrllm_agentrun` (uid int);'] as $declared) {
            $event = new AlterTableDefinitionStatementsEvent([$pages, $own, $declared]);
            (new OfferKeyOnlyToExistingTable())($event);
            self::assertSame([$pages, $own, $declared], $event->getSqlData());
        }
    }
}
