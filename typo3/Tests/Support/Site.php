<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Support;

use Psr\Container\ContainerInterface;
use Psr\EventDispatcher\EventDispatcherInterface;
use Psr\Log\LoggerInterface;
use Symfony\Component\Config\FileLocator;
use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\DependencyInjection\Argument\ServiceLocatorArgument;
use Symfony\Component\DependencyInjection\ChildDefinition;
use Symfony\Component\DependencyInjection\Compiler\CompilerPassInterface;
use Symfony\Component\DependencyInjection\Compiler\PassConfig;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\Definition;
use Symfony\Component\DependencyInjection\Dumper\PhpDumper;
use Symfony\Component\DependencyInjection\Loader\PhpFileLoader;
use Symfony\Component\DependencyInjection\Loader\YamlFileLoader;
use Symfony\Component\DependencyInjection\Reference;
use Symfony\Component\Messenger\Bridge\Doctrine\Transport\DoctrineTransport;
use Symfony\Component\Messenger\Handler\HandlersLocator;
use Symfony\Component\Messenger\MessageBus;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\Messenger\Middleware\HandleMessageMiddleware;
use Symfony\Component\Messenger\Middleware\SendMessageMiddleware;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Symfony\Component\Messenger\Transport\Sync\SyncTransport;
use TYPO3\CMS\Core\Configuration\ExtensionConfiguration;
use TYPO3\CMS\Core\Console\CommandRegistry;
use TYPO3\CMS\Core\Database\ConnectionPool;
use TYPO3\CMS\Core\Messenger\DoctrineTransportFactory;
use TYPO3\CMS\Core\Messenger\TransportLocator;
use TYPO3\CMS\Dashboard\WidgetRegistry;
use TYPO3\CMS\Dashboard\Widgets\WidgetConfiguration;
use TYPO3\CMS\Reports\Registry\StatusRegistry;

/**
 * A site: Symfony's real container, built and dumped as TYPO3 does it, from TYPO3's services (the
 * few that matter), nr_llm's and ours.
 */
final class Site
{
    /**
     * @param list<string>                             $packages folders, in load order
     * @param (\Closure(ContainerBuilder): void)|null  $more     further services, as another
     *     extension would bring them
     */
    public static function build(array $packages, ?\Closure $more = null, bool $withBus = true): ContainerInterface
    {
        $builder = new ContainerBuilder();
        self::addCore($builder, $withBus);
        foreach ($packages as $package) {
            if (is_file($package . '/Configuration/Services.php')) {
                (new PhpFileLoader($builder, new FileLocator($package . '/Configuration')))->load('Services.php');
            }
            if (is_file($package . '/Configuration/Services.yaml')) {
                (new YamlFileLoader($builder, new FileLocator($package . '/Configuration')))->load('Services.yaml');
            }
        }
        if ($more !== null) {
            $more($builder);
        }
        $builder->compile();
        $class = 'Site' . bin2hex(random_bytes(6));
        $file = sys_get_temp_dir() . '/' . $class . '.php';
        // As TYPO3 does it: objects of the container are made by a function of its own.
        $code = (string)preg_replace(
            '/new ([^\(\s]+)\(/',
            '\TYPO3\CMS\Core\Utility\GeneralUtility::makeInstanceForDi(\\1::class, ',
            (string)(new PhpDumper($builder))->dump(['class' => $class]),
        );
        file_put_contents($file, str_replace(', )', ')', $code));
        try {
            require $file;
        } finally {
            unlink($file);
        }

        return new $class();
    }

    public static function typo3Folder(): string
    {
        return dirname(__DIR__, 2);
    }

    public static function nrLlmFolder(): string
    {
        return dirname(__DIR__) . '/Fixtures/NrLlm';
    }

