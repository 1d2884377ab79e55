<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\WakeUp;

use NrLlmRuntime\Typo3\DependencyInjection\OverrideNrLlmServicesPass;
use NrLlmRuntime\Typo3\Settings\ConnectionSettings;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;

/**
 * How a requeued run gets its worker: a message row written in the requeue's own transaction (the
 * outbox), where TYPO3's doctrine transport lives in the run table's database; else a message sent
 * through the bus after the commit.
 *
 * @phpstan-import-type WakeUp from \NrLlmRuntime
 */
final class WakeUps
{
    public const OUTBOX = 'outbox';
    public const BUS = 'bus';
    public const SYNCHRONOUS = 'synchronous';
    public const NONE = 'none';
    /**
     * A transport that does not exist is named: nothing may be requeued, as no wake-up could be
     * sent.
     */
    public const MISCONFIGURED = 'misconfigured';

    private ?string $mode = null;
    private string $reason = '';
    /** @var WakeUp|null */
    private ?array $template = null;

    public function __construct(
        private readonly Routing $routing,
        private readonly ConnectionSettings $connection,
        private readonly ?MessageBusInterface $bus = null,
        private readonly ?SerializerInterface $serializer = null,
    ) {}

    /**
     * Returns the mode: one of the constants of this class.
     */
    public function mode(): string
    {
        if ($this->mode === null) {
            $this->decide();
        }

        return (string)$this->mode;
    }

    /**
     * Returns the reason for this mode.
     */
    public function reason(): string
    {
        $this->mode();

        return $this->reason;
    }

    /**
     * Returns whether wake-ups can be sent at all; reason() returns why not.
     */
    public function canBeSent(): bool
    {
        return !in_array($this->mode(), [self::NONE, self::MISCONFIGURED], true);
    }

    /**
     * The runtime's wakeUp array, null where there is no outbox.
     *
     * @return WakeUp|null
     */
    public function template(): ?array
    {
        return $this->mode() === self::OUTBOX ? $this->template : null;
    }

    /**
     * Sends one run's message through the bus, to the named transport only.
     *
     * @throws \Throwable what the bus throws
     */
    public function dispatch(string $uuid): void
    {
        if ($this->bus === null) {
            throw new \RuntimeException('No message bus is available.');
        }
        $this->bus->dispatch($this->message($uuid), $this->stamps());
    }

    private function decide(): void
    {
        $names = $this->routing->transports();
        if ($this->bus === null || !class_exists(OverrideNrLlmServicesPass::MESSAGE)) {
            $this->mode = self::NONE;
            $this->reason = 'No message bus is available; queued runs cannot be reclaimed.';

            return;
        }
        $problem = $this->routing->problem();
        if ($problem !== '') {
            $this->mode = self::MISCONFIGURED;
            $this->reason = $problem;

            return;
        }
        $outbox = $this->outboxObstacle($names);
        if ($outbox === '') {
            $this->mode = self::OUTBOX;
            $this->reason = sprintf('Wake-ups of the transport "%s" are written in the requeue\'s own transaction.', $names[0]);

            return;
        }
        if ($this->routing->isSynchronous()) {
            $this->mode = self::SYNCHRONOUS;
            $this->reason = ($names === [] ? 'No transport is named for the message'
                : sprintf('The transport "%s" is synchronous', implode('", "', $names)))
                . ': requeued runs execute inside the command, one after the other.';

            return;
        }
        $this->mode = self::BUS;
        $this->reason = sprintf('Wake-ups are sent to "%s" after each requeue, one run at a time: %s', implode('", "', $names), $outbox);
    }

    /**
     * @param list<string> $names
     * @return string what stands in the way of an atomic wake-up, '' where nothing does
     */
    private function outboxObstacle(array $names): string
    {
        if (count($names) !== 1) {
            return $names === [] ? 'no transport is named for the message.' : 'more than one transport is named for the message.';
        }
        $sender = $this->routing->sender($names[0]);
        if ($sender === null) {
            return sprintf('there is no transport "%s".', $names[0]);
        }
        if ($sender['kind'] !== 'doctrine') {
            return sprintf('"%s" is not TYPO3\'s doctrine transport.', $names[0]);
        }
        if (!$this->connection->isRunTablesDatabase(ConnectionSettings::TRANSPORT_CONNECTION)) {
            return sprintf(
                '"%s" keeps its messages in the database of the connection "%s", and the run table is on "%s".',
                $names[0],
                ConnectionSettings::TRANSPORT_CONNECTION,
                $this->connection->connectionName(),
            );
        }
        if ($this->serializer === null || !class_exists(OverrideNrLlmServicesPass::MESSAGE)) {
            return 'the messenger\'s serializer or nr_llm\'s message class is not available.';
        }
        $template = $this->makeTemplate($sender);
        if ($template === null) {
            return 'the serializer does not write a run\'s uuid in a form that can be replaced.';
        }
        $this->template = $template;

        return '';
    }

    /**
     * A message of the real serializer for a uuid that no run has; the runtime puts each run's uuid
     * in its place. Without stamps: those of a retry, say, would delay it.
     *
     * @param array{kind: string, queue: string, table: string} $sender
     * @return WakeUp|null
     */
    private function makeTemplate(array $sender): ?array
    {
        $hex = bin2hex(random_bytes(16));
        $placeholder = sprintf(
            '%s-%s-4%s-a%s-%s',
            substr($hex, 0, 8),
            substr($hex, 8, 4),
            substr($hex, 13, 3),
            substr($hex, 17, 3),
            substr($hex, 20),
        );
        try {
            $encoded = $this->serializer?->encode(new Envelope($this->message($placeholder)));
            $body = is_array($encoded) ? $encoded['body'] ?? null : null;
            // The doctrine transport stores the headers like this.
            $headers = json_encode($encoded['headers'] ?? [], JSON_THROW_ON_ERROR);
        } catch (\Throwable) {
            return null;
        }
        if (!is_string($body) || substr_count($body, $placeholder) !== 1) {
            return null;
        }

        return ['table' => $sender['table'], 'queue' => $sender['queue'], 'body' => $body, 'headers' => $headers,
            'placeholder' => $placeholder];
    }

    private function message(string $uuid): object
    {
        $class = OverrideNrLlmServicesPass::MESSAGE;

        return new $class($uuid);
    }

    /**
     * @return list<object>
     */
    private function stamps(): array
    {
        $names = $this->routing->transports();
        // Without the stamp '*' would add the synchronous transport in TYPO3 13 (see
        // Routing::trap()).
        $stamp = 'Symfony\Component\Messenger\Stamp\TransportNamesStamp';

        return $names !== [] && class_exists($stamp) ? [new $stamp($names)] : [];
    }
}
