<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Status;

/**
 * Returns whether the numbers are healthy. Pure: the same numbers give the same answer.
 */
final class Health
{
    /**
     * @param array<string, mixed>                                    $status of StatusReader
     * @param list<array{check: string, level: string, text: string}> $checks of InstallationCheck;
     *     its errors are unhealthy
     * @return list<string> what is unhealthy, a text each; empty: healthy
     */
    public static function problems(array $status, int $maxQueueWait, int $minimumWorkers, array $checks = []): array
    {
        $problems = [];
        if ($status['databaseProblem'] !== '') {
            $problems[] = 'The database cannot be read: ' . $status['databaseProblem'];
        }
        if ($status['expiredLeases'] > 0) {
            $problems[] = sprintf(
                '%d running run(s) with an expired lease: is nrllm:agent:reap called every minute?',
                $status['expiredLeases'],
            );
        }
        if ($status['oldestQueuedSeconds'] !== null && $status['oldestQueuedSeconds'] > $maxQueueWait) {
            $problems[] = sprintf(
                'The oldest queued run waits for %d s, and %d s are allowed.',
                $status['oldestQueuedSeconds'],
                $maxQueueWait,
            );
        }
        if ($status['unknownQueueWait'] > 0) {
            $problems[] = sprintf('Of %d queued run(s) it is not known since when they wait.', $status['unknownQueueWait']);
        }
        if ($status['liveWorkers'] !== null && $status['liveWorkers'] < $minimumWorkers) {
            $problems[] = sprintf('%d live worker(s), and %d are wanted.', $status['liveWorkers'], $minimumWorkers);
        }
        foreach ($checks as $check) {
            if ($check['level'] === InstallationCheck::ERROR) {
                $problems[] = $check['text'];
            }
        }

        return $problems;
    }
}
