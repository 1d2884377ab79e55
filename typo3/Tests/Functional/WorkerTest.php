<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Functional;

use Netresearch\NrLlm\Service\Agent\AgentRuntime;
use NrLlmRuntime\Typo3\Tests\Support\Console;
use NrLlmRuntime\Typo3\Tests\Support\Process;
use NrLlmRuntime\Typo3\Tests\Support\SiteTestCase;

/**
 * Whole worker processes: nrllm:agent:work, and what a kill leaves behind.
 */
final class WorkerTest extends SiteTestCase
{
    private string $prepare;

    protected function setUp(): void
    {
        parent::setUp();
        $this->prepare = (string)tempnam(sys_get_temp_dir(), 'nrllm');
    }

    protected function tearDown(): void
    {
        unlink($this->prepare);
        parent::tearDown();
    }

    public function testItRunsDueRunsOneAfterTheOtherAndEndsAtTheLimit(): void
    {
        $runs = [$this->db->run(), $this->db->run(), $this->db->run()];
        $notYet = $this->db->run(['requeue_count' => 2, 'tstamp' => time()]);
        [$code, $output, $errors] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:work', '--limit=3', '-v']);
        self::assertSame(0, $code, $output . $errors);
        self::assertStringContainsString("\n [OK] Ran 3 agent run(s).\n", $output);
        foreach ($runs as $uid) {
            self::assertSame('completed', $this->db->row($uid)['status']);
        }
        self::assertSame('queued', $this->db->row($notYet)['status'], 'its backoff is not over');
    }

