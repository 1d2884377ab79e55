<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Unit;

use NrLlmRuntime\Typo3\Settings\ConnectionSettings;
use NrLlmRuntime\Typo3\Settings\RuntimeSettings;
use NrLlmRuntime\Typo3\Settings\SettingsException;
use PHPUnit\Framework\TestCase;
use TYPO3\CMS\Core\Configuration\ExtensionConfiguration;

final class SettingsTest extends TestCase
{
    private const PLAIN = ['driver' => 'mysqli', 'host' => 'db', 'port' => 3306, 'user' => 'u', 'password' => 'p@ss:w/o#rd?%41&+ ü',
        'dbname' => 'd', 'charset' => 'utf8mb4'];

    protected function tearDown(): void
    {
        unset($GLOBALS['TYPO3_CONF_VARS']);
    }

    public function testTheSettingsOfTheMappedConnectionAreHandedOver(): void
    {
        $settings = self::with(
            ['Default' => ['driver' => 'pdo_pgsql'], 'Runs' => self::PLAIN],
            ['tx_nrllm_agentrun' => 'Runs', 'pages' => 'Default'],
        );
        self::assertSame('Runs', $settings->connectionName());
        self::assertSame(self::PLAIN, $settings->forRuntime());
        self::assertTrue($settings->isSupported());
        $settings = self::with(['Default' => ['driver' => 'pdo_pgsql'], 'Runs' => self::PLAIN], null);
        self::assertSame('Default', $settings->connectionName());
        self::assertFalse($settings->isSupported());
        self::assertFalse(self::with(['Default' => ['driver' => 'pdo_sqlite', 'path' => '/x']], null)->isSupported());
    }

    public function testEveryKeyThatMattersIsHandedOverAsItIsWritten(): void
    {
        $given = self::PLAIN + [
            'unix_socket' => '/run/mysqld/mysqld.sock', 'ssl_ca' => '/ca.pem', 'ssl_cert' => '/c.pem', 'ssl_key' => '/k.pem',
            'ssl_capath' => '/cas', 'ssl_cipher' => 'X',
            'driverOptions' => ['flags' => 2048, 1009 => '/ca.pem', 1014 => false],
        ];
        $not = [
            'initCommands' => "SET sql_mode=''", 'wrapperClass' => 'X', 'persistent' => true, 'tableoptions' => ['charset' => 'utf8'],
            'defaultTableOptions' => [],
            'driverMiddlewares' => [], 'collate' => 'x', 'url' => '',
        ];
        self::assertSame($given, self::with(['Default' => $given + $not], null)->forRuntime());
    }

    public function testPortsAndUrls(): void
    {
        self::assertSame(3307, self::with(['Default' => ['port' => '3307'] + self::PLAIN], null)->forRuntime()['port']);
        $settings = self::with(['Default' => ['url' => 'pdo-mysql://web:s%40crt@db2:3310/site?charset=utf8mb4&unix_socket=/s']
            + self::PLAIN], null)->forRuntime();
        self::assertSame(
            ['driver' => 'pdo_mysql', 'host' => 'db2', 'port' => 3310, 'user' => 'web', 'password' => 's@crt', 'dbname' => 'site',
                'charset' => 'utf8mb4', 'unix_socket' => '/s'],
            $settings,
        );
        try {
            self::with(['Default' => ['url' => 'mysqli://u:top-secret@db:99999/x'] + self::PLAIN], null)->forRuntime();
            self::fail('a malformed URL');
        } catch (SettingsException $error) {
            self::assertSame('The "url" of the database connection "Default" cannot be parsed.', $error->getMessage());
            self::assertNull($error->getPrevious());
        }
        try {
            self::with([], ['tx_nrllm_agentrun' => 'Nowhere'])->forRuntime();
            self::fail('no such connection');
        } catch (SettingsException $error) {
            self::assertStringContainsString('"Nowhere" is not configured', $error->getMessage());
        }
    }

