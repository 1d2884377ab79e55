<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Dashboard;

use NrLlmRuntime\Typo3\Status\StatusReader;
use TYPO3\CMS\Dashboard\Widgets\ListDataProviderInterface;

/**
 * The lines of the dashboard widget. Registered only where EXT:dashboard is installed; no other
 * code may load this class.
 */
final class AgentRunsDataProvider implements ListDataProviderInterface
{
    private const WORKER_MAX_AGE_SECONDS = 120;

    public function __construct(private readonly StatusReader $reader) {}

    /**
     * @return list<string>
     */
    public function getItems(): array
    {
        return self::lines($this->reader->read('doctrine', self::WORKER_MAX_AGE_SECONDS));
    }

    /**
     * @param array<string, mixed> $status of StatusReader
     * @return list<string>
     */
    public static function lines(array $status): array
    {
        if ($status['databaseProblem'] !== '') {
            return ['The run table cannot be read: ' . $status['databaseProblem']];
        }
        $running = $status['counts']['running'] ?? 0;
        $deadLettered = ($status['deadLetters']['retries_exhausted'] ?? 0) + ($status['deadLetters']['not_retryable'] ?? 0);

        return [
            sprintf('Live: %d', $running - (int)$status['expiredLeases'] - (int)$status['unleasedRunning']),
            sprintf('Stale (lease expired): %d', $status['expiredLeases']),
            sprintf('Queued: %d', $status['counts']['queued'] ?? 0),
            'Stranded (queued, no wake-up left): ' . ($status['stranded'] ?? 'not known without the native runtime'),
            sprintf('Dead-lettered: %d', $deadLettered),
            'Longest wait in the queue: ' . ($status['oldestQueuedSeconds'] === null ? 'nothing is queued'
                : self::duration($status['oldestQueuedSeconds'])),
        ];
    }

    private static function duration(int $seconds): string
    {
        return match (true) {
            $seconds < 120 => $seconds . ' s',
            $seconds < 7200 => intdiv($seconds, 60) . ' min',
            default => intdiv($seconds, 3600) . ' h',
        };
    }
}
