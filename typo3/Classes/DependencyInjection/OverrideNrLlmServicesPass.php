<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\DependencyInjection;

use NrLlmRuntime\Typo3\Command\ReapCommand;
use NrLlmRuntime\Typo3\Command\StatusCommand;
use NrLlmRuntime\Typo3\Command\WorkCommand;
use NrLlmRuntime\Typo3\Dashboard\AgentRunsDataProvider;
use NrLlmRuntime\Typo3\Database\DatabaseConnections;
use NrLlmRuntime\Typo3\Database\SchemaProblem;
use NrLlmRuntime\Typo3\EventListener\ResendMessageOfUnhandledRun;
use NrLlmRuntime\Typo3\Reap\NextExpiry;
use NrLlmRuntime\Typo3\Reap\PayloadCheck;
use NrLlmRuntime\Typo3\Reap\Reaper;
use NrLlmRuntime\Typo3\Reap\StrandedRunSweep;
use NrLlmRuntime\Typo3\Reports\AgentRunStatusProvider;
use NrLlmRuntime\Typo3\Repository\LeasedAgentRunRepositoryFactory;
use NrLlmRuntime\Typo3\Status\InstallationCheck;
use NrLlmRuntime\Typo3\Status\StatusReader;
use NrLlmRuntime\Typo3\WakeUp\RetryAfterMessageBus;
use NrLlmRuntime\Typo3\WakeUp\Routing;
use NrLlmRuntime\Typo3\WakeUp\WakeUps;
use NrLlmRuntime\Typo3\Work\DrainGuard;
use Symfony\Component\DependencyInjection\Argument\ServiceClosureArgument;
use Symfony\Component\DependencyInjection\Compiler\CompilerPassInterface;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\ContainerInterface;
use Symfony\Component\DependencyInjection\Definition;
use Symfony\Component\DependencyInjection\Reference;

/**
 * Replaces nr_llm's reaper command and decorates its run repository, in any load order: when passes
 * run, all extensions have been loaded. Where nr_llm is not installed, or not as expected, it
 * changes nothing and records the reason in ContainerFacts.
 */
final class OverrideNrLlmServicesPass implements CompilerPassInterface
{
    public const INTERFACE = 'Netresearch\NrLlm\Service\Tool\AgentRunRepositoryInterface';
    public const REAP = 'Netresearch\NrLlm\Command\ReapStaleAgentRunsCommand';
    public const STATUS = 'Netresearch\NrLlm\Command\AgentStatusCommand';
    public const RUNTIME = 'Netresearch\NrLlm\Service\Agent\AgentRuntimeInterface';
    public const RECOVERY = 'Netresearch\NrLlm\Service\Agent\QueuedRunFailureRecovery';
    public const CODEC = 'Netresearch\NrLlm\Service\Tool\AgentStateCodec';
    public const MESSAGE = 'Netresearch\NrLlm\Service\Agent\Queue\AgentRunQueuedMessage';
    public const BUS = 'Symfony\Component\Messenger\MessageBusInterface';
    public const SERIALIZER = 'Symfony\Component\Messenger\Transport\Serialization\SerializerInterface';
    public const REGISTRY = 'TYPO3\CMS\Core\Console\CommandRegistry';

    private const STATUS_PROVIDER = 'TYPO3\CMS\Reports\StatusProviderInterface';
    private const STATUS_REGISTRY = 'TYPO3\CMS\Reports\Registry\StatusRegistry';
    private const LIST_PROVIDER = 'TYPO3\CMS\Dashboard\Widgets\ListDataProviderInterface';
    private const LIST_WIDGET = 'TYPO3\CMS\Dashboard\Widgets\ListWidget';
    private const WIDGET_REGISTRY = 'TYPO3\CMS\Dashboard\WidgetRegistry';
    private const WIDGET = 'nrllm_runtime.dashboard.agent_runs';
    private const WORKER_EVENTS = ['WorkerMessageReceivedEvent' => 'received', 'WorkerMessageHandledEvent' => 'handled',
        'WorkerMessageFailedEvent' => 'handled'];

