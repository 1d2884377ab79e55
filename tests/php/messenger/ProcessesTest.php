<?php

declare(strict_types=1);

namespace NrLlmRuntime\Tests\Messenger;

/**
 * Real processes: reapers and consumers at once, and processes that are killed in the middle of
 * their work.
 */
final class ProcessesTest extends MessengerTestCase
{
    public function testThreeReapersReleasedAtOnceOnSixtyStaleRuns(): void
    {
        foreach ([60, 7, 60, 60, 60] as $limit) {
            $uuids = array_map($this->uuid(...), $this->stale(60));
            $reported = [];
            foreach ($this->release([['reap', $limit], ['reap', $limit], ['reap', $limit]]) as $child) {
                array_push($reported, ...explode("\n", trim($this->finish($child))));
            }
            $reported = array_values(array_filter($reported));
            self::assertEqualsCanonicalizing(array_map(static fn (string $uuid): string => "$uuid true", $uuids), $reported, 'exactly 60 requeues');
            self::assertSame(60, $this->messageCount(), 'exactly 60 messages');
            self::assertSame(60, (int) $this->db->value("SELECT COUNT(*) FROM tx_nrllm_agentrun WHERE status = 'queued' AND requeue_count = 1"));
            self::assertEqualsCanonicalizing($uuids, $this->receiveAll($this->transport()));
            $this->db->query('DELETE FROM tx_nrllm_agentrun');
        }
    }

    public function testReapersAndConsumersAtOnce(): void
    {
        $uuids = array_map($this->uuid(...), $this->stale(120));
        $children = $this->release([['reap', 10], ['reap', 10], ['consume', 120], ['consume', 120], ['consume', 120]]);
        $claimed = [];
        foreach ($children as $number => $child) {
            $output = trim($this->finish($child));
            if ($number >= 2 && $output !== '') {
                array_push($claimed, ...explode("\n", $output));
            }
        }
        self::assertEqualsCanonicalizing($uuids, $claimed, 'a worker was notified of each run, and claimed it once');
    }

    public function testAProcessThatIsKilledStrandsNoRun(): void
    {
        mt_srand(4711);
        $inTheMiddle = 0;
        for ($round = 0; $round < 30; $round++) {
            $reaps = $round % 2 === 0;
            $runs = $reaps ? $this->stale(60) : array_map(fn (int $i): int => $this->db->running($this->now + 3600), range(1, 60));
            [$child] = $this->release([$reaps ? ['reap', 3] : ['recover', $runs]]);
            // It is killed after its report of so many, at whatever statement it is then.
            for ($lines = mt_rand(0, 40); $lines > 0; $lines--) {
                fgets($child['out']);
            }
            proc_terminate($child['process'], SIGKILL);
            fclose($child['in']);
            fclose($child['out']);
            proc_close($child['process']);
            $queued = $this->check($runs, "round $round");
            $inTheMiddle += (int) ($queued > 0 && $queued < 60);

            // The next reaper handles the rest.
            $this->db->query("UPDATE tx_nrllm_agentrun SET lease_expires = ? WHERE status = 'running'", [$this->now - 1]);
            $this->runtime->reap(100, null, ['wakeUp' => $this->wakeUp()]);
            self::assertSame(60, $this->check($runs, "round $round, finished"));
            $this->db->query('DELETE FROM tx_nrllm_agentrun');
            $this->db->query('DELETE FROM sys_messenger_messages');
        }
        self::assertGreaterThan(10, $inTheMiddle, 'most were killed in the middle of their work');
    }

    /**
     * Checks that no run is queued without its message, no message is there for a run that is not
     * queued, and no run is lost. Returns how many are queued.
     */
    private function check(array $runs, string $why): int
    {
        // The transaction of the killed process has ended when its locks are released.
        $link = $this->db->link();
        $link->begin_transaction();
        $rows = $link->query('SELECT uuid, status, requeue_count FROM tx_nrllm_agentrun FORCE INDEX (PRIMARY) FOR UPDATE')->fetch_all(MYSQLI_ASSOC);
        $link->commit();
        self::assertCount(count($runs), $rows, "$why: a run is lost");
        $queued = [];
        foreach ($rows as $row) {
            self::assertContains($row['status'] . ' ' . $row['requeue_count'], ['queued 1', 'running 0'], $why);
            if ($row['status'] === 'queued') {
                $queued[] = $row['uuid'];
            }
        }
        $notified = array_map(static fn (array $message): string => unserialize(stripslashes($message['body']))->getMessage()->runUuid, $this->rows());
        self::assertEqualsCanonicalizing($queued, $notified, "$why: one message for each queued run, and no other");

        return count($queued);
    }
}
