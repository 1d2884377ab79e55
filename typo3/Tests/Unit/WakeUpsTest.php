<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Unit;

use Netresearch\NrLlm\Service\Agent\Queue\AgentRunQueuedMessage;
use NrLlmRuntime\Typo3\DependencyInjection\ContainerFacts;
use NrLlmRuntime\Typo3\Settings\ConnectionSettings;
use NrLlmRuntime\Typo3\Settings\RuntimeSettings;
use NrLlmRuntime\Typo3\WakeUp\Routing;
use NrLlmRuntime\Typo3\WakeUp\WakeUps;
use PHPUnit\Framework\TestCase;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use TYPO3\CMS\Core\Configuration\ExtensionConfiguration;
use TYPO3\CMS\Core\Information\Typo3Version;

/**
 * Which transport wakes a run, and whether its message can be written in the requeue's own
 * transaction.
 */
final class WakeUpsTest extends TestCase
{
    private const SENDERS = [
        'default' => ['kind' => 'sync', 'queue' => 'default', 'table' => ''],
        'doctrine' => ['kind' => 'doctrine', 'queue' => 'agents', 'table' => 'sys_messenger_messages'],
        'rabbit' => ['kind' => 'other', 'queue' => '', 'table' => ''],
    ];
    private const MESSAGE = AgentRunQueuedMessage::class;

    protected function setUp(): void
    {
        Typo3Version::$version = '13.4.18';
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'] = ['driver' => 'mysqli', 'host' => 'db', 'dbname' => 'd'];
    }

    protected function tearDown(): void
    {
        unset($GLOBALS['TYPO3_CONF_VARS']);
    }

    public function testModes(): void
    {
        $cases = [
            // routing, extension setting => mode, transports, part of the reason
            [[self::MESSAGE => 'doctrine'], '', WakeUps::OUTBOX, ['doctrine'], 'in the requeue\'s own transaction'],
            [[self::MESSAGE => ['doctrine']], '', WakeUps::OUTBOX, ['doctrine'], ''],
            [[self::MESSAGE => 'doctrine', '*' => 'default'], '', WakeUps::OUTBOX, ['doctrine'], ''],
            [['Netresearch\NrLlm\Service\Agent\Queue\*' => 'doctrine', '*' => 'default'], '', WakeUps::OUTBOX, ['doctrine'], ''],
            [['*' => 'doctrine'], '', WakeUps::OUTBOX, ['doctrine'], ''],
            [['*' => 'default'], '', WakeUps::SYNCHRONOUS, ['default'], 'The transport "default" is synchronous'],
            [['*' => 'default'], 'doctrine', WakeUps::OUTBOX, ['doctrine'], ''],
            [[], '', WakeUps::SYNCHRONOUS, [], 'No transport is named for the message'],
            [[self::MESSAGE => 'rabbit'], '', WakeUps::BUS, ['rabbit'], '"rabbit" is not TYPO3\'s doctrine transport.'],
            [[self::MESSAGE => ['doctrine', 'rabbit']], '', WakeUps::BUS, ['doctrine', 'rabbit'], 'more than one transport'],
            [[self::MESSAGE => 'gone'], '', WakeUps::MISCONFIGURED, ['gone'],
                'The transport "gone" (routing of nr_llm\'s message) is not registered'],
            [[self::MESSAGE => 'doctrine'], 'gone', WakeUps::MISCONFIGURED, ['gone'], 'Registered are "'],
            [[self::MESSAGE => ['doctrine', 'gone']], '', WakeUps::MISCONFIGURED, ['doctrine', 'gone'], '"gone"'],
        ];
        foreach ($cases as [$routing, $setting, $mode, $transports, $reason]) {
            $case = json_encode([$routing, $setting]);
            [$wakeUps, $found] = $this->wakeUps($routing, $setting);
            self::assertSame($transports, $found->transports(), $case);
            self::assertSame($mode, $wakeUps->mode(), $case);
            self::assertStringContainsString($reason, $wakeUps->reason(), $case);
            self::assertSame($mode === WakeUps::OUTBOX, $wakeUps->template() !== null, $case);
        }
    }

    public function testSinceTypo3Version14AWildcardIsAFallback(): void
    {
        $routing = [self::MESSAGE => 'doctrine', 'Netresearch\NrLlm\Service\Agent\*' => 'rabbit', '*' => 'default'];
        foreach (['13.4.18' => ['doctrine', 'rabbit'], '14.3.6' => ['doctrine']] as $version => $transports) {
            Typo3Version::$version = $version;
            [, $found] = $this->wakeUps($routing, '');
            self::assertSame($transports, $found->transports(), $version);
            self::assertSame($version === '14.3.6', $found->trap() === '', $version);
        }
        Typo3Version::$version = '13.4.18';
    }

