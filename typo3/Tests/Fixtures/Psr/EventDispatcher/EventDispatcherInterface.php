<?php

declare(strict_types=1);

namespace Psr\EventDispatcher;

/** Stands in for psr/event-dispatcher, which Debian 12 does not have. */
interface EventDispatcherInterface
{
    public function dispatch(object $event);
}
