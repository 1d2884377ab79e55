<?php

declare(strict_types=1);

namespace Netresearch\NrLlm\Service\Agent\Queue;

/** Stands in for nr_llm's message. */
final readonly class AgentRunQueuedMessage
{
    public function __construct(public string $runUuid) {}
}
