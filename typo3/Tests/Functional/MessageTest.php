<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Functional;

use Netresearch\NrLlm\Service\Agent\Queue\AgentRunQueuedMessage;
use NrLlmRuntime\Typo3\Database\DatabaseConnections;
use NrLlmRuntime\Typo3\EventListener\ResendMessageOfUnhandledRun;
use NrLlmRuntime\Typo3\Repository\UnhandledRuns;
use NrLlmRuntime\Typo3\Tests\Support\HandProxy;
use NrLlmRuntime\Typo3\Tests\Support\Listeners;
use NrLlmRuntime\Typo3\Tests\Support\MemoryLogger;
use NrLlmRuntime\Typo3\Tests\Support\SiteTestCase;
use Symfony\Component\Messenger\Bridge\Doctrine\Transport\DoctrineTransport;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Event\WorkerMessageHandledEvent;
use Symfony\Component\Messenger\Event\WorkerRunningEvent;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\Messenger\Worker;
use Symfony\Contracts\EventDispatcher\EventDispatcherInterface;
use TYPO3\CMS\Core\Database\ConnectionPool;

/**
 * Symfony's own worker and transport, and what becomes of a message whose run could not be claimed.
 */
final class MessageTest extends SiteTestCase
{
    private const WAITING = "delivered_at IS NULL AND body LIKE '%AgentRunQueuedMessage%'";

    public function testAMessageOfAnUnhandledRunIsSentAgain(): void
    {
        $this->db->configure(['fallback' => 'none']);
        $this->refuseTheRuntime();
        $uid = $this->enqueue();
        $this->consumeOne();
        self::assertSame('queued', $this->db->row($uid)['status']);
        self::assertSame(1, $this->db->one('SELECT COUNT(*) FROM sys_messenger_messages WHERE ' . self::WAITING));
        $waits = $this->db->one('SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), available_at) FROM sys_messenger_messages WHERE '
            . self::WAITING);
        self::assertEqualsWithDelta(30, $waits, 5, 'later, so that a worker with the runtime gets it');
        self::assertStringContainsString('its message was sent again', implode("\n", $this->log()->lines('warning')));
    }

    public function testNrLlmsOwnCodeHandlesTheMessageWhereItMay(): void
    {
        $this->refuseTheRuntime();
        $uid = $this->enqueue();
        $this->consumeOne();
        self::assertSame('completed', $this->db->row($uid)['status']);
        self::assertSame(0, $this->db->one('SELECT COUNT(*) FROM sys_messenger_messages WHERE ' . self::WAITING));
    }

    public function testARefusedConnectionCostsNoMessage(): void
    {
        // One for TYPO3, one for the transport, none for the runtime.
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'] = $this->db->limited(2);
        $uid = $this->enqueue();
        $this->site()->get(ConnectionPool::class)->getConnectionByName('Default')->executeQuery('SELECT 1');
        $this->consumeOne();
        self::assertSame('completed', $this->db->row($uid)['status'], implode("\n", $this->log()->lines()));
    }

    public function testAConnectionThatTheServerClosedCostsNoMessage(): void
    {
        $uid = $this->enqueue();
        $connection = $this->site()->get(ConnectionPool::class)->getConnectionByName('Default');
        $id = (int)$connection->executeQuery('SELECT CONNECTION_ID()')->fetchOne();
        $this->db->pdo->exec('KILL ' . $id);
        $this->consumeOne();
        self::assertSame('completed', $this->db->row($uid)['status'], implode("\n", $this->log()->lines()));
    }

    public function testWithoutASecondMessageTheFirstIsNotAcknowledged(): void
    {
        $unhandled = new UnhandledRuns();
        $bus = new class implements MessageBusInterface {
            public function dispatch(mixed $message, array $stamps = []): Envelope
            {
                throw new \RuntimeException('The broker is away.');
            }
        };
        $log = new MemoryLogger();
        $listener = new ResendMessageOfUnhandledRun($unhandled, new DatabaseConnections(new ConnectionPool()), $log, $bus);
        $event = new WorkerMessageHandledEvent(new Envelope(new AgentRunQueuedMessage('0e12362e-cbf0-4052-a2e9-f3c849a50bc4')), 'doctrine');
        $listener->handled($event);
        $unhandled->add(7, 'No connection.');
        try {
            $listener->handled($event);
            self::fail('the worker would acknowledge the message');
        } catch (\RuntimeException $error) {
            self::assertStringContainsString('Agent run 0e12362e-cbf0-4052-a2e9-f3c849a50bc4 was not handled (No connection.), and its '
                . 'message could not be sent again (The broker is away.)', $error->getMessage());
        }
        self::assertCount(1, $log->lines('error'));
        $listener->handled($event);
    }

    /**
     * TLS in the other driver's spelling: TYPO3's driver ignores it, the runtime refuses it.
     */
    private function refuseTheRuntime(): void
    {
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'] = ['driver' => 'pdo_mysql', 'ssl_ca' => '/nowhere/ca.pem']
            + $this->db->connection();
    }

    private function enqueue(): int
    {
        $this->site(HandProxy::addWhereNeeded(...));
        $uid = $this->db->run();
        $this->site()->get(MessageBusInterface::class)->dispatch(new AgentRunQueuedMessage($this->db->row($uid)['uuid']));

        return $uid;
    }

    private function consumeOne(): void
    {
        $listeners = $this->site()->get(Listeners::class);
        $dispatcher = new class ($listeners) implements EventDispatcherInterface {
            public function __construct(private readonly Listeners $listeners) {}

            public function dispatch(object $event, ?string $eventName = null): object
            {
                if ($event instanceof WorkerRunningEvent) {
                    $event->getWorker()->stop();
                }

                return $this->listeners->dispatch($event);
            }
        };
        $worker = new Worker(
            ['doctrine' => $this->site()->get(DoctrineTransport::class)],
            $this->site()->get(MessageBusInterface::class),
            $dispatcher,
        );
        $worker->run(['sleep' => 0]);
    }
}
