<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Event;

/**
 * The reaper ended an agent run without success. Dispatched after the write.
 */
final class AgentRunDeadLetteredEvent
{
    public function __construct(
        public readonly int $runUid,
        /** Empty where the caller knows the uid only. */
        public readonly string $runUuid,
        /** retries_exhausted, not_retryable or provider_failed */
        public readonly string $reason,
    ) {}
}
