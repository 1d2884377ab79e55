<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Functional;

use NrLlmRuntime\Typo3\Event\AgentRunLeaseLostEvent;
use NrLlmRuntime\Typo3\EventListener\EndLeasesAfterMessage;
use NrLlmRuntime\Typo3\Repository\LeasedAgentRunRepository;
use NrLlmRuntime\Typo3\Tests\Support\SiteTestCase;
use TYPO3\CMS\Core\Database\ConnectionPool;

/**
 * What stands in front of nr_llm's run repository: on a real server, with the runtime's keeper.
 */
final class LeasedAgentRunRepositoryTest extends SiteTestCase
{
    private const NAME = 'worker:web-01:4711';

    public function testAClaimStoresTheExtendedNameAndTheConfiguredLease(): void
    {
        $this->db->configure(['leaseSeconds' => '120']);
        [$runs] = $this->repository();
        self::assertInstanceOf(LeasedAgentRunRepository::class, $runs);
        $uid = $this->db->run();
        self::assertTrue($runs->claimQueued($uid, self::NAME, time() + 900));
        $row = $this->db->row($uid);
        self::assertSame('running', $row['status']);
        self::assertMatchesRegularExpression('/^worker:web-01:4711:[0-9a-z]+$/i', $row['claimed_by']);
        self::assertEqualsWithDelta(time() + 120, $row['lease_expires'], 2);
        // The nonce is the process's, the same for all of its names.
        $second = $this->db->run();
        self::assertTrue($runs->claimQueued($second, 'worker:web-01:4712', time() + 900));
        self::assertSame(substr(strrchr($row['claimed_by'], ':'), 1), substr(strrchr($this->db->row($second)['claimed_by'], ':'), 1));
        self::assertFalse($runs->claimQueued($uid, self::NAME, time() + 900), 'won once');
    }

    public function testWithTheKeeperOffTheCallersLeaseIsWritten(): void
    {
        $this->db->configure(['keeper' => '0']);
        [$runs, $keeper] = $this->repository();
        $uid = $this->db->run();
        self::assertTrue($runs->claimQueued($uid, self::NAME, time() + 900));
        self::assertNull($keeper->lease($uid));
        self::assertEqualsWithDelta(time() + 900, $this->db->row($uid)['lease_expires'], 2);
        self::assertNotSame(self::NAME, $this->db->row($uid)['claimed_by']);
        self::assertTrue($runs->renewLease($uid, self::NAME, time() + 950));
        self::assertEqualsWithDelta(time() + 950, $this->db->row($uid)['lease_expires'], 2);
        self::assertTrue($runs->markPendingEffect($uid, self::NAME, 'read_only', time() + 960));
        self::assertSame('read_only', $this->db->row($uid)['pending_effect']);
        self::assertEqualsWithDelta(time() + 960, $this->db->row($uid)['lease_expires'], 2);
    }

    public function testEveryGuardOfTheProcessAsksForTheStoredName(): void
    {
        [$runs, $keeper] = $this->repository();
        $claim = function () use ($runs): int {
            $uid = $this->db->run();
            self::assertTrue($runs->claimQueued($uid, self::NAME, time() + 900));

            return $uid;
        };
        $uid = $claim();
        self::assertTrue($runs->renewLease($uid, self::NAME, time() + 900));
        self::assertTrue($runs->markPendingEffect($uid, self::NAME, 'idempotent_write', time() + 900));
        self::assertTrue($runs->requeue($uid, self::NAME));
        self::assertSame(['queued', 1, '', 0], [$this->db->row($uid)['status'], $this->db->row($uid)['requeue_count'],
            $this->db->row($uid)['claimed_by'], $this->db->row($uid)['lease_expires']]);
        self::assertNull($keeper->lease($uid));

        $uid = $claim();
        self::assertFalse($runs->finishRun($uid, 'completed', 1, false, 1, 1, 2, 0.0, '', '', 'worker:other:9'), 'not the owner');
        self::assertTrue($runs->finishRun($uid, 'completed', 1, false, 1, 1, 2, 0.0, '', '', self::NAME));
        self::assertSame('completed', $this->db->row($uid)['status']);

        $uid = $claim();
        self::assertTrue($runs->finishRun($uid, 'failed', 1, false, 1, 1, 2, 0.0, 'X', ownedBy: self::NAME), 'by name');

        $uid = $claim();
        self::assertTrue($runs->finishRun($uid, 'completed', 1, false, 1, 1, 2, 0.0, ''), 'without an owner, as nr_llm settles some');
        self::assertNull($keeper->lease($uid));
    }

