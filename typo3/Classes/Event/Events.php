<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Event;

use Psr\Log\LoggerInterface;

/**
 * Dispatches this package's PSR-14 events. A listener that throws is logged and changes nothing:
 * the runs have been written already.
 */
final class Events
{
    /**
     * @param object|null $dispatcher a PSR-14 event dispatcher
     */
    public function __construct(private readonly LoggerInterface $logger, private readonly ?object $dispatcher = null) {}

    public function dispatch(object $event): void
    {
        if ($this->dispatcher === null || !method_exists($this->dispatcher, 'dispatch')) {
            return;
        }
        try {
            $this->dispatcher->dispatch($event);
        } catch (\Throwable $error) {
            $this->logger->error('A listener of {event} failed: {reason}', [
                'event' => $event::class, 'reason' => $error->getMessage(), 'exception' => $error,
            ]);
        }
    }
}