    public function testTheSameDatabaseUnderTwoNames(): void
    {
        $cases = [
            [self::PLAIN, true],
            [['port' => '3306', 'host' => 'DB'] + self::PLAIN, true],
            [['user' => 'other', 'password' => 'x'] + self::PLAIN, true],
            [['dbname' => 'e'] + self::PLAIN, false],
            [['port' => 3307] + self::PLAIN, false],
            [['host' => 'localhost'] + self::PLAIN, false],
        ];
        foreach ($cases as [$other, $same]) {
            $settings = self::with(['Default' => $other, 'Runs' => self::PLAIN], ['tx_nrllm_agentrun' => 'Runs']);
            self::assertSame($same, $settings->isRunTablesDatabase('Default'), json_encode($other));
        }
        self::assertFalse(self::with(['Runs' => self::PLAIN], ['tx_nrllm_agentrun' => 'Runs'])->isRunTablesDatabase('Default'));
    }

    public function testInitialCommandsAreReportedWhereTheyMatter(): void
    {
        $cases = [
            [['initCommands' => "SET NAMES utf8\nSET sql_mode=''"], ['initCommands of the connection "Default" set sql_mode']],
            [['initCommands' => 'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED'], ['set the isolation level']],
            [['initCommands' => "SET @@sql_mode = ''\nSET tx_isolation='READ-COMMITTED'"], ['set sql_mode and the isolation level']],
            [['driverOptions' => [3 => 'SET sql_mode=""']], ['driverOptions (init command) of the connection "Default" set sql_mode']],
            [['driver' => 'pdo_mysql', 'driverOptions' => [1002 => 'SET sql_mode=""']], ['set sql_mode']],
            [['driver' => 'pdo_mysql', 'driverOptions' => [3 => 'SET sql_mode=""']], []],
            [['initCommands' => 'SET NAMES utf8mb4'], []],
            [['initCommands' => ''], []],
            [[], []],
        ];
        foreach ($cases as [$given, $said]) {
            $findings = self::with(['Default' => $given + self::PLAIN], null)->initCommandFindings();
            self::assertCount(count($said), $findings, json_encode($given));
            foreach ($said as $position => $text) {
                self::assertStringContainsString($text, $findings[$position]);
            }
        }
    }

    public function testTheExtensionConfigurationAndItsDefaults(): void
    {
        unset($GLOBALS['TYPO3_CONF_VARS']);
        $default = self::settings(null);
        self::assertSame(
            [true, 60, 3600, 86400, 'caller', 'php', '', []],
            [$default->keepsLeases(), $default->leaseSeconds(), $default->maxSilentSeconds(), $default->maxSeconds(), $default->clock(),
                $default->fallback(), $default->transport(), $default->problems()],
        );
        self::assertSame(
            ['table' => 'tx_nrllm_agentrun', 'clock' => 'caller', 'connectTimeoutMs' => 3000, 'queryTimeoutMs' => 5000],
            $default->forRuntime(),
        );
        $set = self::settings(['keeper' => '0', 'leaseSeconds' => '30', 'maxSilentSeconds' => 600, 'maxSeconds' => ' 7200 ',
            'clock' => 'database', 'fallback' => 'none', 'transport' => ' doctrine ']);
        self::assertSame(
            [false, 30, 600, 7200, 'database', 'none', 'doctrine', []],
            [$set->keepsLeases(), $set->leaseSeconds(), $set->maxSilentSeconds(), $set->maxSeconds(), $set->clock(), $set->fallback(),
                $set->transport(), $set->problems()],
        );
        $wrong = self::settings(['leaseSeconds' => 'long', 'maxSilentSeconds' => '0', 'clock' => 'wall', 'fallback' => 'maybe',
            'queryTimeoutMs' => '-4']);
        self::assertSame(
            [60, 3600, 'caller', 'php', 5000],
            [$wrong->leaseSeconds(), $wrong->maxSilentSeconds(), $wrong->clock(), $wrong->fallback(),
                $wrong->forRuntime()['queryTimeoutMs']],
        );
        self::assertCount(5, $wrong->problems());
        self::assertSame(
            'The extension setting leaseSeconds must be a whole number from 2 to 86400, not "long"; 60 is used instead. Correct it '
            . 'in Admin Tools > Settings > Extension Configuration > nrllm_runtime, or in TYPO3_CONF_VARS[EXTENSIONS][nrllm_runtime].',
            $wrong->problems()[0],
        );
    }

