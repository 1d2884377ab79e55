<?php

declare(strict_types=1);

namespace Netresearch\NrLlm\Domain\Enum;

/** Stands in for nr_llm's enum. */
enum AgentRunStatus: string
{
    case Queued = 'queued';
    case Running = 'running';
    case WaitingForApproval = 'waiting_for_approval';
    case WaitingForInput = 'waiting_for_input';
    case Completed = 'completed';
    case Failed = 'failed';
    case Cancelled = 'cancelled';
}
