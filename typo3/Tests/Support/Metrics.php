<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Support;

use PHPUnit\Framework\Assert;

/**
 * Reads OpenMetrics with the parser of Prometheus' own Python client (Debian's
 * python3-prometheus-client).
 */
final class Metrics
{
    private const PARSER = <<<'PYTHON'
        import json, sys
        from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
        from prometheus_client.parser import text_string_to_metric_families as prometheus
        text = sys.stdin.read()
        def read(parser):
            return {s.name + json.dumps(s.labels, sort_keys=True): float(s.value) for family in parser(text) for s in family.samples}
        values = read(openmetrics)
        # The format before OpenMetrics, which node_exporter's textfile collector reads, says the
        # same.
        assert read(prometheus) == values
        print(json.dumps(values))
        PYTHON;

    /**
     * @return array<string, float> name and labels => value
     */
    public static function parse(string $text): array
    {
        // Debian's own: another Python in the way does not see Debian's modules.
        $process = proc_open(
            [is_executable('/usr/bin/python3') ? '/usr/bin/python3' : 'python3', '-c', self::PARSER],
            [['pipe', 'r'], ['pipe', 'w'], ['pipe', 'w']],
            $pipes,
        );
        Assert::assertIsResource($process);
        fwrite($pipes[0], $text);
        fclose($pipes[0]);
        $output = (string)stream_get_contents($pipes[1]);
        $errors = (string)stream_get_contents($pipes[2]);
        Assert::assertSame(0, proc_close($process), $errors . $text);

        return array_map('floatval', json_decode($output, true, 8, JSON_THROW_ON_ERROR));
    }
}
