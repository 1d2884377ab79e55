<?php

declare(strict_types=1);

namespace Netresearch\NrLlm\Service\Tool;

/**
 * Stands in for the repository of a later release that has two methods more.
 */
final readonly class AgentRunRepository implements AgentRunRepositoryInterface
{
    use RunTableTrait;

    public function releaseRun(int $runUid, string $claimedBy, string $why = 'none'): string
    {
        return "$runUid by $claimedBy: $why";
    }

    public function claimForReview(int $runUid, string $claimedBy, int $leaseExpires): bool
    {
        return $this->guarded(
            ['status' => 'running', 'claimed_by' => $claimedBy, 'lease_expires' => $leaseExpires],
            ['uid' => $runUid, 'status' => 'waiting_for_input'],
        );
    }
}
