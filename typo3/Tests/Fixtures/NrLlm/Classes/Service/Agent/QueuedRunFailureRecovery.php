<?php

declare(strict_types=1);

namespace Netresearch\NrLlm\Service\Agent;

use Netresearch\NrLlm\Service\Agent\Queue\AgentRunQueuedMessage;
use Psr\Log\LoggerInterface;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\Messenger\Stamp\DelayStamp;

/**
 * Stands in for nr_llm's recovery: the failure is an argument of recover(), the bus gets a message
 * and a delay.
 */
final readonly class QueuedRunFailureRecovery
{
    public function __construct(private ?LoggerInterface $logger = null, private ?MessageBusInterface $messageBus = null) {}

    public function recover(string $runUuid, \Throwable $e): void
    {
        $this->dispatchRequeue($runUuid);
    }

    private function dispatchRequeue(string $uuid): void
    {
        $this->messageBus?->dispatch(new AgentRunQueuedMessage($uuid), [new DelayStamp(30000)]);
    }
}
