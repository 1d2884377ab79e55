<?php

declare(strict_types=1);

namespace NrLlmRuntime\Tests\Messenger;

use Netresearch\NrLlm\Provider\Exception\ProviderConnectionException;
use Netresearch\NrLlm\Service\Agent\Queue\AgentRunQueuedMessage;
use NrLlmConfigurationException;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Stamp\BusNameStamp;
use Symfony\Component\Messenger\Stamp\StampInterface;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;

/**
 * The template is the serializer's output, and a message that is written from it equals the
 * transport's own.
 */
final class TemplateTest extends MessengerTestCase
{
    public function testTheRowIsTheTransportsOwn(): void
    {
        [$uid] = $this->stale(1);
        $this->transport()->send(new Envelope(new AgentRunQueuedMessage($this->uuid($uid))));
        self::assertTrue($this->runtime->reap(5, null, ['wakeUp' => $this->wakeUp()])->requeued()[0]['wokenUp']);
        [$theirs, $ours] = $this->rows();
        foreach (['body', 'headers', 'queue_name', 'delivered_at'] as $column) {
            self::assertSame($theirs[$column], $ours[$column], $column);
        }
        foreach (['created_at', 'available_at'] as $column) {
            self::assertEqualsWithDelta(strtotime($theirs[$column] . ' UTC'), strtotime($ours[$column] . ' UTC'), 5, $column);
        }
        self::assertSame([$this->uuid($uid), $this->uuid($uid)], $this->receiveAll($this->transport()));
    }

    public function testARecoverysRowIsThatOfADelayedMessage(): void
    {
        $uid = $this->db->running($this->now + 60);
        $recovery = $this->runtime->recoverFailure($uid, 'worker:a', new ProviderConnectionException('gone'), $this->wakeUp());
        self::assertTrue($recovery->wokenUp());
        [$row] = $this->rows();
        self::assertSame(30, strtotime($row['available_at'] . ' UTC') - strtotime($row['created_at'] . ' UTC'));
        self::assertEqualsWithDelta($this->now, strtotime($row['created_at'] . ' UTC'), 5);
    }

    public function testStampsOfTheTemplateArrive(): void
    {
        $envelope = new Envelope(new AgentRunQueuedMessage(self::PLACEHOLDER), [new BusNameStamp('messenger.bus.default'), new RemarkStamp("a \"b\" 'c' \\d\\ \0 ü€😀")]);
        $uuids = array_map($this->uuid(...), $this->stale(3));
        $this->runtime->reap(5, null, ['wakeUp' => $this->wakeUp(null, $envelope)]);
        $transport = $this->transport();
        $arrived = [];
        foreach ($uuids as $ignored) {
            [$received] = [...$transport->get()];
            $arrived[] = $received->getMessage()->runUuid;
            self::assertSame('messenger.bus.default', $received->last(BusNameStamp::class)->getBusName());
            self::assertSame("a \"b\" 'c' \\d\\ \0 ü€😀", $received->last(RemarkStamp::class)->remark);
            $transport->ack($received);
        }
        self::assertEqualsCanonicalizing($uuids, $arrived);
    }

    public function testABodyInBase64IsRefusedBeforeAnythingIsWritten(): void
    {
        [$uid] = $this->stale(1);
        $wakeUp = $this->wakeUp(null, new Envelope(new AgentRunQueuedMessage(self::PLACEHOLDER), [new BusNameStamp("\xff\xfe")]));
        self::assertSame(1, preg_match('#^[A-Za-z0-9+/=]+$#', $wakeUp['body']), 'the serializer falls back to base64');
        try {
            $this->runtime->reap(5, null, ['wakeUp' => $wakeUp]);
            self::fail('nothing was thrown');
        } catch (NrLlmConfigurationException $error) {
            self::assertStringContainsString('placeholder', $error->getMessage());
        }
        self::assertSame('running', $this->db->value('SELECT status FROM tx_nrllm_agentrun WHERE uid = ?', [$uid]));
        self::assertSame(0, $this->messageCount());
    }

    public function testAnotherSerializerWithTheUuidInBodyAndHeaders(): void
    {
        $serializer = new class () implements SerializerInterface {
            public function decode(array $encodedEnvelope): Envelope
            {
                $message = new AgentRunQueuedMessage(json_decode($encodedEnvelope['body'], true)['runUuid']);

                return new Envelope($message, [new BusNameStamp($encodedEnvelope['headers']['X-Run'])]);
            }

            public function encode(Envelope $envelope): array
            {
                return ['body' => json_encode(['runUuid' => $envelope->getMessage()->runUuid, 'note' => 'a/b "ü"']), 'headers' => ['X-Run' => $envelope->getMessage()->runUuid]];
            }
        };
        $uuids = array_map($this->uuid(...), $this->stale(2));
        $this->runtime->reap(5, null, ['wakeUp' => $this->wakeUp($serializer, null, ['queue' => 'agents'])]);
        $transport = $this->transport($serializer, ['queue_name' => 'agents']);
        self::assertSame(2, $transport->getMessageCount());
        self::assertSame(0, $this->transport()->getMessageCount(), 'another queue');
        foreach ([0, 1] as $ignored) {
            [$received] = [...$transport->get()];
            self::assertContains($received->getMessage()->runUuid, $uuids);
            self::assertSame($received->getMessage()->runUuid, $received->last(BusNameStamp::class)->getBusName());
            $transport->ack($received);
        }
        self::assertSame([], [...$transport->get()]);
    }

    public function testTheTableThatTheTransportMakesItself(): void
    {
        $transport = $this->transport(null, ['table_name' => 'messenger_messages', 'auto_setup' => true]);
        $transport->setup();
        $uuids = array_map($this->uuid(...), $this->stale(3));
        $report = $this->runtime->reap(5, null, ['wakeUp' => $this->wakeUp(null, null, ['table' => 'messenger_messages'])]);
        self::assertSame([true, true, true], array_column($report->requeued(), 'wokenUp'));
        self::assertEqualsCanonicalizing($uuids, $this->receiveAll($transport));
    }
}

/** A stamp of a site's own, with any text in it. */
final class RemarkStamp implements StampInterface
{
    public function __construct(public readonly string $remark) {}
}