    public function testANameReadFromARowIsTakenAsItIs(): void
    {
        [$runs] = $this->repository();
        $uid = $this->db->run(['status' => 'running', 'claimed_by' => self::NAME, 'lease_expires' => time() + 50]);
        self::assertTrue($runs->renewLease($uid, self::NAME, time() + 900), 'claimed by a stock worker');
        $mine = $this->db->run();
        self::assertTrue($runs->claimQueued($mine, self::NAME, time() + 900));
        self::assertTrue($runs->renewLease($mine, $this->db->row($mine)['claimed_by'], time() + 900));
        // The same name in another container: since this process uses the name itself, the stock
        // worker's run is not its own.
        self::assertFalse($runs->requeue($uid, self::NAME));
        self::assertSame('running', $this->db->row($uid)['status']);
    }

    public function testOtherClaimsKeepTheLeaseToo(): void
    {
        $this->db->configure(['leaseSeconds' => '90']);
        [$runs, $keeper] = $this->repository();
        foreach (['claimForResume' => 'waiting_for_approval', 'claimForResumeFromInput' => 'waiting_for_input'] as $method => $status) {
            $uid = $this->db->run(['status' => $status]);
            self::assertTrue($runs->{$method}($uid, 'resume:web-01:9', time() + 900), $method);
            self::assertSame('held', $keeper->lease($uid)?->state(), $method);
            self::assertStringStartsWith('resume:web-01:9:', $this->db->row($uid)['claimed_by']);
            self::assertEqualsWithDelta(time() + 90, $this->db->row($uid)['lease_expires'], 2);
            self::assertFalse($runs->{$method}($uid, 'resume:web-01:9', time() + 900), $method . ' again');
        }
        $uid = $runs->startRun('99999999-9999-4999-8999-999999999999', 1, 'x', 1, 'interactive:web-01:9', time() + 900);
        self::assertSame('held', $keeper->lease($uid)?->state());
        self::assertEqualsWithDelta(time() + 90, $this->db->row($uid)['lease_expires'], 2);
        self::assertTrue($runs->suspendRun($uid, '{}'));
        self::assertNull($keeper->lease($uid));
        $plain = $runs->startRun('88888888-8888-4888-8888-888888888888', 1, 'x', 1);
        self::assertNull($keeper->lease($plain));
        self::assertSame('', $this->db->row($plain)['claimed_by']);
    }

    public function testARecentHeartbeatAnswersWithoutARoundTrip(): void
    {
        $this->db->configure(['leaseSeconds' => '60']);
        [$runs, $keeper] = $this->repository();
        $uid = $this->db->run();
        self::assertTrue($runs->claimQueued($uid, self::NAME, time() + 900));
        $writes = fn(): int => (int)$this->db->all("SHOW GLOBAL STATUS LIKE 'Com_update'")[0]['Value']
            + (int)$this->db->all("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'")[0]['Value'];
        $before = $writes();
        $cost = $writes() - $before;
        for ($i = 0; $i < 50; $i++) {
            self::assertTrue($runs->renewLease($uid, self::NAME, time() + 900));
        }
        self::assertLessThanOrEqual(2 * $cost + 1, $writes() - $before, 'fifty renewals, no statement');
        self::assertSame('held', $keeper->lease($uid)?->state());
    }

