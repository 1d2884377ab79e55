<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Unit;

use NrLlmRuntime\Typo3\Status\OpenMetrics;
use NrLlmRuntime\Typo3\Tests\Support\Metrics;
use PHPUnit\Framework\TestCase;
use Symfony\Component\Yaml\Yaml;

/**
 * The alert rules and the dashboard name metrics and labels that the status command writes.
 */
final class MonitoringFilesTest extends TestCase
{
    private const FOLDER = __DIR__ . '/../../Resources/Private/Monitoring/';

    public function testTheAlertRulesUseMetricsThatAreWritten(): void
    {
        $rules = Yaml::parseFile(self::FOLDER . 'alerts.yml')['groups'][0]['rules'];
        self::assertCount(count($rules), array_unique(array_column($rules, 'alert')));
        foreach ($rules as $rule) {
            self::assertKnown($rule['expr']);
            self::assertNotSame('', $rule['annotations']['summary'] . $rule['annotations']['description']);
        }
        $tests = Yaml::parseFile(self::FOLDER . 'alerts.test.yml')['tests'];
        foreach ($tests as $test) {
            foreach ($test['input_series'] as $series) {
                str_starts_with($series['series'], 'up{') || self::assertKnown($series['series']);
            }
            foreach ($test['alert_rule_test'] as $case) {
                self::assertContains($case['alertname'], array_column($rules, 'alert'));
            }
        }
    }

    public function testTheDashboardUsesMetricsThatAreWritten(): void
    {
        $dashboard = json_decode((string)file_get_contents(self::FOLDER . 'grafana-dashboard.json'), true, 32, JSON_THROW_ON_ERROR);
        $ids = array_column($dashboard['panels'], 'id');
        self::assertSame($ids, array_values(array_unique($ids)));
        foreach ($dashboard['panels'] as $panel) {
            foreach ($panel['targets'] as $target) {
                self::assertKnown($target['expr']);
            }
        }
    }

    public function testEveryMetricIsDocumentedWhereAnAlertUsesIt(): void
    {
        $page = (string)file_get_contents(dirname(self::FOLDER, 3) . '/Documentation/Monitoring.md');
        $rules = Yaml::parseFile(self::FOLDER . 'alerts.yml')['groups'][0]['rules'];
        preg_match_all('/\b(nrllm_[a-z_]+)/', implode(' ', array_column($rules, 'expr')), $used);
        foreach (array_unique($used[1]) as $metric) {
            self::assertMatchesRegularExpression('/`' . $metric . '[`{]/', $page, $metric);
        }
    }

    /**
     * Every name in the expression is a metric of a status that knows everything, and its labels
     * are that metric's.
     */
    private static function assertKnown(string $expression): void
    {
        static $known = null;
        if ($known === null) {
            $known = [];
            foreach (array_keys(Metrics::parse(OpenMetrics::render([
                'counts' => ['queued' => 1], 'deadLetters' => [], 'expiredLeases' => 0, 'unleasedRunning' => 0, 'oldestLease' => 1,
                'oldestQueuedSeconds' => 1, 'unknownQueueWait' => 0, 'stranded' => 0, 'clockSkewMs' => 1, 'leaseKey' => true,
                'server' => '', 'isolation' => '', 'binlog' => ['bytesPerHeartbeat' => 1], 'liveWorkers' => 1, 'databaseProblem' => '',
            ], true, 'extension', ['runtime' => '1']))) as $series) {
                [$name, $labels] = explode('{', $series, 2);
                $known[$name] = array_keys((array)json_decode('{' . $labels, true));
            }
        }
        preg_match_all('/\b(nrllm_[a-z_]+)(?:\{([^}]*)\})?/', $expression, $found, PREG_SET_ORDER);
        self::assertNotSame([], $found, $expression);
        foreach ($found as $match) {
            self::assertArrayHasKey($match[1], $known, $expression);
            preg_match_all('/(\w+)\s*=~?/', $match[2] ?? '', $labels);
            self::assertSame([], array_diff($labels[1], [...$known[$match[1]], 'instance']), $expression);
        }
    }
}
