<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Support;

use PHPUnit\Framework\Assert;

/**
 * Further PHP processes, with the settings and the libraries of this one.
 */
final class Process
{
    /**
     * @param array<string, string> $environment
     * @return array<string, mixed> the output of variant.php
     */
    public static function variant(string $variant, string $order, string $action, array $environment = [], bool $withModule = true): array
    {
        [$code, $output, $errors] = self::run(
            [__DIR__ . '/variant.php', $order, $action],
            ['NRLLM_TYPO3_VARIANT' => $variant] + $environment,
            $withModule,
        );
        Assert::assertSame(0, $code, $output . $errors);
        $answer = json_decode($output, true);
        Assert::assertIsArray($answer, $output . $errors);

        return $answer;
    }

    /**
     * @param list<string>          $arguments   PHP's, the script first
     * @param array<string, string> $environment
     * @return array{int, string, string}
     */
    public static function run(array $arguments, array $environment = [], bool $withModule = true): array
    {
        [$process, $pipes] = self::start($arguments, $environment, $withModule);
        $output = (string)stream_get_contents($pipes[1]);
        $errors = (string)stream_get_contents($pipes[2]);

        return [proc_close($process), $output, $errors];
    }

    /**
     * @param list<string>          $arguments
     * @param array<string, string> $environment
     * @return array{resource, array<int, resource>}
     */
    public static function start(array $arguments, array $environment = [], bool $withModule = true): array
    {
        $options = ['-d', 'include_path=' . get_include_path(), '-d', 'date.timezone=UTC', '-d', 'memory_limit=256M', '-d',
            'display_errors=stderr'];
        $byBridge = getenv('NRLLM_TYPO3_BINDING') === 'ffi';
        if (!$withModule) {
            $environment['NRLLM_TYPO3_BINDING'] = 'none';
        } elseif (!$byBridge) {
            $options = [...$options, '-d', 'extension=' . getenv('NRLLM_MODULE')];
        }
        $process = proc_open(
            [PHP_BINARY, ...$options, ...$arguments],
            [['file', '/dev/null', 'r'], ['pipe', 'w'], ['pipe', 'w']],
            $pipes,
            null,
            $environment + ['NRLLM_TYPO3_CONF' => (string)json_encode($GLOBALS['TYPO3_CONF_VARS'] ?? [])] + getenv(),
        );
        if (!is_resource($process)) {
            throw new \RuntimeException('A PHP process could not be started.');
        }

        return [$process, $pipes];
    }
}