    public const STOCK_REAP = 'nrllm_runtime.nr_llm.reap';
    public const STOCK_RUNS = 'nrllm_runtime.nr_llm.runs';
    public const RUNS = 'nrllm_runtime.runs';

    public function process(ContainerBuilder $container): void
    {
        if (!$container->hasDefinition(ContainerFacts::class)) {
            // Services.yaml of this package was not loaded, or its services were removed:
            // nothing to take over with.
            return;
        }
        $facts = ['nrLlm' => false, 'reap' => '', 'repository' => '', 'statusCommand' => '', 'senders' => []];
        if (interface_exists(self::INTERFACE) && $container->has(self::INTERFACE)) {
            $facts['nrLlm'] = true;
            $facts['senders'] = $this->senders($container);
            $this->addHelpers($container);
            $facts['repository'] = $this->overrideRepository($container);
            $facts['reap'] = $this->overrideReap($container);
            $facts['statusCommand'] = $this->addStatus($container);
            $this->addWork($container);
            $this->addListeners($container);
            $this->addBackend($container);
            $this->prolongRetries($container);
        } else {
            $facts['reap'] = $facts['repository'] = 'nr_llm is not installed.';
        }
        $container->getDefinition(ContainerFacts::class)->setArguments([$facts]);
    }

    /**
     * Services that need nr_llm's or the messenger's, so that they exist only where those do.
     */
    private function addHelpers(ContainerBuilder $container): void
    {
        $this->add($container, Routing::class);
        $this->add($container, WakeUps::class)
            ->setArgument('$bus', $this->optional(self::BUS))
            ->setArgument('$serializer', $this->optional(self::SERIALIZER));
        $this->add($container, PayloadCheck::class)->setArgument('$codec', $this->optional(self::CODEC));
        foreach ([DatabaseConnections::class, SchemaProblem::class, StrandedRunSweep::class, NextExpiry::class, Reaper::class,
            DrainGuard::class, StatusReader::class] as $class) {
            $this->add($container, $class);
        }
        $this->add($container, InstallationCheck::class)
            ->setArgument('$registry', $this->optional(self::REGISTRY))
            ->setArgument('$runs', $this->optional(self::INTERFACE))
            ->setArgument('$ours', $this->optional(self::RUNS))
            ->setArgument('$factory', $this->optional(LeasedAgentRunRepositoryFactory::class));
    }

    /**
     * @return string why it is not overridden, '' where it is
     */
    private function overrideReap(ContainerBuilder $container): string
    {
        if (!$container->hasDefinition(self::REAP)) {
            return sprintf('nr_llm has no service %s.', self::REAP);
        }
        $stock = $container->getDefinition(self::REAP);
        // The original stays reachable under another name, for sites without the native runtime.
        // Its tags would list it a second time.
        $container->setDefinition(self::STOCK_REAP, (clone $stock)->setTags([])->setAutoconfigured(false)->setPublic(false));
        $container->setDefinition(self::REAP, $this->command(ReapCommand::class, 'nrllm:agent:reap', ReapCommand::DESCRIPTION, true)
            ->setArgument('$stock', new ServiceClosureArgument(new Reference(self::STOCK_REAP))));

        return '';
    }

