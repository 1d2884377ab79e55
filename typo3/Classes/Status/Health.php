<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Status;

/**
 * Whether the numbers are healthy. Pure: the same numbers give the same answer.
 */
final class Health
{
    /**
     * @param array<string, mixed> $status of StatusReader
     * @return list<string> what is unhealthy, a sentence each; empty: healthy
     */
    public static function problems(array $status, int $maxQueueWait, int $minimumWorkers): array
    {
        $problems = [];
        if ($status['expiredLeases'] > 0) {
            $problems[] = sprintf('%d running run(s) with an expired lease: is nrllm:agent:reap called every minute?',
                $status['expiredLeases']);
        }
        if ($status['oldestQueuedSeconds'] !== null && $status['oldestQueuedSeconds'] > $maxQueueWait) {
            $problems[] = sprintf('The oldest queued run waits for %d s, and %d s are allowed.', $status['oldestQueuedSeconds'],
                $maxQueueWait);
        }
        if ($status['unknownQueueWait'] > 0) {
            $problems[] = sprintf('Of %d queued run(s) it is not known since when they wait.', $status['unknownQueueWait']);
        }
        if ($status['liveWorkers'] !== null && $status['liveWorkers'] < $minimumWorkers) {
            $problems[] = sprintf('%d live worker(s), and %d are wanted.', $status['liveWorkers'], $minimumWorkers);
        }

        return $problems;
    }
}