    public function testTheTemplateOffersWhatIsReadWithTheSameDefaults(): void
    {
        $template = (string)file_get_contents(dirname(__DIR__, 2) . '/ext_conf_template.txt');
        preg_match_all('/^(\w+) =[ ]*(.*)$/m', $template, $found);
        $values = array_combine($found[1], $found[2]);
        self::assertSame(['keeper', 'leaseSeconds', 'maxSilentSeconds', 'maxSeconds', 'clock', 'fallback', 'transport', 'connectTimeoutMs',
            'queryTimeoutMs'], array_keys($values));
        $default = self::settings(null);
        $read = self::settings($values);
        foreach (['keepsLeases', 'leaseSeconds', 'maxSilentSeconds', 'maxSeconds', 'clock', 'fallback', 'transport', 'forRuntime',
            'problems'] as $method) {
            self::assertSame($default->{$method}(), $read->{$method}(), $method);
        }
    }

    public function testLabelsOfSettingsSurviveTypo3sParser(): void
    {
        // TYPO3 splits the comment at every semicolon, and the label at its first colon.
        preg_match_all('/^# (.+)$/m', (string)file_get_contents(dirname(__DIR__, 2) . '/ext_conf_template.txt'), $comments);
        self::assertCount(9, $comments[1]);
        foreach ($comments[1] as $comment) {
            $parts = array_map('trim', explode(';', $comment));
            self::assertSame(['cat=', 'type', 'labe'], array_map(static fn(string $part): string => substr($part, 0, 4), $parts), $comment);
            self::assertStringNotContainsString(':', substr($parts[2], strlen('label=')), $comment);
        }
    }

    public function testAWrongKeeperAndAnUnknownSettingAreNamed(): void
    {
        $settings = self::settings(['keeper' => 'maybe', 'leaseSecond' => '30']);
        self::assertTrue($settings->keepsLeases());
        self::assertCount(2, $settings->problems());
        self::assertStringStartsWith('The extension setting keeper must be 0 or 1, not "maybe"; 1 is used instead. ', $settings->problems()[0]);
        self::assertStringStartsWith('There is no extension setting "leaseSecond"; known are keeper, ', $settings->problems()[1]);
        foreach (['off', 'No', '0', ' false ', false, 0] as $off) {
            self::assertFalse(self::settings(['keeper' => $off])->keepsLeases());
        }
    }

    /**
     * @param array<string, mixed>       $connections
     * @param array<string, string>|null $mapping
     */
    private static function with(array $connections, ?array $mapping): ConnectionSettings
    {
        $GLOBALS['TYPO3_CONF_VARS']['DB'] = ['Connections' => $connections] + ($mapping === null ? [] : ['TableMapping' => $mapping]);

        return new ConnectionSettings();
    }

    /**
     * @param array<string, mixed>|null $values null: never configured, where TYPO3 throws
     */
    private static function settings(?array $values): RuntimeSettings
    {
        unset($GLOBALS['TYPO3_CONF_VARS']['EXTENSIONS']);
        if ($values !== null) {
            $GLOBALS['TYPO3_CONF_VARS']['EXTENSIONS']['nrllm_runtime'] = $values;
        }

        return new RuntimeSettings(new ExtensionConfiguration());
    }
}
