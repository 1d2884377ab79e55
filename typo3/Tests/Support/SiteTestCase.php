<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Support;

use NrLlmRuntime\Typo3\Event\Events;
use NrLlmRuntime\Typo3\Repository\LeasedAgentRunRepositoryFactory;
use NrLlmRuntime\Typo3\Repository\LeaseKeeper;
use NrLlmRuntime\Typo3\Repository\UnhandledRuns;
use NrLlmRuntime\Typo3\Runtime\RuntimeLocator;
use NrLlmRuntime\Typo3\Settings\ConnectionSettings;
use NrLlmRuntime\Typo3\Settings\RuntimeSettings;
use PHPUnit\Framework\TestCase;
use Psr\Container\ContainerInterface;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use TYPO3\CMS\Core\Configuration\ExtensionConfiguration;
use TYPO3\CMS\Core\Console\CommandRegistry;

/**
 * A test with a database of its own and a site on it.
 */
abstract class SiteTestCase extends TestCase
{
    protected Database $db;
    protected ?ContainerInterface $site = null;
    /** Of the repository that repository() made last. */
    protected UnhandledRuns $unhandled;
    protected Listeners $listeners;

    protected function setUp(): void
    {
        $this->db = new Database();
        self::forgetWhatWasLogged();
        \Netresearch\NrLlm\Service\Agent\AgentRuntime::$step = null;
        \Netresearch\NrLlm\Service\Agent\AgentRuntime::$after = null;
        \Netresearch\NrLlm\Service\Agent\AgentRuntime::$steps = 2;
        \Netresearch\NrLlm\Service\Agent\AgentRuntime::$ran = [];
    }

    protected function tearDown(): void
    {
        $this->site = null;
        gc_collect_cycles();
        $this->db->drop();
        gc_collect_cycles();
    }

    /**
     * @param (\Closure(ContainerBuilder): void)|null $more
     */
    protected function site(?\Closure $more = null, bool $withBus = true): ContainerInterface
    {
        return $this->site ??= Site::build([Site::nrLlmFolder(), Site::typo3Folder()], $more, $withBus);
    }

    protected function command(string $name): Command
    {
        return $this->site()->get(CommandRegistry::class)->get($name);
    }

    protected function log(): MemoryLogger
    {
        return $this->site()->get(MemoryLogger::class);
    }

    /**
     * What the proxy of nr_llm's repository calls, made by hand: symfony 5.4 cannot write proxies
     * of interfaces, the override is tested there too.
     *
     * @return array{object, LeaseKeeper, MemoryLogger}
     */
    protected function repository(): array
    {
        $log = new MemoryLogger();
        $connection = new ConnectionSettings();
        $settings = new RuntimeSettings(new ExtensionConfiguration());
        $locator = new RuntimeLocator($connection, $settings, $log);
        $keeper = new LeaseKeeper($locator, $settings, $log);
        $this->unhandled = new UnhandledRuns();
        $this->listeners = new Listeners($this->site());
        $inner = $this->site()->get('Netresearch\NrLlm\Service\Tool\AgentRunRepository');
        $factory = new LeasedAgentRunRepositoryFactory(
            $inner,
            $locator,
            $keeper,
            $settings,
            $this->unhandled,
            new Events($log, $this->listeners),
            $log,
        );

        return [$factory->create(), $keeper, $log];
    }

    /**
     * "Once" is once a process, and the tests share one.
     */
    protected static function forgetWhatWasLogged(): void
    {
        (new \ReflectionClass(RuntimeLocator::class))->setStaticPropertyValue('logged', []);
    }

    /**
     * The way to the runtime that this test run uses: extension or ffi.
     */
    protected static function binding(): string
    {
        return getenv('NRLLM_TYPO3_BINDING') === 'ffi' ? 'ffi' : 'extension';
    }

    protected static function hasProxies(): bool
    {
        return method_exists('Symfony\Component\VarExporter\ProxyHelper', 'generateLazyProxy');
    }

    /**
     * Waits until something holds that another thread or process brings about; fails after the
     * time.
     */
    protected static function eventually(\Closure $holds, float $seconds, string $what): void
    {
        for ($until = microtime(true) + $seconds; !$holds();) {
            if (microtime(true) > $until) {
                self::fail('Not within ' . $seconds . ' s: ' . $what);
            }
            usleep(20000);
        }
        self::assertTrue(true);
    }
}
