<?php

declare(strict_types=1);

namespace Netresearch\NrLlm\Service\Agent;

/** Stands in for nr_llm's result. */
final readonly class AgentRunResult
{
    public function __construct(public string $outcome) {}
}