    private static function addCore(ContainerBuilder $builder, bool $withBus): void
    {
        $builder->registerAttributeForAutoconfiguration(
            AsCommand::class,
            static function (ChildDefinition $definition, AsCommand $attribute): void {
                $definition->addTag('console.command', ['command' => $attribute->name, 'description' => $attribute->description,
                    'schedulable' => true]);
            },
        );
        $autowired = static fn(string $class): Definition => (new Definition($class))->setAutowired(true);
        $builder->setDefinition(ConnectionPool::class, $autowired(ConnectionPool::class)->setPublic(true));
        $builder->setDefinition(ExtensionConfiguration::class, $autowired(ExtensionConfiguration::class)->setPublic(true));
        $builder->setDefinition(CommandRegistry::class, $autowired(CommandRegistry::class)->setPublic(true));
        $builder->setDefinition(MemoryLogger::class, $autowired(MemoryLogger::class)->setPublic(true));
        $builder->setAlias(LoggerInterface::class, MemoryLogger::class);
        $builder->setAlias(ContainerInterface::class, 'service_container')->setPublic(true);
        $builder->setDefinition(Listeners::class, (new Definition(Listeners::class))
            ->setArguments([new Reference('service_container')])->setPublic(true));
        $builder->setAlias(EventDispatcherInterface::class, Listeners::class);
        foreach ([StatusRegistry::class, WidgetRegistry::class] as $backend) {
            if (class_exists($backend)) {
                $builder->setDefinition($backend, $autowired($backend)->setPublic(true));
            }
        }

        $builder->addCompilerPass(new class implements CompilerPassInterface {
            public function process(ContainerBuilder $container): void
            {
                $registry = $container->getDefinition(CommandRegistry::class);
                foreach ($container->findTaggedServiceIds('console.command') as $id => $tags) {
                    $container->findDefinition($id)->setPublic(true);
                    foreach ($tags as $tag) {
                        $registry->addMethodCall('addLazyCommand', [$tag['command'], $id, $tag['description'] ?? '',
                            $tag['schedulable'] ?? true]);
                    }
                }
            }
        }, PassConfig::TYPE_BEFORE_OPTIMIZATION, 0);
        $builder->addCompilerPass(new class implements CompilerPassInterface {
            public function process(ContainerBuilder $container): void
            {
                foreach ($container->findTaggedServiceIds('event.listener') as $id => $tags) {
                    $container->findDefinition($id)->setPublic(true);
                    foreach ($tags as $tag) {
                        $container->getDefinition(Listeners::class)->addMethodCall('addListener', [$tag['event'], $id,
                            $tag['method'] ?? '__invoke']);
                    }
                }
                foreach ($container->findTaggedServiceIds('reports.status') as $id => $tags) {
                    $container->getDefinition(StatusRegistry::class)->addMethodCall('add', [new Reference($id)]);
                }
                foreach ($container->findTaggedServiceIds('dashboard.widget') as $id => $tags) {
                    $container->findDefinition($id)->setArgument('$configuration', new Reference(WidgetConfiguration::class));
                    $container->setDefinition(WidgetConfiguration::class, (new Definition(WidgetConfiguration::class))
                        ->setArguments([$tags[0]]));
                    $container->getDefinition(WidgetRegistry::class)->addMethodCall('registerWidget', [$tags[0]['identifier'],
                        new Reference($id)]);
                }
            }
        }, PassConfig::TYPE_BEFORE_OPTIMIZATION, 0);
        if (!$withBus) {
            return;
        }

        $builder->setDefinition(PhpSerializer::class, $autowired(PhpSerializer::class));
        $builder->setAlias(SerializerInterface::class, PhpSerializer::class);
        $builder->setDefinition(DoctrineTransportFactory::class, $autowired(DoctrineTransportFactory::class));
        $builder->setDefinition(DoctrineTransport::class, (new Definition(DoctrineTransport::class))
            ->setFactory([new Reference(DoctrineTransportFactory::class), 'createTransport'])
            ->setArgument('$options', ['queue_name' => 'default'])
            ->setPublic(true)
            ->addTag('messenger.sender', ['identifier' => 'doctrine'])->addTag('messenger.receiver', ['identifier' => 'doctrine']));
        $builder->setDefinition(SyncTransport::class, (new Definition(SyncTransport::class))
            ->setArguments([new Reference(MessageBusInterface::class)])->addTag('messenger.sender', ['identifier' => 'default']));
        $builder->setDefinition(TransportLocator::class, (new Definition(TransportLocator::class))->setArguments([
            new ServiceLocatorArgument(['doctrine' => new Reference(DoctrineTransport::class),
                'default' => new Reference(SyncTransport::class)]),
        ]));
        $handler = 'Netresearch\NrLlm\Service\Agent\Queue\AgentRunQueuedHandler';
        $builder->setDefinition('messenger.bus.default', (new Definition(MessageBus::class))->setArguments([[
            (new Definition(SendMessageMiddleware::class))->setArguments([new Reference(TransportLocator::class)]),
            (new Definition(HandleMessageMiddleware::class))->setArguments([
                (new Definition(HandlersLocator::class))->setFactory([self::class,
                    'handlers'])->setArguments([new Reference('service_container'), $handler]),
                true,
            ]),
        ]]));
        $builder->setAlias(MessageBusInterface::class, 'messenger.bus.default')->setPublic(true);
    }

    public static function handlers(ContainerInterface $container, string $handler): HandlersLocator
    {
        return new HandlersLocator([
            'Netresearch\NrLlm\Service\Agent\Queue\AgentRunQueuedMessage' => [static function (object $message) use (
                $container,
                $handler
            ): void {
                $container->get($handler)($message);
            }],
        ]);
    }
}
