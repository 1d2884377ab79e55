<?php

declare(strict_types=1);

namespace NrLlmRuntime\Tests\Messenger;

use Netresearch\NrLlm\Provider\Exception\ProviderConnectionException;

/**
 * The real transport receives, decodes and acknowledges the messages that were written, when they
 * are due and not before.
 */
final class ReceiveTest extends MessengerTestCase
{
    public function testReapedRunsAreReceivedDecodedAndAcknowledged(): void
    {
        $uuids = array_map($this->uuid(...), $this->stale(40));
        $this->db->running($this->now - 5, ['requeue_count' => 3]);
        $report = $this->runtime->reap(50, null, ['wakeUp' => $this->wakeUp()]);
        self::assertCount(1, $report->deadLettered());
        $transport = $this->transport();
        self::assertSame(40, $transport->getMessageCount());
        self::assertEqualsCanonicalizing($uuids, $this->receiveAll($transport));
        self::assertSame(0, $this->messageCount(), 'what was acknowledged is deleted');
    }

    public function testAReceivedRunCanBeClaimed(): void
    {
        $this->stale(5);
        $this->runtime->reap(50, null, ['wakeUp' => $this->wakeUp()]);
        foreach ($this->receiveAll($this->transport()) as $uuid) {
            $uid = (int) $this->db->value('SELECT uid FROM tx_nrllm_agentrun WHERE uuid = ?', [$uuid]);
            self::assertTrue($this->runtime->claimQueued($uid, 'worker:b', time() + 60));
            self::assertFalse($this->runtime->claimQueued($uid, 'worker:c', time() + 60));
        }
    }

    public function testADelayIsHonoured(): void
    {
        $runtime = $this->db->runtime(['backoffBaseMs' => 1001]);
        $uid = $this->db->running($this->now + 60);
        $recovery = $runtime->recoverFailure($uid, 'worker:a', new ProviderConnectionException('gone'), $this->wakeUp());
        self::assertSame([1001, true], [$recovery->delayMs(), $recovery->wokenUp()]);
        $requeued = (int) $this->db->value('SELECT tstamp FROM tx_nrllm_agentrun WHERE uid = ?', [$uid]);
        $transport = $this->transport();
        // The transport is polled until it returns the message, which is never before the run is
        // due by the table alone.
        for ($received = []; $received === []; $received = [...$transport->get()]) {
            $asked = microtime(true);
            self::assertLessThan($this->now + 20, $asked, 'the message comes');
        }
        self::assertGreaterThanOrEqual($requeued + 2, microtime(true));
        self::assertSame($this->uuid($uid), $received[0]->getMessage()->runUuid);
        self::assertSame([$uid], array_column($runtime->dueRuns(), 'uid'));
    }

    public function testALongDelayIsHonouredToTheSecond(): void
    {
        $runtime = $this->db->runtime(['jitter' => 0.5]);
        $transport = $this->transport();
        foreach ([0, 1, 2] as $count) {
            $uid = $this->db->running($this->now + 60, ['requeue_count' => $count]);
            $recovery = $runtime->recoverFailure($uid, 'worker:a', new ProviderConnectionException('gone'), $this->wakeUp());
            self::assertTrue($recovery->wokenUp());
            self::assertSame([], [...$transport->get()], 'not yet');
            // Time passes for the message: all but a second of the delay, counted from the requeue,
            // then the last second.
            $seconds = (int) ceil($recovery->delayMs() / 1000);
            $requeued = (int) $this->db->value('SELECT tstamp FROM tx_nrllm_agentrun WHERE uid = ?', [$uid]);
            $available = strtotime($this->rows()[0]['available_at'] . ' UTC');
            self::assertSame($requeued + $seconds, $available);
            self::assertSame([], array_column($runtime->dueRuns(5, $available - 1), 'uid'));
            self::assertSame([$uid], array_column($runtime->dueRuns(5, $available), 'uid'));
            $this->db->query('UPDATE sys_messenger_messages SET available_at = available_at - INTERVAL ? SECOND', [$seconds]);
            self::assertSame([$this->uuid($uid)], $this->receiveAll($transport));
            self::assertSame(0, $this->messageCount());
            $this->db->query('DELETE FROM tx_nrllm_agentrun');
        }
    }

    public function testStrandedRunsGetOneMessage(): void
    {
        $uuids = [];
        for ($i = 0; $i < 5; $i++) {
            $uuids[] = $this->uuid($this->db->insert(['tstamp' => $this->now - 900]));
        }
        $swept = $this->runtime->strandedRuns(300, 50, null, $this->wakeUp());
        self::assertSame([true], array_unique(array_column($swept, 'wokenUp')));
        self::assertSame([], $this->runtime->strandedRuns(300, 50, null, $this->wakeUp()));
        self::assertEqualsCanonicalizing($uuids, $this->receiveAll($this->transport()));
    }
}
