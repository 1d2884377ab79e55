<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Support;

use Psr\Container\ContainerInterface;
use Symfony\Contracts\EventDispatcher\EventDispatcherInterface;

/**
 * TYPO3's dispatcher in short: services with the tag event.listener, by the class of the event.
 * Dispatched events are kept for the tests.
 */
final class Listeners implements EventDispatcherInterface
{
    /** @var list<object> */
    public array $dispatched = [];
    /** @var array<string, list<array{string, string}>> event class => service and method */
    private array $listeners = [];

    public function __construct(private readonly ContainerInterface $container) {}

    public function addListener(string $event, string $service, string $method): void
    {
        $this->listeners[$event][] = [$service, $method];
    }

    public function dispatch(object $event, ?string $eventName = null): object
    {
        $this->dispatched[] = $event;
        foreach ($this->listeners as $class => $listeners) {
            foreach ($event instanceof $class ? $listeners : [] as [$service, $method]) {
                $this->container->get($service)->{$method}($event);
            }
        }

        return $event;
    }

    /**
     * @template T of object
     * @param class-string<T> $class
     * @return list<T>
     */
    public function of(string $class): array
    {
        return array_values(array_filter($this->dispatched, static fn(object $event): bool => $event instanceof $class));
    }
}