    public function testTheTemplateIsAMessageOfTheRealSerializerForAPlaceholder(): void
    {
        [$wakeUps] = $this->wakeUps([self::MESSAGE => 'doctrine']);
        $template = (array)$wakeUps->template();
        self::assertSame(['sys_messenger_messages', 'agents', '[]'], [$template['table'], $template['queue'], $template['headers']]);
        self::assertMatchesRegularExpression(
            '/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/',
            $template['placeholder'],
        );
        self::assertSame(36, strlen($template['placeholder']));
        self::assertSame(1, substr_count($template['body'], $template['placeholder']));
        $uuid = '0e12362e-cbf0-4052-a2e9-f3c849a50bc4';
        $envelope = (new PhpSerializer())->decode(['body' => str_replace($template['placeholder'], $uuid, $template['body']),
            'headers' => []]);
        self::assertEquals(new AgentRunQueuedMessage($uuid), $envelope->getMessage());
        self::assertSame([], $envelope->all());
    }

    public function testASerializerThatHidesTheUuidGetsNoOutbox(): void
    {
        $serializer = new class implements SerializerInterface {
            public function decode(array $encodedEnvelope): Envelope
            {
                throw new \LogicException('not asked');
            }

            public function encode(Envelope $envelope): array
            {
                return ['body' => base64_encode(serialize($envelope)), 'headers' => ['type' => 'x']];
            }
        };
        [$wakeUps] = $this->wakeUps([self::MESSAGE => 'doctrine'], '', $serializer);
        self::assertSame(WakeUps::BUS, $wakeUps->mode());
        self::assertStringContainsString('the serializer does not write a run\'s uuid', $wakeUps->reason());
    }

    public function testAnotherDatabaseGetsNoOutbox(): void
    {
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Runs'] = ['driver' => 'mysqli', 'host' => 'db', 'dbname' => 'runs'];
        $GLOBALS['TYPO3_CONF_VARS']['DB']['TableMapping']['tx_nrllm_agentrun'] = 'Runs';
        [$wakeUps] = $this->wakeUps([self::MESSAGE => 'doctrine']);
        self::assertSame(WakeUps::BUS, $wakeUps->mode());
        self::assertStringContainsString('the run table is on "Runs"', $wakeUps->reason());
    }

    public function testAMessageIsDispatchedToTheNamedTransportOnly(): void
    {
        $bus = new class implements MessageBusInterface {
            /** @var list<array{object, list<object>}> */
            public array $sent = [];

            public function dispatch($message, array $stamps = []): Envelope
            {
                $this->sent[] = [$message, $stamps];

                return new Envelope($message);
            }
        };
        [$wakeUps] = $this->wakeUps([self::MESSAGE => 'rabbit', '*' => 'default'], '', null, $bus);
        $wakeUps->dispatch('0e12362e-cbf0-4052-a2e9-f3c849a50bc4');
        [[$message, $stamps]] = $bus->sent;
        self::assertEquals(new AgentRunQueuedMessage('0e12362e-cbf0-4052-a2e9-f3c849a50bc4'), $message);
        // Symfony 5.4 has no such stamp; every TYPO3 that is supported has.
        $class = 'Symfony\Component\Messenger\Stamp\TransportNamesStamp';
        self::assertEquals(class_exists($class) ? [new $class(['rabbit'])] : [], $stamps);
    }

    public function testTheWildcardTrapOfTypo3Version13(): void
    {
        $trapped = [self::MESSAGE => 'doctrine', '*' => 'default'];
        self::assertStringContainsString(
            'sends AgentRunQueuedMessage to "doctrine" and, by \'*\', to "default" too',
            $this->wakeUps($trapped)[1]->trap(),
        );
        self::assertSame('', $this->wakeUps([self::MESSAGE => 'doctrine'])[1]->trap());
        self::assertSame('', $this->wakeUps(['*' => 'default'])[1]->trap());
        self::assertSame('', $this->wakeUps([self::MESSAGE => 'doctrine', '*' => 'rabbit'])[1]->trap());
        Typo3Version::$version = '14.3.0';
        self::assertSame('', $this->wakeUps($trapped)[1]->trap());
    }

    /**
     * @param array<string, mixed> $routing
     * @return array{WakeUps, Routing}
     */
    private function wakeUps(
        array $routing,
        string $setting = '',
        ?SerializerInterface $serializer = null,
        ?MessageBusInterface $bus = null,
    ): array {
        $GLOBALS['TYPO3_CONF_VARS']['SYS']['messenger']['routing'] = $routing;
        $GLOBALS['TYPO3_CONF_VARS']['EXTENSIONS']['nrllm_runtime'] = ['transport' => $setting];
        $found = new Routing(new ContainerFacts(['senders' => self::SENDERS]), new RuntimeSettings(new ExtensionConfiguration()));

        return [new WakeUps(
            $found,
            new ConnectionSettings(),
            $bus ?? $this->createMock(MessageBusInterface::class),
            $serializer ?? new PhpSerializer(),
        ), $found];
    }
}
