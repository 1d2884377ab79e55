<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\EventListener;

use NrLlmRuntime\Typo3\Database\DatabaseConnections;
use NrLlmRuntime\Typo3\DependencyInjection\OverrideNrLlmServicesPass;
use NrLlmRuntime\Typo3\Repository\UnhandledRuns;
use Psr\Log\LoggerInterface;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Stamp\TransportNamesStamp;

/**
 * A worker acknowledges a message after its handler has returned, also where nr_llm could not claim
 * the run because of an error. This listener runs in between: the message of a run that was not
 * handled is sent again, with a delay. Where it cannot be sent, the worker ends without the
 * acknowledgement, and the transport delivers the message again.
 */
final class ResendMessageOfUnhandledRun
{
    private const DELAY_MS = 30000;

    public function __construct(
        private readonly UnhandledRuns $unhandled,
        private readonly DatabaseConnections $connections,
        private readonly LoggerInterface $logger,
        private readonly ?MessageBusInterface $bus = null,
    ) {}

    /**
     * Before a message is handled: nr_llm reads the run over TYPO3's connection and takes an error
     * for "there is no such run".
     *
     * @param object $event WorkerMessageReceivedEvent
     * @throws \Throwable where the database cannot be reached; the worker ends, the message is not
     *     acknowledged
     */
    public function received(object $event): void
    {
        $this->unhandled->clear();
        if (self::runUuid($event) !== null) {
            $this->connections->reviveAll();
        }
    }

    /**
     * Before a message is acknowledged or rejected.
     *
     * @param object $event WorkerMessageHandledEvent or WorkerMessageFailedEvent
     * @throws \RuntimeException where the message cannot be sent again
     */
    public function handled(object $event): void
    {
        $reasons = $this->unhandled->take();
        $uuid = self::runUuid($event);
        if ($reasons === [] || $uuid === null) {
            return;
        }
        $context = ['uuid' => $uuid, 'reason' => implode(' ', $reasons), 'seconds' => self::DELAY_MS / 1000];
        try {
            if ($this->bus === null) {
                throw new \RuntimeException('No message bus is available.');
            }
            $this->bus->dispatch(new Envelope($event->getEnvelope()->getMessage()), [
                new DelayStamp(self::DELAY_MS),
                ...(class_exists(TransportNamesStamp::class) ? [new TransportNamesStamp([$event->getReceiverName()])] : []),
            ]);
        } catch (\Throwable $error) {
            $this->logger->error('Agent run {uuid} was not handled, and its message is not acknowledged: {reason}', $context);
            throw new \RuntimeException(sprintf(
                'Agent run %s was not handled (%s), and its message could not be sent again (%s). The worker ends without acknowledging '
                . 'the message.',
                $uuid,
                $context['reason'],
                $error->getMessage(),
            ), 1789000001, $error);
        }
        $this->logger->warning(
            'Agent run {uuid} was not handled; its message was sent again with a delay of {seconds} s: {reason}',
            $context,
        );
    }

    private static function runUuid(object $event): ?string
    {
        $message = method_exists($event, 'getEnvelope') ? $event->getEnvelope()->getMessage() : null;

        return $message !== null && $message::class === OverrideNrLlmServicesPass::MESSAGE ? $message->runUuid : null;
    }
}
