<?php

declare(strict_types=1);

namespace Symfony\Contracts\EventDispatcher;

use Psr\EventDispatcher\EventDispatcherInterface as PsrEventDispatcherInterface;

/**
 * Stands in for symfony/event-dispatcher-contracts, which Debian 12 does not install with the
 * messenger.
 */
interface EventDispatcherInterface extends PsrEventDispatcherInterface
{
    public function dispatch(object $event, ?string $eventName = null): object;
}
