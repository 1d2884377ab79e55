<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Support;

use Psr\Log\AbstractLogger;

final class MemoryLogger extends AbstractLogger
{
    /** @var list<array{level: string, message: string, context: array<string, mixed>}> */
    public array $records = [];

    // Untyped $message: psr/log 1 and 3 both allow it.
    public function log($level, $message, array $context = []): void
    {
        $this->records[] = ['level' => (string)$level, 'message' => (string)$message, 'context' => $context];
    }

    /** @return list<string> the messages with their placeholders filled */
    public function lines(string $level = ''): array
    {
        $messages = [];
        foreach ($this->records as $record) {
            if ($level === '' || $record['level'] === $level) {
                $replace = [];
                foreach ($record['context'] as $key => $value) {
                    $replace['{' . $key . '}'] = is_scalar($value) ? (string)$value : get_debug_type($value);
                }
                $messages[] = strtr($record['message'], $replace);
            }
        }

        return $messages;
    }
}
