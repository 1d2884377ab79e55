<?php

declare(strict_types=1);

namespace NrLlmRuntime\Tests\Messenger;

use Doctrine\DBAL\DriverManager;
use Netresearch\NrLlm\Service\Agent\Queue\AgentRunQueuedMessage;
use NrLlmRuntime;
use PHPUnit\Framework\TestCase;
use Symfony\Component\Messenger\Bridge\Doctrine\Transport\Connection;
use Symfony\Component\Messenger\Bridge\Doctrine\Transport\DoctrineTransport;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Stamp\TransportMessageIdStamp;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use TestDb;

/**
 * A database of the test's own with the runs and TYPO3's message table, the runtime, and the real
 * transport on it.
 */
abstract class MessengerTestCase extends TestCase
{
    protected const PLACEHOLDER = '00000000-0000-4000-8000-000000000000';
    protected TestDb $db;
    protected NrLlmRuntime $runtime;
    protected int $now;

    protected function setUp(): void
    {
        $this->db = new TestDb(['messages' => true]);
        $this->runtime = $this->db->runtime();
        $this->now = time();
    }

    protected function tearDown(): void
    {
        $this->runtime->close();
        $this->db->closeLink();
    }

    protected function transport(?SerializerInterface $serializer = null, array $options = []): DoctrineTransport
    {
        $dbal = DriverManager::getConnection([
            'driver' => 'mysqli',
            'unix_socket' => getenv('NRLLM_TEST_SOCKET'),
            'user' => getenv('NRLLM_TEST_USER'),
            'password' => getenv('NRLLM_TEST_PASSWORD'),
            'dbname' => $this->db->name,
            'charset' => 'utf8mb4',
        ]);

        return new DoctrineTransport(new Connection($options + ['table_name' => 'sys_messenger_messages', 'auto_setup' => false], $dbal), $serializer ?? new PhpSerializer());
    }

    /**
     * A template as a site makes it: what the transport's own serializer writes for a message for
     * the placeholder.
     */
    protected function wakeUp(?SerializerInterface $serializer = null, ?Envelope $envelope = null, array $changes = []): array
    {
        $encoded = ($serializer ?? new PhpSerializer())->encode($envelope ?? new Envelope(new AgentRunQueuedMessage(self::PLACEHOLDER)));

        return $changes + [
            'table' => 'sys_messenger_messages',
            'queue' => 'default',
            'body' => $encoded['body'],
            'headers' => json_encode($encoded['headers'] ?? [], JSON_THROW_ON_ERROR),
            'placeholder' => self::PLACEHOLDER,
        ];
    }

    protected function uuid(int $uid): string
    {
        return (string) $this->db->value('SELECT uuid FROM tx_nrllm_agentrun WHERE uid = ?', [$uid]);
    }

    /** @return list<int> */
    protected function stale(int $count): array
    {
        $runs = [];
        for ($i = 0; $i < $count; $i++) {
            $runs[] = $this->db->running($this->now - 1000 + $i);
        }

        return $runs;
    }

    /**
     * Takes every message that is available, acknowledges it, and returns the uuids in the order of
     * receiving.
     */
    protected function receiveAll(DoctrineTransport $transport): array
    {
        $uuids = [];
        while (($envelopes = [...$transport->get()]) !== []) {
            foreach ($envelopes as $envelope) {
                self::assertInstanceOf(AgentRunQueuedMessage::class, $envelope->getMessage());
                self::assertNotNull($envelope->last(TransportMessageIdStamp::class));
                $uuids[] = $envelope->getMessage()->runUuid;
                $transport->ack($envelope);
            }
        }

        return $uuids;
    }

    protected function messageCount(): int
    {
        return (int) $this->db->value('SELECT COUNT(*) FROM sys_messenger_messages');
    }

    /** @return list<array<string, string|null>> */
    protected function rows(string $table = 'sys_messenger_messages'): array
    {
        return $this->db->query("SELECT * FROM $table ORDER BY 1")->fetch_all(MYSQLI_ASSOC);
    }

    /**
     * Starts children that all wait for a line on their input, and sends it to them at once.
     *
     * @param list<array{0: string, 1?: mixed}> $roles
     *
     * @return list<array{process: resource, in: resource, out: resource}>
     */
    protected function release(array $roles): array
    {
        $children = array_map(function (array $role): array {
            $command = [PHP_BINARY, '-d', 'extension=' . getenv('NRLLM_MODULE'), '-d', 'date.timezone=UTC', __DIR__ . '/child.php', $role[0], $this->db->name,
                json_encode($role[1] ?? null, JSON_THROW_ON_ERROR)];
            $process = proc_open($command, [['pipe', 'r'], ['pipe', 'w'], STDERR], $pipes);
            self::assertIsResource($process);

            return ['process' => $process, 'in' => $pipes[0], 'out' => $pipes[1]];
        }, $roles);
        foreach ($children as $child) {
            self::assertSame("ready\n", fgets($child['out']), 'a child is ready');
        }
        foreach ($children as $child) {
            fwrite($child['in'], "go\n");
        }

        return $children;
    }

    /** The output of a child until it ends; its exit code must be 0. */
    protected function finish(array $child): string
    {
        $output = stream_get_contents($child['out']);
        fclose($child['in']);
        fclose($child['out']);
        self::assertSame(0, proc_close($child['process']), "a child ended badly: $output");

        return $output;
    }
}
