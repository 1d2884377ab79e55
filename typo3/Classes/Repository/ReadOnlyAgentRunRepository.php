<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Repository;

use NrLlmRuntime\Typo3\Runtime\RuntimeUnavailableException;

/**
 * Stands in front of nr_llm's repository where there is no native runtime and the administrator forbade the PHP path
 * (`fallback = none`): no run is claimed or reaped; reading, settling and purging go on.
 */
final class ReadOnlyAgentRunRepository
{
    public function __construct(private readonly object $inner, private readonly string $reason) {}

    /**
     * @param array<int|string, mixed> $arguments
     */
    public function __call(string $name, array $arguments): mixed
    {
        if (in_array($name, ['claimQueued', 'claimForResume', 'claimForResumeFromInput', 'requeueStale', 'deadLetterStale'], true)) {
            throw new RuntimeUnavailableException('The native runtime cannot be used, and the extension setting "fallback" forbids nr_llm\'s own code: ' . $this->reason);
        }

        return $this->inner->{$name}(...$arguments);
    }
}