    /**
     * A proxy of nr_llm's interface, written by Symfony while the container is dumped, that calls
     * LeasedAgentRunRepository. No class of this package implements the interface: one method more
     * in it would be a fatal error that takes the whole site down.
     *
     * @return string why it is not overridden, '' where it is
     */
    private function overrideRepository(ContainerBuilder $container): string
    {
        if (!class_exists('Symfony\Component\VarExporter\ProxyHelper')
            || !method_exists('Symfony\Component\VarExporter\ProxyHelper', 'generateLazyProxy')) {
            return 'symfony/var-exporter 6.2 or newer is needed for a proxy of an interface.';
        }
        try {
            // What Symfony will do when it dumps the container; there, a failure would take the
            // site down.
            \Symfony\Component\VarExporter\ProxyHelper::generateLazyProxy(null, [new \ReflectionClass(self::INTERFACE)]);
        } catch (\Throwable $error) {
            return 'No proxy of the interface can be made: ' . $error->getMessage();
        }
        $misfits = RepositoryShape::misfits(self::INTERFACE);
        $problem = $misfits === [] ? '' : 'This release of nr_llm has another AgentRunRepositoryInterface: ' . implode(' ', $misfits);
        $public = $container->hasAlias(self::INTERFACE)
            ? $container->getAlias(self::INTERFACE)->isPublic()
            : $container->getDefinition(self::INTERFACE)->isPublic();
        if ($container->hasAlias(self::INTERFACE)) {
            $inner = (string)$container->getAlias(self::INTERFACE);
        } else {
            $container->setDefinition(self::STOCK_RUNS, $container->getDefinition(self::INTERFACE)->setPublic(false));
            $container->removeDefinition(self::INTERFACE);
            $inner = self::STOCK_RUNS;
        }
        // With a problem the factory logs it and returns nr_llm's own repository.
        $this->add($container, LeasedAgentRunRepositoryFactory::class)->setArgument('$inner', new Reference($inner))->setArgument('$problem', $problem);
        $container->setDefinition(self::RUNS, (new Definition(self::INTERFACE))
            ->setFactory([new Reference(LeasedAgentRunRepositoryFactory::class), 'create'])
            ->setLazy(true));
        $container->setAlias(self::INTERFACE, self::RUNS)->setPublic($public);

        return $problem;
    }

    private function addStatus(ContainerBuilder $container): string
    {
        $name = $container->hasDefinition(self::STATUS) || $this->hasCommand($container, 'nrllm:agent:status')
            ? 'nrllm:runtime:status'
            : 'nrllm:agent:status';
        $container->setDefinition(StatusCommand::class, $this->command(StatusCommand::class, $name, StatusCommand::DESCRIPTION, true));

        return $name;
    }

    private function addWork(ContainerBuilder $container): void
    {
        if ($this->hasCommand($container, 'nrllm:agent:work') || !$container->has(self::RUNTIME)) {
            return;
        }
        // Not schedulable: it runs until it is stopped, under supervisor or systemd.
        $container->setDefinition(
            WorkCommand::class,
            $this->command(WorkCommand::class, 'nrllm:agent:work', WorkCommand::DESCRIPTION, false)
            ->setArgument('$runtime', new ServiceClosureArgument(new Reference(self::RUNTIME))),
        );
    }

    /**
     * The worker's events around a message: Symfony dispatches them by PSR-14.
     */
    private function addListeners(ContainerBuilder $container): void
    {
        $listener = $this->add($container, ResendMessageOfUnhandledRun::class)->setArgument('$bus', $this->optional(self::BUS))
            ->setPublic(true);
        foreach (self::WORKER_EVENTS as $event => $method) {
            $listener->addTag('event.listener', [
                'identifier' => 'nrllm-runtime/resend-message-of-unhandled-run/' . strtolower(substr($event, strlen('WorkerMessage'), -5)),
                'event' => 'Symfony\Component\Messenger\Event\\' . $event,
                'method' => $method,
            ]);
        }
    }

    /**
     * What the backend shows, where the system extensions for it are installed. Their interfaces
     * decide: a class that implements a missing interface would break the container of the whole
     * site.
     */
    private function addBackend(ContainerBuilder $container): void
    {
        if (interface_exists(self::STATUS_PROVIDER) && $container->has(self::STATUS_REGISTRY)) {
            $this->add($container, AgentRunStatusProvider::class)->setPublic(true)->addTag('reports.status');
        }
        if (interface_exists(self::LIST_PROVIDER) && class_exists(self::LIST_WIDGET) && $container->has(self::WIDGET_REGISTRY)) {
            $this->add($container, AgentRunsDataProvider::class);
            $container->setDefinition(self::WIDGET, (new Definition(self::LIST_WIDGET))
                ->setAutowired(true)
                ->setArgument('$dataProvider', new Reference(AgentRunsDataProvider::class))
                ->addTag('dashboard.widget', [
                    'identifier' => 'nrllm_runtime-agent-runs',
                    'groupNames' => 'systemInfo',
                    'title' => 'Agent runs',
                    'description' => 'Live, stale, queued, stranded and dead-lettered agent runs of nr_llm, and the longest wait.',
                    'iconIdentifier' => 'content-widget-list',
                    'height' => 'small',
                    'width' => 'small',
                ]));
        }
    }