    public function testALostLeaseAnswersFalseAndIsLogged(): void
    {
        $this->db->configure(['leaseSeconds' => '3']);
        [$runs, $keeper, $log] = $this->repository();
        foreach (['reaped' => "status = 'queued', claimed_by = '', lease_expires = 0", 'taken' => "claimed_by = 'worker:other:1'",
            'cancelled' => "status = 'cancelled', claimed_by = ''"] as $case => $set) {
            foreach (['renewLease' => [], 'markPendingEffect' => ['idempotent_write']] as $method => $effect) {
                $log->records = [];
                $uid = $this->db->run();
                self::assertTrue($runs->claimQueued($uid, self::NAME, time() + 900));
                $lease = $keeper->lease($uid);
                self::assertNotNull($lease);
                $this->db->pdo->exec("UPDATE tx_nrllm_agentrun SET $set WHERE uid = $uid");
                self::eventually(static fn(): bool => in_array($lease->state(), ['lost', 'cancelled'], true), 5, 'the keeper notices: '
                    . $case);
                self::assertFalse($runs->{$method}($uid, self::NAME, ...[...$effect, time() + 900]), "$case, $method");
                self::assertNull($keeper->lease($uid));
                self::assertCount(1, $log->lines('warning'), implode("\n", $log->lines()));
                self::assertStringContainsString("Agent run $uid is no longer owned by this process", $log->lines('warning')[0]);
                self::assertFalse($runs->requeue($uid, self::NAME), 'the settled owner cannot requeue it either');
            }
        }
    }

    public function testAFenceIsWrittenAlsoWhenAHeartbeatIsRecent(): void
    {
        [$runs] = $this->repository();
        $uid = $this->db->run();
        self::assertTrue($runs->claimQueued($uid, self::NAME, time() + 900));
        self::assertTrue($runs->markPendingEffect($uid, self::NAME, 'non_idempotent_write', time() + 900));
        self::assertSame('non_idempotent_write', $this->db->row($uid)['pending_effect']);
        self::assertTrue($runs->markPendingEffect($uid, self::NAME, '', time() + 900));
        self::assertSame('', $this->db->row($uid)['pending_effect']);
        // A write fence on a row of another owner, before the next heartbeat has noticed.
        $this->db->pdo->exec("UPDATE tx_nrllm_agentrun SET claimed_by = 'worker:other:1' WHERE uid = $uid");
        self::assertFalse($runs->markPendingEffect($uid, self::NAME, 'non_idempotent_write', time() + 900));
        self::assertSame('', $this->db->row($uid)['pending_effect']);
    }

