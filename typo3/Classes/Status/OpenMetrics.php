<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Status;

/**
 * The status in the OpenMetrics text format (1.0). Everything is a gauge: rows are purged, so no
 * count only ever grows. Types that the older Prometheus format does not know (info) are not used,
 * so that node_exporter's textfile collector reads it as well.
 */
final class OpenMetrics
{
    private const STATUSES = ['queued', 'running', 'waiting_for_approval', 'waiting_for_input', 'completed', 'failed', 'cancelled'];

    private const REASONS = ['retries_exhausted', 'not_retryable', 'provider_failed'];

    /**
     * @param array<string, mixed>  $status   of StatusReader
     * @param array<string, string> $versions of InstallationCheck
     */
    public static function render(array $status, bool $healthy, string $path, array $versions): string
    {
        $text = '';
        if ($status['databaseProblem'] === '') {
            $counts = $status['counts'] + array_fill_keys(self::STATUSES, 0);
            $text .= self::family('nrllm_agent_runs', 'Agent runs by status.', self::series('status', $counts));
            $text .= self::family(
                'nrllm_agent_failed_runs',
                'Failed agent runs by termination reason.',
                self::series('reason', $status['deadLetters'] + array_fill_keys(self::REASONS, 0)),
            );
        }
        $single = [
            'nrllm_agent_expired_leases' => ['Running runs whose lease has expired.', $status['expiredLeases'], ''],
            'nrllm_agent_unleased_running_runs' => ['Running runs without a lease.', $status['unleasedRunning'], ''],
            'nrllm_agent_oldest_lease_timestamp_seconds' => ['When the oldest lease expires.', $status['oldestLease'], 'seconds'],
            'nrllm_agent_oldest_queue_wait_seconds' => ['How long the oldest queued run has waited.', $status['oldestQueuedSeconds'],
                'seconds'],
            'nrllm_agent_unknown_queue_wait_runs' => ['Queued runs of which the wait is not known.', $status['unknownQueueWait'], ''],
            'nrllm_agent_stranded_runs' => ['Queued runs that seem to have lost their wake-up.', $status['stranded'], ''],
            'nrllm_agent_live_workers' => ['Workers seen lately.', $status['liveWorkers'], ''],
            'nrllm_agent_clock_skew_seconds' => ['How far the clock of the database is ahead of this host.', $status['clockSkewMs'] === null ? null
                : $status['clockSkewMs'] / 1000, 'seconds'],
            'nrllm_agent_heartbeat_binlog_bytes' => ['Estimated bytes that a heartbeat adds to the binary log.',
                $status['binlog']['bytesPerHeartbeat'] ?? null, 'bytes'],
            'nrllm_agent_database_up' => ['1 when the run table could be read.', $status['databaseProblem'] === '' ? 1 : 0, ''],
            'nrllm_agent_healthy' => ['1 when the status command exits 0.', $healthy ? 1 : 0, ''],
        ];
        foreach ($single as $name => [$help, $value, $unit]) {
            // What is not known is left out: 0 would be a claim.
            if ($value !== null) {
                $text .= self::family($name, $help, ['' => $value], $unit);
            }
        }
        $labels = [];
        foreach (['path' => $path] + $versions as $label => $value) {
            $labels[] = $label . '="' . self::escape($value) . '"';
        }
        $text .= self::family('nrllm_runtime_info', 'Path to the native runtime, and versions.', ['{' . implode(',', $labels) . '}' => 1]);

        return $text . "# EOF\n";
    }

    /**
     * @param array<string, int> $values
     * @return array<string, int>
     */
    private static function series(string $label, array $values): array
    {
        ksort($values);
        $series = [];
        foreach ($values as $value => $number) {
            $series['{' . $label . '="' . self::escape((string)$value) . '"}'] = $number;
        }

        return $series;
    }

    /**
     * @param array<string, int|float> $series
     */
    private static function family(string $name, string $help, array $series, string $unit = ''): string
    {
        $text = "# TYPE $name gauge\n" . ($unit === '' ? '' : "# UNIT $name $unit\n") . "# HELP $name $help\n";
        foreach ($series as $labels => $value) {
            $text .= $name . $labels . ' ' . (is_int($value) ? $value : sprintf('%.3F', $value)) . "\n";
        }

        return $text;
    }

    private static function escape(string $value): string
    {
        return str_replace(['\\', "\n", '"'], ['\\\\', '\n', '\"'], mb_scrub($value, 'UTF-8'));
    }
}
