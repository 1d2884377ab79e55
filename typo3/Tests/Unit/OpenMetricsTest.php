<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Unit;

use NrLlmRuntime\Typo3\Status\OpenMetrics;
use NrLlmRuntime\Typo3\Tests\Support\Metrics;
use PHPUnit\Framework\TestCase;

final class OpenMetricsTest extends TestCase
{
    public function testARealParserReadsIt(): void
    {
        $status = [
            'counts' => ['queued' => 3, 'running' => 1, 'something_new' => 2],
            'deadLetters' => ['retries_exhausted' => 4, "odd \"reason\"\\\n" => 1], 'expiredLeases' => 1,
            'unleasedRunning' => 0, 'oldestLease' => 1700000000, 'oldestQueuedSeconds' => 42, 'unknownQueueWait' => 0, 'stranded' => 2,
            'clockSkewMs' => -1500,
            'leaseKey' => true, 'server' => 'x', 'isolation' => 'y',
            'binlog' => ['format' => 'ROW', 'rowImage' => 'MINIMAL', 'bytesPerHeartbeat' => 550, 'remedy' => null],
            'liveWorkers' => 2, 'databaseProblem' => '',
        ];
        $text = OpenMetrics::render($status, false, 'extension', ['runtime' => '0.1.0', 'server' => '10.11 "odd"\\']);
        self::assertStringEndsWith("# EOF\n", $text);
        $values = Metrics::parse($text);
        self::assertSame(3.0, $values['nrllm_agent_runs{"status": "queued"}']);
        self::assertSame(0.0, $values['nrllm_agent_runs{"status": "cancelled"}']);
        self::assertSame(2.0, $values['nrllm_agent_runs{"status": "something_new"}']);
        self::assertSame(
            1.0,
            $values['nrllm_agent_failed_runs{"reason": "odd \"reason\"\\\\\n"}'] ?? $values['nrllm_agent_failed_runs{"reason": "odd \\"reason\\"\\\\\\n"}'],
        );
        self::assertSame(-1.5, $values['nrllm_agent_clock_skew_seconds{}']);
        self::assertSame(550.0, $values['nrllm_agent_heartbeat_binlog_bytes{}']);
        self::assertSame(42.0, $values['nrllm_agent_oldest_queue_wait_seconds{}']);
        self::assertSame(0.0, $values['nrllm_agent_healthy{}']);
        self::assertSame(1.0, $values['nrllm_runtime_info{"path": "extension", "runtime": "0.1.0", "server": "10.11 \"odd\"\\\\"}']);
    }

    public function testWhatIsNotKnownIsLeftOut(): void
    {
        $status = [
            'counts' => [], 'deadLetters' => [], 'expiredLeases' => 0, 'unleasedRunning' => 0, 'oldestLease' => null,
            'oldestQueuedSeconds' => null, 'unknownQueueWait' => 0,
            'stranded' => null, 'clockSkewMs' => null, 'leaseKey' => null, 'server' => '', 'isolation' => '', 'binlog' => null, 'liveWorkers' => null, 'databaseProblem' => '',
        ];
        $values = Metrics::parse(OpenMetrics::render($status, true, 'none', []));
        self::assertSame(1.0, $values['nrllm_agent_healthy{}']);
        foreach (['oldest_lease_timestamp_seconds', 'oldest_queue_wait_seconds', 'stranded_runs', 'clock_skew_seconds',
            'live_workers'] as $name) {
            self::assertArrayNotHasKey('nrllm_agent_' . $name . '{}', $values);
        }
    }
}
