<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\EventListener;

use NrLlmRuntime\Typo3\Repository\LeaseKeeper;
use Psr\Log\LoggerInterface;

/**
 * Between two messages a worker executes no run: a lease that is still kept belongs to a run that
 * was given up without being settled.
 */
final class EndLeasesAfterMessage
{
    public function __construct(private readonly LeaseKeeper $keeper, private readonly LoggerInterface $logger) {}

    public function __invoke(object $event): void
    {
        $ended = $this->keeper->endAll();
        if ($ended > 0) {
            $this->logger->notice(
                '{count} lease(s) were still kept after a message and are no longer; the reaper takes the runs over',
                ['count' => $ended],
            );
        }
    }
}
