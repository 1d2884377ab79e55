<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\DependencyInjection;

/**
 * Compares the methods of nr_llm's run repository that LeasedAgentRunRepository answers or watches
 * with what it was written for.
 *
 * The interface changes from release to release. Methods this package does not know do not matter,
 * they are passed through; one that it answers and that now means something else does: then
 * nr_llm's own repository stays in use, whole.
 */
final class RepositoryShape
{
    /** Answered by the runtime, so nothing may have been added either. */
    private const EXACT = [
        'claimQueued' => ['int $runUid', 'string $claimedBy', 'int $leaseExpires'],
        'renewLease' => ['int $runUid', 'string $claimedBy', 'int $leaseExpires'],
        'markPendingEffect' => ['int $runUid', 'string $claimedBy', 'string $effect', 'int $leaseExpires'],
        'requeue' => ['int $runUid', 'string $claimedBy'],
        'requeueStale' => ['int $runUid', 'int $now'],
        'deadLetterStale' => ['int $runUid', 'int $now', 'string $terminationReason'],
    ];
    /**
     * Answered by nr_llm with these arguments read or replaced on the way; what follows them is
     * passed on.
     */
    private const LEADING = [
        'claimForResume' => ['int $runUid', 'string $claimedBy', 'int $leaseExpires'],
        'claimForResumeFromInput' => ['int $runUid', 'string $claimedBy', 'int $leaseExpires'],
        'startRun' => [
            'string $uuid', 'int $configurationUid', 'string $configurationIdentifier', 'int $beUser',
            'string $claimedBy', 'int $leaseExpires',
        ],
        'finishRun' => ['int $runUid'],
        'suspendRun' => ['int $runUid'],
        'suspendRunForInput' => ['int $runUid'],
    ];

    /**
     * Translated by this name of the parameter: under another name the guard would ask for an owner
     * that no row has.
     */
    private const OWNERS = ['finishRun' => 'ownedBy'];

    /**
     * @param class-string $interface
     * @return list<string> a sentence for each method that does not fit
     */
    public static function misfits(string $interface): array
    {
        $reflection = new \ReflectionClass($interface);
        $misfits = [];
        foreach (self::EXACT + self::LEADING as $name => $wanted) {
            if (!$reflection->hasMethod($name)) {
                $misfits[] = sprintf('%s() is gone.', $name);
                continue;
            }
            $method = $reflection->getMethod($name);
            $found = array_map(self::parameter(...), $method->getParameters());
            $owner = self::OWNERS[$name] ?? null;
            $takesOwner = $owner === null || in_array($owner, array_map(
                static fn(\ReflectionParameter $parameter): string => $parameter->getName(),
                $method->getParameters(),
            ), true);
            $compared = isset(self::EXACT[$name]) ? $found : array_slice($found, 0, count($wanted));
            $returns = (string)$method->getReturnType();
            if (!$takesOwner || $compared !== $wanted || (isset(self::EXACT[$name]) && $returns !== 'bool') || $method->isStatic()) {
                $shape = sprintf('%s(%s): %s', $name, implode(', ', $found), $returns === '' ? 'mixed' : $returns);
                $misfits[] = $shape . ' is not what was expected.';
            }
        }

        return $misfits;
    }

    private static function parameter(\ReflectionParameter $parameter): string
    {
        // Defaults do not matter: a proxy passes on what the caller gave, and
        // LeasedAgentRunRepository asks for what it needs.
        return $parameter->getType() . ($parameter->isPassedByReference() ? ' &' : ' ') . ($parameter->isVariadic() ? '...' : '') . '$'
            . $parameter->getName();
    }
}
