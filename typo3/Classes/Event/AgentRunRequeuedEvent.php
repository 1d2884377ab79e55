<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Event;

/**
 * An agent run was put back on the queue. Dispatched after the write.
 */
final class AgentRunRequeuedEvent
{
    /** Its worker died: the lease expired, and the reaper took the run back. */
    public const LEASE_EXPIRED = 'lease_expired';
    /** Its worker requeued it after a failure that another attempt may overcome. */
    public const FAILURE = 'failure';
    /** Its worker had to stop and handed the run back; the retry budget is unchanged. */
    public const HANDED_BACK = 'handed_back';

    public function __construct(
        public readonly int $runUid,
        /** Empty where the caller knows the uid only. */
        public readonly string $runUuid,
        public readonly string $cause,
        /** The number of requeues as the row has it now; null where it is not known. */
        public readonly ?int $requeueCount = null,
    ) {}
}
