<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\WakeUp;

use NrLlmRuntime\Typo3\DependencyInjection\OverrideNrLlmServicesPass;
use NrLlmRuntime\Typo3\Runtime\RuntimeLocator;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\Messenger\Stamp\DelayStamp;

/**
 * The message bus of nr_llm's recovery after a failure: the message of a retry waits for the larger
 * of nr_llm's backoff and the failure's own waiting time, at most an hour (P 36). An open circuit
 * says for how long it is open, and a retry before that fails for certain.
 *
 * nr_llm hands the failure to its recovery and not to the bus, so it is read from the recovery's
 * own call.
 */
final class RetryAfterMessageBus implements MessageBusInterface
{
    private const RECOVERY = 'Netresearch\NrLlm\Service\Agent\QueuedRunFailureRecovery';
    private const LONGEST_SECONDS = 3600;
    private const FRAMES = 8;

    public function __construct(private readonly MessageBusInterface $bus, private readonly RuntimeLocator $locator) {}

    public function dispatch(mixed $message, array $stamps = []): Envelope
    {
        $seconds = $message::class === OverrideNrLlmServicesPass::MESSAGE ? $this->waitingTime() : 0;
        foreach ($stamps as $position => $stamp) {
            if ($stamp instanceof DelayStamp && $stamp->getDelay() < $seconds * 1000) {
                $stamps[$position] = new DelayStamp($seconds * 1000);
            }
        }

        return $this->bus->dispatch($message, $stamps);
    }

    /**
     * Returns the waiting time of the failure that nr_llm recovers from, in seconds; 0 where it has
     * none.
     */
    private function waitingTime(): int
    {
        if (!$this->locator->isAvailable() || !method_exists(\NrLlmFailure::class, 'retryAfterSeconds')) {
            return 0;
        }
        /** @var array{class?: string, function: string, args?: list<mixed>} $frame */
        foreach (debug_backtrace(0, self::FRAMES) as $frame) {
            if (($frame['class'] ?? '') !== self::RECOVERY || $frame['function'] !== 'recover') {
                continue;
            }
            foreach ($frame['args'] ?? [] as $argument) {
                if ($argument instanceof \Throwable) {
                    return min(\NrLlmRuntime::classifyFailure($argument)->retryAfterSeconds() ?? 0, self::LONGEST_SECONDS);
                }
            }
        }

        return 0;
    }
}
