<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Repository;

use NrLlmRuntime\Typo3\Event\Events;
use NrLlmRuntime\Typo3\Runtime\RuntimeLocator;
use NrLlmRuntime\Typo3\Settings\RuntimeSettings;
use Psr\Log\LoggerInterface;

/**
 * Makes what the proxy of nr_llm's repository interface calls. Symfony calls it at the first use in
 * a process, not when the container is built.
 */
final class LeasedAgentRunRepositoryFactory
{
    public function __construct(
        private readonly object $inner,
        private readonly RuntimeLocator $locator,
        private readonly LeaseKeeper $keeper,
        private readonly RuntimeSettings $settings,
        private readonly UnhandledRuns $unhandled,
        private readonly Events $events,
        private readonly LoggerInterface $logger,
        private readonly string $problem = '',
    ) {}

    // The return type is object, not nr_llm's interface: LeasedAgentRunRepository does not
    // implement it.
    public function create(): object
    {
        if ($this->problem !== '') {
            $this->locator->logOnce(
                'The run repository is not overridden, nr_llm\'s own PHP code executes agent runs: {reason}',
                ['reason' => $this->problem],
            );

            return $this->inner;
        }
        if (!$this->locator->isAvailable()) {
            $this->locator->logFallback();

            return $this->withoutRuntime(implode(' ', $this->locator->reasons()));
        }
        try {
            $native = $this->locator->runtime();
        } catch (\Throwable $error) {
            // Settings that the runtime refuses, such as TLS in the other driver's spelling. The
            // commands fail and report it; a worker or a web request must not fail (P 38).
            $this->locator->logOnce(
                'The native runtime refuses the settings, nr_llm\'s own PHP code executes agent runs: {reason}',
                ['reason' => $error->getMessage()],
            );

            return $this->withoutRuntime($error->getMessage());
        }

        return new LeasedAgentRunRepository(
            $this->inner,
            $native,
            $this->keeper,
            $this->unhandled,
            $this->events,
            $this->logger,
            $this->settings->fallback() === RuntimeSettings::FALLBACK_PHP,
        );
    }

    private function withoutRuntime(string $reason): object
    {
        return $this->settings->fallback() === RuntimeSettings::FALLBACK_NONE
            ? new ReadOnlyAgentRunRepository($this->inner, $this->unhandled, $reason)
            : $this->inner;
    }
}
