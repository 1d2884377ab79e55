<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Event;

/**
 * This process no longer owns an agent run that it was executing. It has written nothing to the run
 * since.
 */
final class AgentRunLeaseLostEvent
{
    public function __construct(
        public readonly int $runUid,
        public readonly string $owner,
        /** The run's state (taken, requeued, cancelled, …), or why its heartbeat ended. */
        public readonly string $reason,
    ) {}
}
