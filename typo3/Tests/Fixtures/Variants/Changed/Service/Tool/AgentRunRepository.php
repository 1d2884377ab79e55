<?php

declare(strict_types=1);

namespace Netresearch\NrLlm\Service\Tool;

/**
 * Stands in for the repository of a release in which renewLease() takes one thing more.
 */
final readonly class AgentRunRepository implements AgentRunRepositoryInterface
{
    use RunTableTrait {
        renewLease as private renewWithoutStrictness;
    }

    public function renewLease(int $runUid, string $claimedBy, int $leaseExpires, bool $strict = false): bool
    {
        return $this->renewWithoutStrictness($runUid, $claimedBy, $leaseExpires);
    }
}
