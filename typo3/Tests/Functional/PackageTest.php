<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Functional;

use NrLlmRuntime\Typo3\Tests\Support\Site;
use NrLlmRuntime\Typo3\Tests\Support\SiteTestCase;

/**
 * The package as TYPO3 and Composer read it, and its documentation.
 */
final class PackageTest extends SiteTestCase
{
    public function testComposerAndClassicModeSayTheSame(): void
    {
        $composer = json_decode((string)file_get_contents(Site::typo3Folder() . '/composer.json'), true, 16, JSON_THROW_ON_ERROR);
        self::assertSame('nrllm-runtime/typo3', $composer['name']);
        self::assertSame('typo3-cms-extension', $composer['type']);
        self::assertSame('GPL-2.0-or-later', $composer['license']);
        self::assertSame('nrllm_runtime', $composer['extra']['typo3/cms']['extension-key']);
        self::assertSame(['NrLlmRuntime\Typo3\\' => 'Classes/'], $composer['autoload']['psr-4']);
        $_EXTKEY = 'nrllm_runtime';
        $EM_CONF = [];
        require Site::typo3Folder() . '/ext_emconf.php';
        self::assertSame(\NrLlmRuntime::VERSION, $EM_CONF[$_EXTKEY]['version']);
        self::assertSame('13.4.0-14.99.99', $EM_CONF[$_EXTKEY]['constraints']['depends']['typo3']);
        self::assertSame('^13.4 || ^14.0', $composer['require']['typo3/cms-core']);
    }

    public function testTheKeyOfExtTablesSqlIsTheOneTheRuntimeLooksFor(): void
    {
        preg_match('/KEY (\w+) (\([^)]*\))/', (string)file_get_contents(Site::typo3Folder() . '/ext_tables.sql'), $key);
        $runtime = new \NrLlmRuntime($this->db->connection());
        self::assertFalse($runtime->status()['leaseKey']);
        $this->db->pdo->exec("ALTER TABLE tx_nrllm_agentrun ADD KEY $key[1] $key[2]");
        self::assertTrue($runtime->status()['leaseKey']);
    }

    public function testTheIconIsAnImage(): void
    {
        $icon = simplexml_load_file(Site::typo3Folder() . '/Resources/Public/Icons/Extension.svg');
        self::assertNotFalse($icon);
        self::assertSame('svg', $icon->getName());
    }

    public function testEveryOptionAndSettingIsDocumented(): void
    {
        $documentation = '';
        foreach (glob(Site::typo3Folder() . '/Documentation/*.md') ?: [] as $page) {
            $documentation .= file_get_contents($page);
        }
        foreach (['nrllm:agent:reap', 'nrllm:agent:status', 'nrllm:agent:work'] as $name) {
            self::assertStringContainsString($name, $documentation);
            foreach ($this->command($name)->getDefinition()->getOptions() as $option) {
                self::assertStringContainsString('--' . $option->getName(), $documentation, $name);
            }
        }
        preg_match_all('/^(\w+) =/m', (string)file_get_contents(Site::typo3Folder() . '/ext_conf_template.txt'), $settings);
        foreach ($settings[1] as $setting) {
            self::assertStringContainsString('`' . $setting . '`', $documentation);
        }
        // Links between the pages lead somewhere.
        preg_match_all('/\]\(([\w\/.]+\.md)\)/', $documentation, $links);
        foreach ($links[1] as $link) {
            self::assertFileExists(Site::typo3Folder() . '/Documentation/' . $link);
        }
    }

    public function testTheDocumentedSupervisorsNeverGiveUp(): void
    {
        $page = (string)file_get_contents(dirname(__DIR__, 2) . '/Documentation/Operation.md');
        self::assertSame(2, preg_match_all('/```ini\n(.*?)```/s', $page, $blocks));
        [$unit, $programs] = $blocks[1];
        self::assertMatchesRegularExpression('/^Restart=always$/m', $unit);
        self::assertMatchesRegularExpression('/^StartLimitIntervalSec=0$/m', $unit);
        $programs = preg_split('/^(?=\[program:)/m', $programs, -1, PREG_SPLIT_NO_EMPTY);
        self::assertCount(2, (array)$programs);
        foreach ((array)$programs as $program) {
            self::assertMatchesRegularExpression('/^autorestart=true$/m', $program);
            self::assertSame(1, preg_match('/^startretries=(\d+)$/m', $program, $retries), $program);
            self::assertGreaterThanOrEqual(1000000, (int)$retries[1]);
        }
        // A stop waits for the hand-over of a run.
        foreach ([[$unit, 'TimeoutStopSec'], [$programs[0], 'stopwaitsecs']] as [$text, $setting]) {
            self::assertSame(1, preg_match('/ --drain=(\d+)/', $text, $drain), $text);
            self::assertSame(1, preg_match('/^' . $setting . '=(\d+)$/m', $text, $stop), $text);
            self::assertGreaterThan((int)$drain[1], (int)$stop[1]);
        }
    }

    public function testNoFileOfThePackageLoadsNrLlmOrTypo3WhenItIsRead(): void
    {
        // What would be a fatal error where nr_llm is not installed or has another shape: a class
        // that extends or implements its classes.
        foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator(
            Site::typo3Folder() . '/Classes',
            \FilesystemIterator::SKIP_DOTS,
        )) as $file) {
            $code = (string)file_get_contents((string)$file);
            self::assertDoesNotMatchRegularExpression('/^use Netresearch/m', $code, (string)$file);
            self::assertDoesNotMatchRegularExpression('/(extends|implements) \\\\?(Netresearch|TYPO3)/', $code, (string)$file);
            self::assertStringNotContainsString('#[AsCommand', str_replace('Without #[AsCommand]', '', $code), (string)$file);
        }
    }
}
