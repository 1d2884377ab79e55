<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Repository;

use NrLlmRuntime\Typo3\Runtime\RuntimeUnavailableException;

/**
 * Decorates nr_llm's repository where there is no native runtime and the administrator forbade
 * nr_llm's own code (`fallback = none`): no run is claimed or reaped. Reading, settling and purging
 * still work.
 */
final class ReadOnlyAgentRunRepository
{
    private const REFUSED = ['claimQueued', 'claimForResume', 'claimForResumeFromInput', 'requeueStale', 'deadLetterStale'];

    public function __construct(
        private readonly object $inner,
        private readonly UnhandledRuns $unhandled,
        private readonly string $reason,
    ) {}

    /**
     * @param array<int|string, mixed> $arguments
     * @throws RuntimeUnavailableException from the methods that claim or reap
     */
    public function __call(string $name, array $arguments): mixed
    {
        if (in_array($name, self::REFUSED, true)) {
            $error = 'The native runtime cannot be used, and the extension setting "fallback" forbids nr_llm\'s own code: '
                . $this->reason;
            $runUid = $arguments[0] ?? $arguments['runUid'] ?? null;
            if ($name === 'claimQueued' && is_int($runUid)) {
                // nr_llm reports this as "not claimed"; the message must not be acknowledged for
                // it.
                $this->unhandled->add($runUid, $error);
            }
            throw new RuntimeUnavailableException($error);
        }

        return $this->inner->{$name}(...$arguments);
    }
}