    /**
     * Gives nr_llm's recovery after a failure a bus that observes the failure's own waiting time.
     */
    private function prolongRetries(ContainerBuilder $container): void
    {
        if (!$container->hasDefinition(self::RECOVERY) || !class_exists(self::RECOVERY) || !$container->has(self::BUS)) {
            return;
        }
        foreach ((new \ReflectionMethod(self::RECOVERY, '__construct'))->getParameters() as $parameter) {
            $type = $parameter->getType();
            if ($type instanceof \ReflectionNamedType && $type->getName() === self::BUS) {
                $this->add($container, RetryAfterMessageBus::class)->setArgument('$bus', new Reference(self::BUS));
                $container->getDefinition(self::RECOVERY)->setArgument(
                    '$' . $parameter->getName(),
                    new Reference(RetryAfterMessageBus::class),
                );
            }
        }
    }

    private function hasCommand(ContainerBuilder $container, string $name): bool
    {
        foreach ($container->findTaggedServiceIds('console.command') as $tags) {
            foreach ($tags as $tag) {
                if (in_array($name, explode('|', (string)($tag['command'] ?? '')), true)) {
                    return true;
                }
            }
        }

        return false;
    }

    /**
     * The transports that messages can be sent to. Of TYPO3's own doctrine transport it is known
     * which connection it opens; of another one it is not, so that is never written to directly.
     *
     * @return array<string, array{kind: string, queue: string, table: string}>
     */
    private function senders(ContainerBuilder $container): array
    {
        $senders = [];
        foreach ($container->findTaggedServiceIds('messenger.sender') as $id => $tags) {
            $definition = $container->findDefinition($id);
            $class = (string)($definition->getClass() ?? $id);
            $factory = $definition->getFactory();
            $maker = is_array($factory) ? (string)(is_object($factory[0]) && !$factory[0] instanceof Reference ? '' : $factory[0]) : '';
            $arguments = $definition->getArguments();
            $options = $arguments['$options'] ?? $arguments[0] ?? [];
            $options = is_array($options) ? $options : [];
            $kind = 'other';
            if ($maker === 'TYPO3\CMS\Core\Messenger\DoctrineTransportFactory') {
                $kind = 'doctrine';
            } elseif (ltrim($class, '\\') === 'Symfony\Component\Messenger\Transport\Sync\SyncTransport') {
                $kind = 'sync';
            }
            foreach ($tags as $tag) {
                $senders[(string)($tag['identifier'] ?? $tag['alias'] ?? $id)] = [
                    'kind' => $kind,
                    'queue' => is_string($options['queue_name'] ?? null) ? $options['queue_name'] : 'default',
                    'table' => is_string($options['table_name'] ?? null) ? $options['table_name'] : 'sys_messenger_messages',
                ];
            }
        }

        return $senders;
    }

    private function command(string $class, string $name, string $description, bool $schedulable): Definition
    {
        return (new Definition($class))
            ->setAutowired(true)
            ->setAutoconfigured(false)
            ->setPublic(true)
            ->addTag('console.command', ['command' => $name, 'description' => $description, 'schedulable' => $schedulable]);
    }

    private function add(ContainerBuilder $container, string $class): Definition
    {
        return $container->setDefinition($class, (new Definition($class))->setAutowired(true)->setAutoconfigured(false)->setPublic(false));
    }

    private function optional(string $id): Reference
    {
        return new Reference($id, ContainerInterface::NULL_ON_INVALID_REFERENCE);
    }
}