    public function testItEndsAfterItsTimeAndWaitsForWork(): void
    {
        $began = microtime(true);
        [$code, $output, $errors] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:work', '--time-limit=1',
            '--sleep=0']);
        self::assertSame(0, $code, $output . $errors);
        self::assertStringContainsString('Ran 0 agent run(s).', $output);
        self::assertGreaterThanOrEqual(1.0, microtime(true) - $began);
    }

    public function testItEndsWhenMemoryIsShort(): void
    {
        $this->db->run();
        $second = $this->db->run();
        [$code, $output] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:work', '--memory-limit=1M']);
        self::assertSame(0, $code, $output);
        self::assertStringContainsString('Ran 1 agent run(s).', $output);
        self::assertSame('queued', $this->db->row($second)['status']);
    }

    public function testARunThatCannotRunDoesNotHoldTheOthersUp(): void
    {
        for ($i = 0; $i < 15; $i++) {
            $this->db->run(['queued_request' => 'nrv1:garbage', 'crdate' => time() - 7200 + $i]);
        }
        $good = $this->db->run();
        [$code, $output] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:work', '--limit=1', '--time-limit=20']);
        self::assertSame(0, $code, $output);
        self::assertSame('completed', $this->db->row($good)['status']);
        self::assertStringContainsString('Ran 1 agent run(s).', $output);
    }

    public function testARunThatIsRequeuedMeanwhileWaitsForItsBackoff(): void
    {
        // What another worker does while this one executes its first run, in a step of that: it
        // claims the next run, fails, and requeues it.
        $first = $this->db->run(['crdate' => 1]);
        $requeued = $this->db->run(['crdate' => 2]);
        $last = $this->db->run(['crdate' => 3]);
        $others = new \NrLlmRuntime($this->db->connection());
        AgentRuntime::$steps = 1;
        AgentRuntime::$step = static function (int $uid) use ($first, $requeued, $others): void {
            if ($uid === $first && $others->claimQueued($requeued, 'worker:other:1', time() + 60)) {
                $others->requeue($requeued, 'worker:other:1');
            }
        };
        [$code, $output] = Console::call($this->command('nrllm:agent:work'), ['--limit' => '2', '--time-limit' => '20']);
        self::assertSame(0, $code, $output);
        self::assertSame([$this->db->row($first)['uuid'], $this->db->row($last)['uuid']], AgentRuntime::$ran);
        self::assertSame(['queued', 1], [$this->db->row($requeued)['status'], $this->db->row($requeued)['requeue_count']]);
        self::assertStringContainsString('Ran 2 agent run(s).', $output);
    }

    public function testItStopsOnSigtermAndSigintAfterTheRunUnderWay(): void
    {
        foreach ([SIGTERM, SIGINT] as $signal) {
            $first = $this->db->run(['crdate' => 1]);
            $second = $this->db->run(['crdate' => 2]);
            $this->prepare('usleep(300000);');
            [$process, $pipes] = $this->start(['nrllm:agent:work']);
            self::eventually(fn(): bool => $this->db->row($first)['status'] === 'running', 30, 'the first run begins');
            proc_terminate($process, $signal);
            $output = (string)stream_get_contents($pipes[1]);
            self::assertSame(0, proc_close($process), $output);
            self::assertStringContainsString('Ran 1 agent run(s).', $output);
            self::assertSame('completed', $this->db->row($first)['status']);
            self::assertSame('queued', $this->db->row($second)['status']);
            $this->db->pdo->exec('DELETE FROM tx_nrllm_agentrun');
        }
    }

    public function testManyWorkersShareTheRuns(): void
    {
        for ($i = 0; $i < 12; $i++) {
            $this->db->run();
        }
        $this->prepare('usleep(10000);');
        $workers = [];
        for ($i = 0; $i < 3; $i++) {
            $workers[] = $this->start(['nrllm:agent:work', '--time-limit=4', '--sleep=0', '-v']);
        }
        $ran = [];
        foreach ($workers as [$process, $pipes]) {
            $output = (string)stream_get_contents($pipes[1]);
            self::assertSame(0, proc_close($process), $output);
            preg_match_all('/^ran +(\S+)/m', $output, $found);
            $ran = array_merge($ran, $found[1]);
        }
        self::assertCount(12, $ran);
        self::assertCount(12, array_unique($ran), 'no run twice');
        self::assertSame(12, $this->db->one("SELECT COUNT(*) FROM tx_nrllm_agentrun WHERE status = 'completed'"));
    }

    public function testAWorkerSurvivesACallLongerThanItsLease(): void
    {
        $this->db->configure(['leaseSeconds' => '3']);
        $uid = $this->db->run();
        $this->prepare('$until = microtime(true) + 8; while (microtime(true) < $until) { usleep(8000000); }', 1);
        [$process, $pipes] = $this->start(['nrllm:agent:work', '--limit=1']);
        self::eventually(fn(): bool => $this->db->row($uid)['status'] === 'running', 30, 'the run begins');
        while (proc_get_status($process)['running']) {
            [$code, $output, $errors] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:reap']);
            self::assertSame(0, $code, $errors);
            self::assertStringContainsString('Reaped 0 stale run(s)', $output, 'reaped under a living worker');
            usleep(300000);
        }
        self::assertStringContainsString('Ran 1 agent run(s).', (string)stream_get_contents($pipes[1]));
        proc_close($process);
        self::assertSame('completed', $this->db->row($uid)['status']);
        self::assertSame(0, $this->db->row($uid)['requeue_count']);
    }

    public function testTheRunOfAKilledWorkerIsReapedWithinSeconds(): void
    {
        $this->db->configure(['leaseSeconds' => '3']);
        $uid = $this->db->run();
        $this->prepare('usleep(60000000);');
        [$process] = $this->start(['nrllm:agent:work']);
        self::eventually(fn(): bool => $this->db->row($uid)['status'] === 'running', 30, 'the run begins');
        proc_terminate($process, SIGKILL);
        $killed = microtime(true);
        self::eventually(function () use ($uid): bool {
            $this->command('nrllm:agent:reap')->run(
                new \Symfony\Component\Console\Input\ArrayInput([]),
                new \Symfony\Component\Console\Output\NullOutput(),
            );

            return $this->db->row($uid)['status'] === 'queued';
        }, 6, 'the dead worker\'s run is requeued');
        self::assertLessThan(6.0, microtime(true) - $killed);
        self::assertSame(1, $this->db->one('SELECT COUNT(*) FROM sys_messenger_messages'));
        proc_close($process);
    }

    public function testBadOptionsAndAMissingRuntime(): void
    {
        foreach ([
            ['--limit=0', 'The --limit option must be a positive integer.'],
            ['--time-limit=x', 'The --time-limit option must be a positive integer.'],
            ['--memory-limit=lots', 'The --memory-limit option must be a size, as 256M.'],
            ['--sleep=-1', 'The --sleep option must be a number of seconds, 0 or more.'],
            ['--drain=soon', 'The --drain option must be a number of seconds, 0 or more.'],
        ] as [$option, $message]) {
            [$code, $output, $errors] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:work', $option]);
            self::assertSame([2, "\n [ERROR] $message\n\n", ''], [$code, $output, $errors], $option);
        }
        [$code, $output, $errors] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:work'], [], false);
        self::assertSame([1, ''], [$code, $output]);
        self::assertStringContainsString('[ERROR] nrllm:agent:work needs the native runtime. The PHP extension nrllm_runtime is not loaded.', $errors);
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default']['password'] = 'wrong';
        [$code, $output, $errors] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:work', '--time-limit=20']);
        self::assertSame([1, ''], [$code, $output]);
        self::assertStringContainsString('[ERROR] The worker ends: ', $errors);
    }

    public function testAWorkerWaitsForADatabaseThatIsDownAndReportsItOnce(): void
    {
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default']['port'] = 1;
        [$code, $output, $errors] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:work', '--time-limit=2']);
        self::assertSame(1, $code, $output);
        self::assertSame(1, substr_count($errors, '[ERROR] The database cannot be reached; nrllm:agent:work waits for it.'), $errors);

        // Down while it works: the connections are killed, and the account may not log in for two
        // seconds.
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'] = $this->db->limited(0);
        $first = $this->db->run(['crdate' => 1]);
        [$process, $pipes] = $this->start(['nrllm:agent:work', '--limit=2', '--time-limit=30', '--sleep=0']);
        self::eventually(fn(): bool => $this->db->row($first)['status'] === 'completed', 20, 'the first run');
        $this->db->refuse();
        $second = $this->db->run(['crdate' => 2]);
        usleep(2000000);
        self::assertTrue(proc_get_status($process)['running'], 'the worker waits');
        self::assertSame('queued', $this->db->row($second)['status']);
        $this->db->accept();
        $output = (string)stream_get_contents($pipes[1]);
        $errors = (string)stream_get_contents($pipes[2]);
        self::assertSame(0, proc_close($process), $output . $errors);
        self::assertSame('completed', $this->db->row($second)['status'], $output . $errors);
        self::assertSame(1, substr_count($errors, '[ERROR] The database cannot be reached'), $errors);
        self::assertSame(1, substr_count($errors, '[NOTE] The database answers again after '), $errors);
    }

    public function testARunIsNotDelayedByAnIdleConnectionThatTheServerClosed(): void
    {
        // The worker's first run leaves TYPO3's connection open; the server closes it before the
        // second.
        $first = $this->db->run(['crdate' => 1]);
        AgentRuntime::$steps = 1;
        $second = 0;
        AgentRuntime::$step = function (int $uid) use ($first, &$second): void {
            $second = $uid === $first ? $this->db->run(['crdate' => 2]) : $second;
        };
        AgentRuntime::$after = function (): void {
            $this->db->killOthers();
        };
        $began = microtime(true);
        [$code, $output, $errors] = Console::call($this->command('nrllm:agent:work'), ['--limit' => '2', '--time-limit' => '30']);
        self::assertSame(0, $code, $output . $errors);
        self::assertSame('completed', $this->db->row($second)['status']);
        self::assertLessThan(20.0, microtime(true) - $began);
    }

    public function testADrainedWorkerHandsItsRunBackWithoutUsingUpARetry(): void
    {
        $uid = $this->db->run(['crdate' => 1, 'requeue_count' => 1]);
        // Inside one call that no signal handler can interrupt, as curl_exec() is.
        $this->prepare('$until = microtime(true) + 60; while (microtime(true) < $until) { @shell_exec("sleep 1"); }', 1);
        [$process, $pipes] = $this->start(['nrllm:agent:work', '--drain=1']);
        self::eventually(fn(): bool => $this->db->row($uid)['status'] === 'running', 30, 'the run begins');
        proc_terminate($process, SIGTERM);
        $stopped = microtime(true);
        $output = (string)stream_get_contents($pipes[1]);
        $errors = (string)stream_get_contents($pipes[2]);
        self::assertSame(0, proc_close($process), $output . $errors);
        self::assertLessThan(10.0, microtime(true) - $stopped);
        self::assertStringContainsString(sprintf('Run %d was handed back to the queue.', $uid), $output);
        self::assertSame(['queued', 1, '', 0], [$this->db->row($uid)['status'], $this->db->row($uid)['requeue_count'],
            $this->db->row($uid)['claimed_by'], $this->db->row($uid)['lease_expires']]);
        self::assertSame(1, $this->db->one('SELECT COUNT(*) FROM sys_messenger_messages WHERE available_at <= UTC_TIMESTAMP()'));
    }

    public function testADrainedWorkerLeavesAFencedRunToTheReaper(): void
    {
        $uid = $this->db->run();
        $this->prepare('usleep(60000000);', 1);
        [$process, $pipes] = $this->start(['nrllm:agent:work', '--drain=0']);
        self::eventually(fn(): bool => $this->db->row($uid)['status'] === 'running', 30, 'the run begins');
        $this->db->pdo->exec("UPDATE tx_nrllm_agentrun SET pending_effect = 'non_idempotent_write' WHERE uid = $uid");
        proc_terminate($process, SIGTERM);
        $output = (string)stream_get_contents($pipes[1]);
        self::assertSame(0, proc_close($process), $output);
        self::assertStringContainsString(sprintf('Run %d was not handed back', $uid), $output);
        self::assertSame(['running', 'non_idempotent_write'], [$this->db->row($uid)['status'], $this->db->row($uid)['pending_effect']]);
    }

    public function testAWorkerThatDrainsFinishesARunThatEndsInTime(): void
    {
        $first = $this->db->run(['crdate' => 1]);
        $second = $this->db->run(['crdate' => 2]);
        $this->prepare('usleep(300000);');
        [$process, $pipes] = $this->start(['nrllm:agent:work', '--drain=20']);
        self::eventually(fn(): bool => $this->db->row($first)['status'] === 'running', 30, 'the first run begins');
        proc_terminate($process, SIGTERM);
        $output = (string)stream_get_contents($pipes[1]);
        self::assertSame(0, proc_close($process), $output);
        self::assertStringContainsString('Ran 1 agent run(s).', $output);
        self::assertSame(['completed', 'queued'], [$this->db->row($first)['status'], $this->db->row($second)['status']]);
        // Its limits work too, and the exit code is the child's.
        [$code, $output, $errors] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:work', '--drain=5', '--limit=1']);
        self::assertSame(0, $code, $output . $errors);
        self::assertSame('completed', $this->db->row($second)['status']);
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default']['password'] = 'wrong';
        [$code] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:work', '--drain=5', '--limit=1']);
        self::assertSame(1, $code);
    }

    public function testAQueuedRunThatCannotBeDecryptedIsNamedWithTheRemedy(): void
    {
        $this->db->run(['queued_request' => 'nrv1:garbage']);
        [$code, $output] = Console::call($this->command('nrllm:agent:work'), ['--time-limit' => '1']);
        self::assertSame(0, $code, $output);
        self::assertSame(1, substr_count($output, 'is still queued: its queued_request cannot be decrypted: it is malformed '
            . '(nrllm:agent:reap --fail-unreadable ends such runs)'), $output);
    }

    public function testAWrongSettingEndsTheWorkerWithTheRemedy(): void
    {
        $this->db->configure(['clock' => 'databse']);
        $uid = $this->db->run();
        [$code, $output, $errors] = Console::call($this->command('nrllm:agent:work'), ['--time-limit' => '5']);
        self::assertSame([1, ''], [$code, $output]);
        self::assertStringContainsString('clock must be caller or database, not "databse"', $errors);
        self::assertStringContainsString('Correct it in Admin Tools', $errors);
        self::assertSame('queued', $this->db->row($uid)['status']);
    }

    /**
     * PHP code that stands for a provider call, run at every step.
     */
    private function prepare(string $step, int $steps = 2): void
    {
        file_put_contents($this->prepare, '<?php \Netresearch\NrLlm\Service\Agent\AgentRuntime::$steps = ' . $steps
            . '; \Netresearch\NrLlm\Service\Agent\AgentRuntime::$step = static function (): void { ' . $step . ' };');
    }

    /**
     * @param list<string> $arguments
     * @return array{resource, array<int, resource>}
     */
    private function start(array $arguments): array
    {
        return Process::start([dirname(__DIR__) . '/Support/console.php', ...$arguments], ['NRLLM_TYPO3_PREPARE' => $this->prepare]);
    }
}
