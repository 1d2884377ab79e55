<?php

declare(strict_types=1);

namespace TYPO3\CMS\Core\Console;

use Psr\Container\ContainerInterface;
use Symfony\Component\Console\Command\Command;

/** Stands in for TYPO3's registry: names and service ids, the last one of a name wins. */
class CommandRegistry
{
    /** @var array<string, array{id: string, description: string, schedulable: bool}> */
    public array $commands = [];

    public function __construct(private readonly ContainerInterface $container) {}

    public function addLazyCommand(string $name, string $id, string $description, bool $schedulable): void
    {
        $this->commands[$name] = ['id' => $id, 'description' => $description, 'schedulable' => $schedulable];
    }

    public function has(string $name): bool
    {
        return isset($this->commands[$name]);
    }

    public function get(string $name): Command
    {
        $command = $this->container->get($this->commands[$name]['id']);
        $command->setName($name);

        return $command;
    }
}
