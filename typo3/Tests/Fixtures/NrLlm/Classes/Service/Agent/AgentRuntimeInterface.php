<?php

declare(strict_types=1);

namespace Netresearch\NrLlm\Service\Agent;

/** Stands in for nr_llm's interface. */
interface AgentRuntimeInterface
{
    public function runQueued(string $runUuid, ?\Closure $onStep = null): ?AgentRunResult;
}
