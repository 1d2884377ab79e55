<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Support;

use NrLlmRuntime\Typo3\Repository\LeasedAgentRunRepositoryFactory;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\Reference;

/**
 * What Symfony 6.3 and newer write into the container, written here for Symfony 5.4: a class of
 * nr_llm's interface that calls what LeasedAgentRunRepositoryFactory makes. So the override is
 * tested in whole processes on Debian 12 too, which has no Symfony that a supported TYPO3 has.
 */
final class HandProxy
{
    private const INTERFACE = 'Netresearch\NrLlm\Service\Tool\AgentRunRepositoryInterface';

    public static function addWhereNeeded(ContainerBuilder $builder): void
    {
        if (method_exists('Symfony\Component\VarExporter\ProxyHelper', 'generateLazyProxy')) {
            return;
        }
        $class = self::declare();
        $builder->register(LeasedAgentRunRepositoryFactory::class)->setAutowired(true)->setArgument(
            '$inner',
            new Reference('Netresearch\NrLlm\Service\Tool\AgentRunRepository'),
        );
        $builder->register($class, $class)->setArguments([new Reference(LeasedAgentRunRepositoryFactory::class)])->setDecoratedService(self::INTERFACE);
    }

    private static function declare(): string
    {
        if (class_exists('HandWrittenRuns', false)) {
            return 'HandWrittenRuns';
        }
        $methods = '';
        foreach ((new \ReflectionClass(self::INTERFACE))->getMethods() as $method) {
            $parameters = [];
            foreach ($method->getParameters() as $parameter) {
                $type = self::type((string)$parameter->getType());
                $parameters[] = $type . ' $' . $parameter->getName()
                    . ($parameter->isOptional() ? ' = ' . var_export($parameter->getDefaultValue(), true) : '');
            }
            $returns = (string)$method->getReturnType();
            $methods .= sprintf(
                "public function %s(%s): %s { %s\$this->factory->create()->%s(...func_get_args()); }\n",
                $method->getName(),
                implode(', ', $parameters),
                self::type($returns),
                $returns === 'void' ? '' : 'return ',
                $method->getName(),
            );
        }
        eval('final class HandWrittenRuns implements \\' . self::INTERFACE . ' { public function __construct(private readonly \\'
            . LeasedAgentRunRepositoryFactory::class . " \$factory) {}\n" . $methods . '}');

        return 'HandWrittenRuns';
    }

    private static function type(string $type): string
    {
        return (string)preg_replace('/(?<![\w\\\\])(\??)([A-Z]\w*\\\\)/', '$1\\\\$2', $type);
    }
}
