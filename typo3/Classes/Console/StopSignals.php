<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Console;

/**
 * SIGTERM and SIGINT of a resident command: they are noted, and the command ends where it is safe.
 * Without PHP's pcntl extension the signals end the process at once.
 */
final class StopSignals
{
    private bool $received = false;
    private bool $async = false;
    /** @var array<int, mixed> handlers, as pcntl_signal_get_handler() returns them */
    private array $before = [];

    public static function areSupported(): bool
    {
        return function_exists('pcntl_async_signals') && function_exists('pcntl_signal');
    }

    public function listen(): void
    {
        $this->received = false;
        if (!self::areSupported()) {
            return;
        }
        $this->async = pcntl_async_signals(true);
        foreach ([SIGTERM, SIGINT] as $signal) {
            $this->before[$signal] = pcntl_signal_get_handler($signal);
            pcntl_signal($signal, function (): void {
                $this->received = true;
            });
        }
    }

    /**
     * Puts the handlers back that listen() found.
     */
    public function restore(): void
    {
        foreach ($this->before as $signal => $handler) {
            pcntl_signal($signal, $handler);
        }
        if ($this->before !== []) {
            pcntl_async_signals($this->async);
        }
        $this->before = [];
    }

    public function stop(): void
    {
        $this->received = true;
    }

    public function isReceived(): bool
    {
        return $this->received;
    }

    /**
     * Waits, until a signal arrives at most.
     */
    public function wait(float $seconds): void
    {
        // A signal ends usleep() early.
        for ($until = microtime(true) + $seconds; !$this->received && ($left = $until - microtime(true)) > 0;) {
            usleep(max(0, (int)(min($left, 1.0) * 1000000)));
        }
    }
}
