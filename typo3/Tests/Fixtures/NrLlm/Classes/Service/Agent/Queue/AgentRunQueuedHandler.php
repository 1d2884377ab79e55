<?php

declare(strict_types=1);

namespace Netresearch\NrLlm\Service\Agent\Queue;

use Netresearch\NrLlm\Service\Agent\AgentRuntimeInterface;

/** Stands in for nr_llm's handler. */
final readonly class AgentRunQueuedHandler
{
    public function __construct(private AgentRuntimeInterface $runtime) {}

    public function __invoke(AgentRunQueuedMessage $message): void
    {
        $this->runtime->runQueued($message->runUuid);
    }
}
