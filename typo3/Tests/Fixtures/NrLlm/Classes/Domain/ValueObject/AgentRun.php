<?php

declare(strict_types=1);

namespace Netresearch\NrLlm\Domain\ValueObject;

use Netresearch\NrLlm\Domain\Enum\AgentRunStatus;

/** Stands in for nr_llm's value object, with what matters here. */
final readonly class AgentRun
{
    public function __construct(
        public int $uid,
        public string $uuid,
        public AgentRunStatus $status,
        public ?string $queuedRequest,
        public string $claimedBy,
        public int $leaseExpires,
        public int $requeueCount,
        public string $pendingEffect,
    ) {}
}
