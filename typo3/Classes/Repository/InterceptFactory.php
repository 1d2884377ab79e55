<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Repository;

use NrLlmRuntime\Typo3\Door\Door;
use NrLlmRuntime\Typo3\Settings\RuntimeSettings;
use Psr\Log\LoggerInterface;

/**
 * Makes what the proxy of nr_llm's repository interface calls; asked at the first call of a process, not when the container is built.
 */
final class InterceptFactory
{
    public function __construct(
        private readonly object $inner,
        private readonly Door $door,
        private readonly LeaseKeeper $keeper,
        private readonly RuntimeSettings $settings,
        private readonly LoggerInterface $logger,
        private readonly string $problem = '',
    ) {}

    // The return type says object, not nr_llm's interface: InterceptedRuns does not implement it.
    public function create(): object
    {
        if ($this->problem !== '') {
            $this->door->sayOnce('Agent runs are not intercepted, nr_llm\'s own PHP code stays in charge of them: {reason}',
                ['reason' => $this->problem]);

            return $this->inner;
        }
        if (!$this->door->isOpen()) {
            $this->door->sayClosed();

            return $this->withoutRuntime(implode(' ', $this->door->reasons()));
        }
        try {
            $native = $this->door->runtime();
        } catch (\Throwable $error) {
            // Settings that the runtime refuses, as TLS in the other driver's spelling. The commands fail and say so; a worker or a web
            // request must not.
            $this->door->sayOnce('The native runtime refuses the settings, nr_llm\'s own PHP code stays in charge of agent runs: {reason}',
                ['reason' => $error->getMessage()]);

            return $this->withoutRuntime($error->getMessage());
        }

        return new InterceptedRuns($this->inner, $native, $this->keeper, $this->logger);
    }

    private function withoutRuntime(string $reason): object
    {
        return $this->settings->fallback() === RuntimeSettings::FALLBACK_NONE ? new RefusingRuns($this->inner, $reason) : $this->inner;
    }
}