    public function testALeaseShorterThanACallIsKeptThroughTheCall(): void
    {
        $this->db->configure(['leaseSeconds' => '3']);
        [$runs] = $this->repository();
        $uid = $this->db->run();
        self::assertTrue($runs->claimQueued($uid, self::NAME, time() + 900));
        $reaper = new \NrLlmRuntime($GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default']);
        for ($until = microtime(true) + 5; microtime(true) < $until;) {
            usleep(400000);
            self::assertCount(0, $reaper->reap(), 'reaped under a living worker');
        }
        self::assertTrue($runs->renewLease($uid, self::NAME, time() + 900));
        self::assertTrue($runs->finishRun($uid, 'completed', 1, false, 1, 1, 2, 0.0, '', '', self::NAME));
    }

    public function testAStoreErrorReachesNrLlmAndEndsTheHeartbeat(): void
    {
        $this->db->configure(['leaseSeconds' => '2', 'connectTimeoutMs' => '500', 'queryTimeoutMs' => '500']);
        [$runs, $keeper] = $this->repository();
        $uid = $this->db->run();
        self::assertTrue($runs->claimQueued($uid, self::NAME, time() + 900));
        $this->db->pdo->exec('RENAME TABLE tx_nrllm_agentrun TO tx_nrllm_away');
        $lease = $keeper->lease($uid);
        self::eventually(static fn(): bool => $lease->state() !== 'held' || $lease->lastError() !== null, 4, 'a heartbeat fails');
        try {
            $runs->markPendingEffect($uid, self::NAME, 'idempotent_write', time() + 900);
            self::fail('neither the runtime nor nr_llm can write');
        } catch (\NrLlmException | \Doctrine\DBAL\Exception $error) {
            self::assertStringContainsString('tx_nrllm_agentrun', $error->getMessage());
        }
        self::assertNull($keeper->lease($uid), 'nr_llm gives the run up, so it must become stale');
        $this->db->pdo->exec('RENAME TABLE tx_nrllm_away TO tx_nrllm_agentrun');
    }

    public function testTheHeartbeatEndsWhenARunCannotBeSettled(): void
    {
        [$runs, $keeper] = $this->repository();
        $uid = $this->db->run();
        self::assertTrue($runs->claimQueued($uid, self::NAME, time() + 900));
        try {
            // A status that does not fit the column: the store throws.
            $runs->finishRun($uid, str_repeat('x', 100), 1, false, 1, 1, 2, 0.0, '');
            self::fail('the store should have thrown');
        } catch (\Doctrine\DBAL\Exception) {
            self::assertNull($keeper->lease($uid));
        }
    }

    public function testStaleRunsAreSettledNatively(): void
    {
        [$runs] = $this->repository();
        $requeue = $this->db->stale();
        $dead = $this->db->stale();
        $live = $this->db->run(['status' => 'running', 'claimed_by' => 'worker:live:1', 'lease_expires' => time() + 100]);
        self::assertTrue($runs->requeueStale($requeue, time()));
        self::assertFalse($runs->requeueStale($requeue, time()));
        self::assertTrue($runs->deadLetterStale($dead, time(), 'retries_exhausted'));
        self::assertSame('retries_exhausted', $this->db->row($dead)['termination_reason']);
        self::assertFalse($runs->requeueStale($live, time()));
        self::assertFalse($runs->deadLetterStale($live, time(), 'not_retryable'));
    }

    public function testWhatIsNotOverriddenIsAnsweredByNrLlm(): void
    {
        [$runs] = $this->repository();
        $uid = $runs->enqueueRun('77777777-7777-4777-8777-777777777777', 1, 'x', 5, '{"a":1}');
        self::assertSame($uid, $runs->findByUuid('77777777-7777-4777-8777-777777777777')?->uid);
        self::assertSame(['queued' => 1], $runs->countByStatus());
        self::assertSame([], $runs->findStaleRunning(time()));
        self::assertSame(-1, $runs->maxEventSequence($uid));
    }

    public function testAfterAMessageNoLeaseIsKept(): void
    {
        [$runs, $keeper, $log] = $this->repository();
        $uid = $this->db->run();
        self::assertTrue($runs->claimQueued($uid, self::NAME, time() + 900));
        (new EndLeasesAfterMessage($keeper, $log))(new \stdClass());
        self::assertNull($keeper->lease($uid));
        self::assertCount(1, $log->lines('notice'));
        (new EndLeasesAfterMessage($keeper, $log))(new \stdClass());
        self::assertCount(1, $log->lines('notice'));
    }

    public function testALongHostNameIsShortenedAndTheOwnerStaysUnique(): void
    {
        [$runs] = $this->repository();
        $uid = $this->db->run();
        $name = substr('worker:' . str_repeat('very-long-host-name.', 4) . ':4711', 0, 64);
        self::assertTrue($runs->claimQueued($uid, $name, time() + 900));
        self::assertLessThanOrEqual(64, strlen($this->db->row($uid)['claimed_by']));
        self::assertTrue($runs->markPendingEffect($uid, $name, 'read_only', time() + 900));
        self::assertTrue($runs->requeue($uid, $name));
    }

    public function testAForkedChildLeavesTheParentsLeaseAlone(): void
    {
        [$runs, $keeper] = $this->repository();
        $mine = $this->db->run();
        $childs = $this->db->run();
        self::assertTrue($runs->claimQueued($mine, self::NAME, time() + 900));
        $pid = pcntl_fork();
        if ($pid === 0) {
            $code = 1;
            try {
                // The same name given: of another process, so another owner.
                $won = $runs->claimQueued($childs, self::NAME, time() + 900);
                $parents = $keeper->lease($mine);
                $code = $won && $parents === null ? 0 : 2;
            } finally {
                // Without PHPUnit's and PDO's own ends: this is a copy of the test process.
                posix_kill(getmypid(), $code === 0 ? SIGUSR1 : SIGKILL);
            }
        }
        pcntl_waitpid($pid, $status);
        self::assertTrue(pcntl_wifsignaled($status) && pcntl_wtermsig($status) === SIGUSR1, 'the child');
        self::assertNotSame($this->db->row($mine)['claimed_by'], $this->db->row($childs)['claimed_by']);
        self::assertStringStartsWith(self::NAME . ':', $this->db->row($childs)['claimed_by']);
        self::assertSame('held', $keeper->lease($mine)?->state());
        self::assertTrue($runs->renewLease($mine, self::NAME, time() + 900));
    }

    public function testAChildWithThePidOfItsParentHasNamesOfItsOwnToo(): void
    {
        [$runs, $keeper] = $this->repository();
        [$parents, $childs] = [$this->db->run(), $this->db->run()];
        // The first process of a namespace has pid 1, and so has that of the next. Where the system
        // makes none, the pids differ.
        $namespace = static fn(): bool => @pcntl_unshare(CLONE_NEWPID) || @pcntl_unshare(CLONE_NEWUSER | CLONE_NEWPID);
        $fork = static function (callable $work): int {
            $pid = pcntl_fork();
            if ($pid === 0) {
                $code = 1;
                try {
                    $code = $work();
                } finally {
                    // Without PHPUnit's and PDO's own ends: this is a copy of the test process.
                    pcntl_exec('/bin/sh', ['-c', "exit $code"]);
                }
            }
            pcntl_waitpid($pid, $status);

            return pcntl_wifexited($status) ? pcntl_wexitstatus($status) : 128;
        };
        $code = $fork(static function () use ($fork, $namespace, $runs, $keeper, $parents, $childs): int {
            $same = $namespace();

            return $fork(static function () use ($fork, $namespace, $runs, $keeper, $parents, $childs, $same): int {
                $won = $runs->claimQueued($parents, self::NAME, time() + 900);
                $pid = getmypid();
                $same = $same && $namespace();
                $child = $fork(static function () use ($runs, $keeper, $parents, $childs, $pid, $same): int {
                    return $same !== ($pid === getmypid()) ? 2
                        : ($runs->claimQueued($childs, self::NAME, time() + 900) && $keeper->lease($parents) === null ? 0 : 3);
                });

                return !$won ? 4 : ($child ?: ($keeper->lease($parents)?->state() === 'held' ? 0 : 5));
            });
        });
        self::assertSame(0, $code);
        self::assertNotSame($this->db->row($parents)['claimed_by'], $this->db->row($childs)['claimed_by']);
        self::assertStringStartsWith(self::NAME . ':', $this->db->row($childs)['claimed_by']);
    }

    public function testAnotherOwnerInTheSameProcessIsRefusedAndEndsNoHeartbeat(): void
    {
        [$runs, $keeper] = $this->repository();
        $uid = $this->db->run();
        self::assertTrue($runs->claimQueued($uid, self::NAME, time() + 900));
        $second = $this->db->run();
        self::assertTrue($runs->claimQueued($second, 'worker:other:1', time() + 900), 'a name of this process, of another run');
        $before = $this->db->row($uid);
        foreach (['worker:other:1', 'worker:stranger:1', ''] as $other) {
            try {
                self::assertFalse($runs->renewLease($uid, $other, time() + 900), $other);
                self::assertFalse($runs->markPendingEffect($uid, $other, 'non_idempotent_write', time() + 900), $other);
                self::assertFalse($runs->requeue($uid, $other), $other);
                self::assertFalse($runs->finishRun($uid, 'completed', 1, false, 1, 1, 2, 0.0, '', '', $other), $other);
            } catch (\ValueError) {
                self::assertSame('', $other, 'no owner is an argument error');
            }
            self::assertSame('held', $keeper->lease($uid)?->state(), $other);
        }
        self::assertSame([$before['claimed_by'], '', 'running'], [$this->db->row($uid)['claimed_by'],
            $this->db->row($uid)['pending_effect'], $this->db->row($uid)['status']]);
        self::assertTrue($runs->renewLease($uid, self::NAME, time() + 900));
    }

    public function testALeaseInThePastIsWrittenAsTheCallerWantsIt(): void
    {
        [$runs, $keeper] = $this->repository();
        $uid = $this->db->run();
        $past = time() - 100;
        self::assertTrue($runs->claimQueued($uid, self::NAME, $past));
        self::assertSame($past, $this->db->row($uid)['lease_expires']);
        self::assertNull($keeper->lease($uid));
        self::assertTrue($runs->requeueStale($uid, time()));
    }

    public function testAnOwnerIsRecognisedByItsParameterAndNotByItsValue(): void
    {
        [$runs] = $this->repository();
        $uid = $this->db->run();
        self::assertTrue($runs->claimQueued($uid, 'completed', time() + 900));
        // The status of finishRun() has the same bytes as the owner's name.
        self::assertTrue($runs->finishRun($uid, 'completed', 1, false, 1, 1, 2, 0.0, 'completed', 'completed', 'completed'));
        self::assertSame(['completed', 'completed', 'completed'], [$this->db->row($uid)['status'], $this->db->row($uid)['error_class'],
            $this->db->row($uid)['termination_reason']]);
        self::assertTrue($runs->claimQueued($this->db->run(), 'enqueued', time() + 900));
        $other = $runs->enqueueRun('77777777-7777-4777-8777-777777777777', 1, 'enqueued', 5, 'enqueued');
        self::assertSame('enqueued', $this->db->row($other)['queued_request']);
    }

    public function testARuntimeThatMayNotConnectLeavesTheRunToNrLlm(): void
    {
        $this->limitTo(1);
        [$runs, $keeper, $log] = $this->repository();
        $this->site()->get(ConnectionPool::class)->getConnectionByName('Default')->executeQuery('SELECT 1');
        $uid = $this->db->run();
        self::assertTrue($runs->claimQueued($uid, self::NAME, time() + 900), implode("\n", $log->lines()));
        self::assertStringStartsWith(self::NAME . ':', $this->db->row($uid)['claimed_by']);
        self::assertEqualsWithDelta(time() + 900, $this->db->row($uid)['lease_expires'], 2);
        self::assertNull($keeper->lease($uid));
        self::assertTrue($runs->renewLease($uid, self::NAME, time() + 950));
        self::assertTrue($runs->markPendingEffect($uid, self::NAME, 'idempotent_write', time() + 960));
        self::assertSame('idempotent_write', $this->db->row($uid)['pending_effect']);
        self::assertFalse($runs->renewLease($uid, 'worker:other:1', time() + 950), 'nr_llm asks for the owner too');
        self::assertTrue($runs->requeue($uid, self::NAME));
        self::assertSame(['queued', 1], [$this->db->row($uid)['status'], $this->db->row($uid)['requeue_count']]);
        self::assertTrue($runs->claimQueued($uid, self::NAME, time() + 900));
        self::assertTrue($runs->finishRun($uid, 'completed', 1, false, 1, 1, 2, 0.0, '', '', self::NAME));
        self::assertTrue($runs->requeueStale($this->db->stale(), time()));
        self::assertTrue($runs->deadLetterStale($this->db->stale(), time(), 'not_retryable'));
        self::assertSame([], $this->unhandled->take());
        self::assertNotSame([], $log->lines('warning'), 'and it is reported');
    }

    public function testAHeartbeatThatGetsNoConnectionLeavesNrLlmsOwnLease(): void
    {
        $this->db->configure(['leaseSeconds' => '2']);
        $this->limitTo(2);
        [$runs, $keeper, $log] = $this->repository();
        $this->site()->get(ConnectionPool::class)->getConnectionByName('Default')->executeQuery('SELECT 1');
        $uid = $this->db->run();
        self::assertTrue($runs->claimQueued($uid, self::NAME, time() + 900));
        self::assertEqualsWithDelta(time() + 900, $this->db->row($uid)['lease_expires'], 2, implode("\n", $log->lines()));
        self::assertNull($keeper->lease($uid));
        self::assertCount(1, $log->lines('error'));
        self::assertTrue($runs->renewLease($uid, self::NAME, time() + 900));
        self::assertTrue($runs->finishRun($uid, 'completed', 1, false, 1, 1, 2, 0.0, '', '', self::NAME));
    }

    public function testARunSurvivesAHeartbeatWithoutAConnection(): void
    {
        $this->db->configure(['leaseSeconds' => '2']);
        $this->limitTo(0);
        [$runs, $keeper] = $this->repository();
        $uid = $this->db->run();
        self::assertTrue($runs->claimQueued($uid, self::NAME, time() + 900));
        $lease = $keeper->lease($uid);
        self::assertSame('held', $lease?->state());
        $this->db->refuse();
        self::eventually(static fn(): bool => $lease->state() === 'lost', 8, 'no heartbeat gets through');
        $this->db->accept();
        self::assertTrue($runs->renewLease($uid, self::NAME, time() + 900), 'no other owner took it');
        self::assertEqualsWithDelta(time() + 900, $this->db->row($uid)['lease_expires'], 2);
        self::assertTrue($runs->finishRun($uid, 'completed', 1, false, 1, 1, 2, 0.0, '', '', self::NAME));
    }

    public function testAHeartbeatThatEndedByItsLimitIsFinal(): void
    {
        $this->db->configure(['leaseSeconds' => '2', 'maxSeconds' => '1']);
        [$runs, $keeper, $log] = $this->repository();
        $uid = $this->db->run();
        self::assertTrue($runs->claimQueued($uid, self::NAME, time() + 900));
        $lease = $keeper->lease($uid);
        self::eventually(static fn(): bool => $lease->state() === 'lost', 8, 'the total limit');
        self::assertFalse($runs->renewLease($uid, self::NAME, time() + 900));
        self::assertLessThan(time() + 10, $this->db->row($uid)['lease_expires'], 'the reaper takes over');
        self::assertCount(1, $this->listeners->of(AgentRunLeaseLostEvent::class));
        self::assertSame([$uid, $this->db->row($uid)['claimed_by']], [$this->listeners->dispatched[0]->runUid,
            $this->listeners->dispatched[0]->owner]);
    }

    public function testARunThatCannotBeClaimedIsRecorded(): void
    {
        $this->db->configure(['fallback' => 'none']);
        $this->limitTo(1);
        [$runs] = $this->repository();
        $this->site()->get(ConnectionPool::class)->getConnectionByName('Default')->executeQuery('SELECT 1');
        $uid = $this->db->run();
        try {
            $runs->claimQueued($uid, self::NAME, time() + 900);
            self::fail('fallback=none');
        } catch (\NrLlmConnectionException $error) {
            self::assertSame([$uid => $error->getMessage()], $this->unhandled->take());
        }
        self::assertSame('queued', $this->db->row($uid)['status']);
    }

    private function limitTo(int $connections): void
    {
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'] = $this->db->limited($connections);
    }

    public function testSettingsThatTheRuntimeRefusesLeaveNrLlmInCharge(): void
    {
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default']['driverOptions'] = [1009 => '/nowhere/ca.pem'];
        [$runs, , $log] = $this->repository();
        self::assertSame('Netresearch\NrLlm\Service\Tool\AgentRunRepository', $runs::class);
        self::assertCount(1, $log->lines('warning'));
        self::assertStringContainsString('refuses the settings', $log->lines('warning')[0]);
    }

    public function testWithTheFallbackForbiddenNoRunIsClaimedWithoutTheRuntime(): void
    {
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default']['driverOptions'] = [1009 => '/nowhere/ca.pem'];
        $GLOBALS['TYPO3_CONF_VARS']['EXTENSIONS']['nrllm_runtime'] = ['fallback' => 'none'];
        [$runs] = $this->repository();
        $this->expectException(\NrLlmRuntime\Typo3\Runtime\RuntimeUnavailableException::class);
        $runs->claimQueued(1, self::NAME, time() + 900);
    }
}
