<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Functional;

use Netresearch\NrLlm\Provider\Exception\CircuitOpenException;
use Netresearch\NrLlm\Service\Agent\AgentRuntime;
use Netresearch\NrLlm\Service\Agent\QueuedRunFailureRecovery;
use Netresearch\NrLlm\Service\Tool\AgentStateCodec;
use NrLlmRuntime\Typo3\Event\AgentRunDeadLetteredEvent;
use NrLlmRuntime\Typo3\Event\AgentRunRequeuedEvent;
use NrLlmRuntime\Typo3\Tests\Support\Console;
use NrLlmRuntime\Typo3\Tests\Support\FailingListener;
use NrLlmRuntime\Typo3\Tests\Support\HandProxy;
use NrLlmRuntime\Typo3\Tests\Support\Listeners;
use NrLlmRuntime\Typo3\Tests\Support\Process;
use NrLlmRuntime\Typo3\Tests\Support\Schema;
use NrLlmRuntime\Typo3\Tests\Support\SiteTestCase;
use Symfony\Component\Console\Input\ArrayInput;
use Symfony\Component\Console\Output\NullOutput;
use Symfony\Component\Console\Output\OutputInterface;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\Messenger\Bridge\Doctrine\Transport\DoctrineTransport;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\Messenger\Worker;
use TYPO3\CMS\Core\Database\ConnectionPool;

/**
 * nrllm:agent:reap on a real server, with the runtime and with Symfony's real messenger.
 */
final class ReapCommandTest extends SiteTestCase
{
    private const MESSAGE = 'Netresearch\NrLlm\Service\Agent\Queue\AgentRunQueuedMessage';
    private const NOTHING = "\n [OK] Reaped 0 stale run(s): 0 requeued, 0 dead-lettered, 0 skipped (renewed or already moved on).\n\n";

    public function testNothingStale(): void
    {
        $live = $this->db->run(['status' => 'running', 'claimed_by' => 'worker:live:1', 'lease_expires' => time() + 100]);
        $before = $this->db->row($live);
        self::assertSame([0, self::NOTHING, ''], $this->reap());
        self::assertSame($before, $this->db->row($live));
    }

    public function testTheSummaryIsOneLineAtAnyWidth(): void
    {
        putenv('COLUMNS=20');
        $this->db->stale();
        [$code, $output] = Console::call($this->command('nrllm:agent:reap'));
        self::assertSame(0, $code);
        self::assertSame(
            "\n [OK] Reaped 1 stale run(s): 1 requeued, 0 dead-lettered, 0 skipped (renewed or already moved on).\n\n",
            $output,
        );
    }

    public function testStaleRunsAreDecidedAsNrLlmDecidesThem(): void
    {
        $requeue = $this->db->stale(['requeue_count' => 2]);
        $spent = $this->db->stale(['requeue_count' => 3]);
        $forbidden = $this->db->stale(['pending_effect' => 'non_idempotent_write']);
        $empty = $this->db->stale(['queued_request' => '']);
        $interactive = $this->db->run(['status' => 'running', 'lease_expires' => 0]);

        [$code, $output, $errors] = $this->reap();

        self::assertSame([0, ''], [$code, $errors]);
        self::assertStringContainsString('Reaped 4 stale run(s): 1 requeued, 3 dead-lettered, 0 skipped', $output);
        self::assertSame(['queued', 3, ''], $this->columns($requeue, 'status', 'requeue_count', 'claimed_by'));
        self::assertSame(['failed', 'retries_exhausted'], $this->columns($spent, 'status', 'termination_reason'));
        self::assertSame(['failed', 'not_retryable'], $this->columns($forbidden, 'status', 'termination_reason'));
        self::assertSame(['failed', 'not_retryable'], $this->columns($empty, 'status', 'termination_reason'));
        self::assertSame('running', $this->db->row($interactive)['status']);
        self::assertCount(1, $this->log()->lines('info'));
        self::assertCount(3, $this->log()->lines('warning'));
    }

    public function testAWakeUpIsWrittenInTheOutboxAndTheRealTransportReceivesIt(): void
    {
        $runs = [$this->db->stale(), $this->db->stale(), $this->db->stale()];
        [$code, $output] = $this->reap(['-v' => true], OutputInterface::VERBOSITY_VERBOSE);
        self::assertSame(0, $code, $output);
        self::assertStringContainsString('Wake-ups: outbox.', $output);
        $received = $this->receive();
        $wanted = array_map(fn(int $uid): string => $this->db->row($uid)['uuid'], $runs);
        sort($received);
        self::assertSame($wanted, $received);
    }

    public function testRunsThatWereReapedAreExecutedByTheMessengersWorker(): void
    {
        $this->site(HandProxy::addWhereNeeded(...));
        $runs = [$this->db->stale(), $this->db->stale()];
        self::assertSame(0, $this->reap()[0]);
        $worker = new Worker(['doctrine' => $this->site()->get(DoctrineTransport::class)], $this->site()->get(MessageBusInterface::class));
        $owners = [];
        AgentRuntime::$step = function (int $uid) use (&$owners, $worker): void {
            $owners[$uid] = $this->db->row($uid)['claimed_by'];
            if (count($owners) === 2) {
                $worker->stop();
            }
        };
        $worker->run(['sleep' => 0]);
        foreach ($runs as $uid) {
            self::assertSame('completed', $this->db->row($uid)['status']);
            self::assertMatchesRegularExpression('/^worker:.+:' . getmypid() . ':[^:]+$/', $owners[$uid], 'claimed through the override');
        }
    }

    public function testRunsAreWokenThroughTheBusOneAtATimeWhereThereIsNoOutbox(): void
    {
        // The run table in another database than the messages.
        $other = new \NrLlmRuntime\Typo3\Tests\Support\Database();
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections'] = ['Default' => $other->connection(), 'Runs' => $this->db->connection()];
        $GLOBALS['TYPO3_CONF_VARS']['DB']['TableMapping'] = ['tx_nrllm_agentrun' => 'Runs'];
        try {
            $this->db->stale();
            $this->db->stale();
            [$code, $output] = $this->reap([], OutputInterface::VERBOSITY_VERBOSE);
            self::assertSame(0, $code, $output);
            self::assertStringContainsString('Wake-ups: bus.', $output);
            self::assertStringContainsString('2 requeued', $output);
            self::assertSame(2, $other->one('SELECT COUNT(*) FROM sys_messenger_messages'));
            self::assertSame(0, $this->db->one('SELECT COUNT(*) FROM sys_messenger_messages'));
            self::assertCount(2, $this->receive());
        } finally {
            $this->site = null;
            $other->drop();
        }
    }

    public function testTheWildcardDoesNotExecuteARunThatIsSentToATransport(): void
    {
        $this->db->configure([], [self::MESSAGE => 'doctrine', '*' => 'default']);
        $uid = $this->db->stale();
        [$code, $output] = $this->reap();
        self::assertSame(0, $code, $output);
        self::assertSame('queued', $this->db->row($uid)['status']);
        self::assertSame([], AgentRuntime::$ran);
    }

    public function testWithTheSynchronousTransportRunsExecuteInTheCommand(): void
    {
        $this->db->configure(['keeper' => '0'], ['*' => 'default']);
        $uid = $this->db->stale();
        [$code, $output, $errors] = $this->reap();
        self::assertSame(0, $code, $output . $errors);
        self::assertStringContainsString(
            '[NOTE] The transport "default" is synchronous: requeued runs execute inside the command',
            $errors,
        );
        self::assertSame('completed', $this->db->row($uid)['status']);
        self::assertSame([$this->db->row($uid)['uuid']], AgentRuntime::$ran);
        self::assertStringContainsString('Reaped 1 stale run(s): 1 requeued', $output);
    }

    public function testAnUnknownTransportDestroysNoRunAndTheExitCodeSaysSo(): void
    {
        foreach ([
            'in the routing' => [[], [self::MESSAGE => 'nowhere']],
            'in the extension setting' => [['transport' => 'nowhere'], null],
        ] as $case => [$extension, $routing]) {
            $this->db->configure($extension, $routing);
            $this->site = null;
            $requeueable = $this->db->stale();
            $spent = $this->db->stale(['requeue_count' => 3]);
            $before = [$this->db->row($requeueable), $this->db->row($spent)];
            foreach ([OutputInterface::VERBOSITY_NORMAL, OutputInterface::VERBOSITY_QUIET] as $verbosity) {
                [$code, $output, $errors] = $this->reap([], $verbosity);
                self::assertSame([1, ''], [$code, $output], $case);
                self::assertStringContainsString('[ERROR] The transport "nowhere" (', $errors, $case);
                self::assertStringContainsString('Registered are "doctrine", "default". Correct it in ', $errors, $case);
            }
            self::assertSame($before, [$this->db->row($requeueable), $this->db->row($spent)], $case);
            self::assertNotSame([], $this->log()->lines('error'), $case);
            [$code, , $errors] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:reap', '-q'], [], false);
            self::assertSame(1, $code, 'nor does nr_llm\'s own reaper');
            self::assertStringContainsString('The transport "nowhere"', $errors);
        }
    }

    public function testADispatchThatFailsIsAnErrorAndTheTickGoesOn(): void
    {
        $other = $this->runTableOnly();
        try {
            $first = $this->db->stale();
            $second = $this->db->stale();
            [$code, $output] = $this->reap();
            self::assertSame(1, $code, $output);
            $uuid = $this->db->row($first)['uuid'];
            self::assertStringContainsString(
                ' [WARNING] Run "' . $uuid . '" was reclaimed but its wake-up could not be dispatched; settled failed to avoid an orphan: ',
                $output,
            );
            self::assertStringContainsString('Reaped 2 stale run(s): 0 requeued, 2 dead-lettered, 0 skipped', $output);
            foreach ([$first, $second] as $uid) {
                self::assertSame(['failed', 'provider_failed'], $this->columns($uid, 'status', 'termination_reason'));
            }
            self::assertCount(2, $this->log()->lines('error'));

            // With a sweep the run is not destroyed: the next sweep finds it.
            $swept = $this->db->stale();
            [$code, $output, $errors] = $this->reap(['--wake-stranded' => '0'], OutputInterface::VERBOSITY_QUIET);
            self::assertSame([1, ''], [$code, $output]);
            self::assertStringContainsString('[ERROR] 1 wake-up(s) could not be sent: ', $errors);
            self::assertSame(['queued', '{"messages":[]}'], $this->columns($swept, 'status', 'queued_request'));
        } finally {
            $this->site = null;
            $other->drop();
        }
    }

    public function testRunsThatCannotBeDecryptedAreLeftAlone(): void
    {
        $sealed = AgentStateCodec::seal('{"messages":["secret customer"]}', 'nrllm:agent-state:queued-request');
        $lost = AgentStateCodec::seal('{"messages":["secret customer"]}', 'nrllm:agent-state:queued-request', 'another key');
        $good = $this->db->stale(['queued_request' => $sealed]);
        $bad = $this->db->stale(['queued_request' => $lost, 'lease_expires' => time() - 500]);
        $badSpent = $this->db->stale(['queued_request' => 'nrv1:garbage', 'requeue_count' => 3, 'lease_expires' => time() - 600]);
        $badBefore = [$this->db->row($bad), $this->db->row($badSpent)];

        // A limit of one: what cannot be read does not use it up.
        [$code, $output, $errors] = $this->reap(['--limit' => '1']);

        self::assertSame([1, ''], [$code, $errors]);
        self::assertSame('queued', $this->db->row($good)['status']);
        self::assertSame($sealed, $this->db->row($good)['queued_request']);
        self::assertSame($badBefore, [$this->db->row($bad), $this->db->row($badSpent)]);
        self::assertStringContainsString(' [WARNING] Run "' . $badBefore[0]['uuid'] . '" (uid ' . $bad
            . ') was left alone: its queued_request cannot be decrypted: it was sealed with another key, or altered.', $output);
        self::assertStringContainsString('was left alone: its queued_request cannot be decrypted: it is malformed.', $output);
        self::assertStringContainsString('Reaped 1 stale run(s): 1 requeued, 0 dead-lettered, 0 skipped', $output);
        foreach ([$output, implode("\n", $this->log()->lines()), serialize($this->log()->records)] as $text) {
            self::assertStringNotContainsString('secret customer', $text);
            self::assertStringNotContainsString('nrv1:', $text);
        }
    }

    public function testManyUnreadableRunsDoNotHideAReadableOneBehindThem(): void
    {
        for ($i = 0; $i < 120; $i++) {
            $this->db->stale(['queued_request' => 'nrv1:garbage', 'lease_expires' => time() - 5000 + $i]);
        }
        $good = $this->db->stale();
        $later = $this->db->stale(['lease_expires' => time() - 50]);
        [$code, $output] = $this->reap(['--limit' => '1', '--format' => 'json']);
        self::assertSame(1, $code);
        $document = Schema::check('reap', $output);
        self::assertSame([1, 120, true], [$document['counts']['requeued'], $document['counts']['leftAlone'], $document['hasMore']]);
        self::assertSame(['queued', 'running'], [$this->db->row($good)['status'], $this->db->row($later)['status']]);
    }

    public function testALockedRunDoesNotUseTheLimitUp(): void
    {
        // With the outbox runs are reaped in chunks, without it one at a time.
        foreach (['doctrine' => 'outbox', 'default' => 'synchronous'] as $transport => $mode) {
            $this->db->configure(['keeper' => '0'], [self::MESSAGE => $transport]);
            $this->site = null;
            $locked = [$this->db->stale(['lease_expires' => time() - 600]), $this->db->stale(['lease_expires' => time() - 500])];
            $good = $this->db->stale();
            $later = $this->db->stale(['lease_expires' => time() - 50]);
            $lock = $this->db->lock(...$locked);
            [$code, $output] = $this->reap(['--limit' => '1', '--format' => 'json']);
            $lock->rollBack();
            self::assertSame(0, $code, $output);
            $document = Schema::check('reap', $output);
            self::assertSame($mode, $document['wakeUps']['mode']);
            self::assertSame([1, 2, true], [$document['counts']['requeued'], $document['counts']['skipped'], $document['hasMore']], $mode);
            self::assertSame([[$good], $locked], [array_column($document['requeued'], 'uid'), array_column($document['skipped'], 'uid')]);
            self::assertSame(['contended', 'contended'], array_column($document['skipped'], 'reason'));
            self::assertNotSame('running', $this->db->row($good)['status']);
            self::assertSame('running', $this->db->row($later)['status'], 'the limit is kept');
            $this->db->pdo->exec('DELETE FROM tx_nrllm_agentrun');
        }
    }

    public function testRunsThatCannotBeWokenDoNotUseTheLimitUp(): void
    {
        $odd = [];
        for ($i = 0; $i < 60; $i++) {
            $odd[] = $this->db->stale(['uuid' => 'run-' . $i, 'lease_expires' => time() - 5000 + $i]);
        }
        $spent = $this->db->stale(['uuid' => 'run-spent', 'requeue_count' => 3, 'lease_expires' => time() - 900]);
        $good = $this->db->stale();
        $later = $this->db->stale(['lease_expires' => time() - 50]);
        foreach ([true, false] as $dryRun) {
            [$code, $output] = $this->reap(['--limit' => '2', '--format' => 'json'] + ($dryRun ? ['--dry-run' => true] : []));
            self::assertSame(0, $code, $output);
            $document = Schema::check('reap', $output);
            self::assertSame([[$good], [$spent], $odd, true], [array_column($document['requeued'], 'uid'),
                array_column($document['deadLettered'], 'uid'), array_column($document['skipped'], 'uid'), $document['hasMore']]);
            self::assertSame(['unwakeable'], array_values(array_unique(array_column($document['skipped'], 'reason'))));
        }
        // Nothing is left but what cannot be woken, and one that can.
        self::assertStringContainsString('Reaped 61 stale run(s): 1 requeued, 0 dead-lettered, 60 skipped', $this->reap(['--limit' => '1'])[1]);
        self::assertSame(['queued', 'queued'], [$this->db->row($good)['status'], $this->db->row($later)['status']]);
        self::assertSame(60, $this->db->one("SELECT COUNT(*) FROM tx_nrllm_agentrun WHERE status = 'running'"));
    }

    public function testATickEndsHoweverManyRunsItHasToPassOver(): void
    {
        $this->db->stale(['queued_request' => 'nrv1:garbage', 'lease_expires' => 1000]);
        for ($have = 1; $have < 1024; $have *= 2) {
            $this->db->pdo->exec('INSERT INTO tx_nrllm_agentrun (uuid, status, claimed_by, queued_request, lease_expires) SELECT UUID(), status, claimed_by,'
                . ' queued_request, lease_expires FROM tx_nrllm_agentrun');
        }
        $behind = $this->db->stale();
        [$code, $output] = $this->reap(['--limit' => '1', '--format' => 'json']);
        self::assertSame(1, $code);
        $document = Schema::check('reap', $output);
        self::assertSame(0, $document['counts']['requeued']);
        self::assertTrue($document['hasMore']);
        // The bound in time may be met first.
        self::assertGreaterThanOrEqual(50, $document['counts']['leftAlone']);
        self::assertLessThan(1024, $document['counts']['leftAlone']);
        self::assertSame('running', $this->db->row($behind)['status']);
    }

    public function testADryRunChangesNothingAndReportsTheSame(): void
    {
        $this->db->stale();
        $this->db->stale(['requeue_count' => 3]);
        $before = $this->db->all('SELECT * FROM tx_nrllm_agentrun ORDER BY uid');
        [$code, $output] = $this->reap(['--dry-run' => true]);
        self::assertSame(0, $code);
        self::assertSame("\n [OK] Dry run, nothing was changed: Reaped 2 stale run(s): 1 requeued, 1 dead-lettered, 0 skipped (renewed or already moved on).\n\n", $output);
        self::assertSame($before, $this->db->all('SELECT * FROM tx_nrllm_agentrun ORDER BY uid'));
        self::assertSame(0, $this->db->one('SELECT COUNT(*) FROM sys_messenger_messages'));
    }

    public function testALimitBoundsTheRunsHandled(): void
    {
        for ($i = 0; $i < 5; $i++) {
            $this->db->stale(['lease_expires' => time() - 100 + $i]);
        }
        [$code, $output] = $this->reap(['-l' => '2']);
        self::assertSame(0, $code);
        self::assertStringContainsString('Reaped 2 stale run(s): 2 requeued', $output);
        // The oldest leases first.
        self::assertSame([1, 2], array_column(
            $this->db->all("SELECT uid FROM tx_nrllm_agentrun WHERE status = 'queued' ORDER BY uid"),
            'uid',
        ));
    }

    public function testMoreRunsThanTheRuntimeHandlesAtOnce(): void
    {
        for ($i = 0; $i < 450; $i++) {
            $this->db->stale();
        }
        // As large as a limit can be.
        [$code, $output] = $this->reap(['--limit' => (string)PHP_INT_MAX, '--wake-stranded' => (string)PHP_INT_MAX]);
        self::assertSame(0, $code);
        self::assertStringContainsString('Reaped 450 stale run(s): 450 requeued', $output);
        self::assertStringContainsString('Woke 0 stranded run(s).', $output);
        self::assertSame(450, $this->db->one('SELECT COUNT(DISTINCT body) FROM sys_messenger_messages'));
    }

    public function testJsonFollowsItsSchema(): void
    {
        $this->db->stale();
        $this->db->stale(['requeue_count' => 3]);
        $this->db->stale(['queued_request' => 'nrv1:garbage']);
        [$code, $output, $errors] = $this->reap(['--format' => 'json']);
        self::assertSame([1, ''], [$code, $errors]);
        $document = Schema::check('reap', $output);
        self::assertSame(['stale' => 2, 'requeued' => 1, 'deadLettered' => 1, 'skipped' => 0, 'leftAlone' => 1, 'undispatched' => 0,
            'failedUnreadable' => 0, 'woken' => 0], $document['counts']);
        self::assertSame('outbox', $document['wakeUps']['mode']);
        [, $output] = $this->reap(['--format' => 'json']);
        self::assertSame(0, Schema::check('reap', $output)['counts']['stale']);
    }

    public function testBadOptionsExitWith2AndSayWhy(): void
    {
        $uid = $this->db->stale();
        $cases = [
            [['--limit' => '0'], 'The --limit option must be a positive integer.'],
            [['--limit' => 'abc'], 'The --limit option must be a positive integer.'],
            [['--limit' => '-1'], 'The --limit option must be a positive integer.'],
            [['--limit' => ''], 'The --limit option must be a positive integer.'],
            [['--limit' => '99999999999999999999'], 'The --limit option must be a positive integer.'],
            [['--limit' => '+5'], 'The --limit option must be a positive integer.'],
            [['--limit' => ' 5'], 'The --limit option must be a positive integer.'],
            [['--format' => 'xml'], 'The --format option must be text or json.'],
            [['--wake-stranded' => 'soon'], 'The --wake-stranded option must be a number of seconds, 0 or more.'],
            [['--wake-stranded' => '-5'], 'The --wake-stranded option must be a number of seconds, 0 or more.'],
            [['--dry-run' => true, '--watch' => true], 'The --watch option cannot be used with --dry-run.'],
            [['--watch' => true, '--fail-unreadable' => true], 'The --fail-unreadable option is for one call; it cannot be used with --watch.'],
            [['--time-limit' => '5'], 'The --time-limit and --memory-limit options need --watch.'],
            [['--watch' => true, '--time-limit' => '0'], 'The --time-limit option must be a positive integer.'],
            [['--watch' => true, '--memory-limit' => 'lots'], 'The --memory-limit option must be a size, as 128M.'],
            [['--dry-run' => true, '--wake-stranded' => '60'], 'The --wake-stranded option wakes runs; it cannot be used with --dry-run.'],
        ];
        foreach ($cases as [$input, $message]) {
            self::assertSame([2, "\n [ERROR] $message\n\n", ''], $this->reap($input), json_encode($input));
            self::assertSame([2, '', ''], $this->reap($input, OutputInterface::VERBOSITY_QUIET), json_encode($input));
        }
        self::assertSame('running', $this->db->row($uid)['status']);
    }

    public function testADatabaseThatCannotBeUsedIsAnErrorAndNotZeroRuns(): void
    {
        $good = $this->db->connection();
        $cases = [
            'wrong password' => ['password' => 'p@ss-that-is-wrong'] + $good,
            'wrong port' => ['port' => 1] + $good,
            'no such database' => ['dbname' => 'nrllm_not_there'] + $good,
        ];
        foreach ($cases as $case => $connection) {
            $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'] = $connection;
            $this->site = null;
            foreach ([OutputInterface::VERBOSITY_NORMAL, OutputInterface::VERBOSITY_QUIET] as $verbosity) {
                [$code, $output, $errors] = $this->reap([], $verbosity);
                self::assertSame([1, ''], [$code, $output], $case);
                self::assertSame(1, substr_count($errors, "\n [ERROR] Stale agent runs could not be reaped: "), $case . $errors);
                self::assertSame(3, substr_count($errors, "\n"), $case . $errors);
                self::assertStringNotContainsString('p@ss', $errors . serialize($this->log()->lines()), $case);
            }
            self::assertNotSame([], $this->log()->lines('error'), $case);
        }
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'] = $good;
        $this->site = null;
        $this->db->pdo->exec('DROP TABLE tx_nrllm_agentrun');
        [$code, $output, $errors] = $this->reap();
        self::assertSame([1, ''], [$code, $output]);
        self::assertStringContainsString('tx_nrllm_agentrun', $errors);
    }

    public function testAMissingMessageTableIsReportedBeforeAnythingIsWritten(): void
    {
        $this->db->pdo->exec('DROP TABLE sys_messenger_messages');
        $uid = $this->db->stale();
        [$code, $output, $errors] = $this->reap();
        self::assertSame([1, ''], [$code, $output]);
        self::assertStringContainsString('sys_messenger_messages', $errors);
        self::assertSame('running', $this->db->row($uid)['status']);
    }

    public function testTlsInTheOtherDriversSpellingIsAnErrorAndNotPlainText(): void
    {
        $good = $this->db->connection();
        $uid = $this->db->stale();
        foreach ([
            ['driver' => 'pdo_mysql', 'ssl_ca' => '/nowhere/ca.pem'],
            ['driver' => 'pdo_mysql', 'driverOptions' => ['flags' => 2048]],
            ['driver' => 'mysqli', 'driverOptions' => [1009 => '/nowhere/ca.pem']],
        ] as $tls) {
            $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'] = $tls + $good;
            $this->site = null;
            [$code, , $errors] = $this->reap();
            self::assertSame(1, $code, json_encode($tls));
            self::assertStringContainsString('[ERROR] Stale agent runs could not be reaped: ', $errors, json_encode($tls));
        }
        self::assertSame('running', $this->db->row($uid)['status']);
    }

    public function testWithoutAMessageBusItCannotRun(): void
    {
        $this->site(withBus: false);
        $uid = $this->db->stale();
        self::assertSame([1, '', "\n [ERROR] No message bus is available; queued runs cannot be reclaimed.\n\n"], $this->reap());
        self::assertSame('running', $this->db->row($uid)['status']);
    }

    public function testAsASchedulerTaskNothingIsPrintedAndTheExitCodeReports(): void
    {
        $uid = $this->db->stale();
        $input = new ArrayInput(['--limit' => 10]);
        self::assertSame(0, $this->command('nrllm:agent:reap')->run($input, new NullOutput()));
        self::assertSame('queued', $this->db->row($uid)['status']);
        self::assertSame(2, $this->command('nrllm:agent:reap')->run(new ArrayInput(['--limit' => '0']), new NullOutput()));
    }

    public function testQuietAndVerboseOutputs(): void
    {
        $this->db->stale(['uuid' => '11111111-1111-4111-8111-111111111111', 'claimed_by' => 'worker:web-01:4711',
            'lease_expires' => 1700000000]);
        $this->db->stale(['uuid' => '22222222-2222-4222-8222-222222222222', 'requeue_count' => 3, 'lease_expires' => 1700000001]);
        [$code, $output, $errors] = $this->reap([], OutputInterface::VERBOSITY_VERBOSE);
        self::assertSame([0, ''], [$code, $errors]);
        self::assertSame(<<<'TEXT'
            Wake-ups: outbox. Wake-ups of the transport "doctrine" are written in the requeue's own transaction.
            requeued      11111111-1111-4111-8111-111111111111  uid 1, requeued 1 time(s), was worker:web-01:4711 until 2023-11-14 22:13:20 UTC
            dead-lettered 22222222-2222-4222-8222-222222222222  uid 2, requeued 3 time(s), was worker:dead:1 until 2023-11-14 22:13:21 UTC: retries_exhausted

             [OK] Reaped 2 stale run(s): 1 requeued, 1 dead-lettered, 0 skipped (renewed or already moved on).


            TEXT, $output);
        self::assertSame([0, '', ''], $this->reap([], OutputInterface::VERBOSITY_QUIET));
        self::assertStringContainsString('[OK] Reaped 0', $this->reap([], OutputInterface::VERBOSITY_DEBUG)[1]);
    }

    public function testOnATerminalProgressGoesToTheErrorOutput(): void
    {
        $this->db->stale();
        [$code, $output, $errors] = $this->reap([], OutputInterface::VERBOSITY_NORMAL, true);
        self::assertSame(0, $code);
        self::assertStringContainsString('1 run(s) so far', $errors);
        self::assertStringContainsString("\e[30;42m [OK] Reaped 1 stale run(s): 1 requeued", $output);
    }

    public function testWithoutTheExtensionNrLlmsOwnReaperRuns(): void
    {
        [$code, $output, $errors] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:reap', '--limit=7'], [], false);
        self::assertSame([0, "original reaper, limit 7\n"], [$code, $output], $errors);
        self::assertStringContainsString('[NOTE] nr_llm\'s own reaper runs. The PHP extension nrllm_runtime is not loaded.', $errors);
        self::assertSame(3, substr_count($errors, "\n"), $errors);
        [$code, $output, $errors] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:reap', '--limit=0'], [], false);
        self::assertSame([2, "\n [ERROR] The --limit option must be a positive integer.\n\n", ''], [$code, $output, $errors]);
        // The documented line for cron, with its sweep.
        $stranded = $this->db->run(['tstamp' => time() - 4000]);
        $waiting = $this->db->run(['tstamp' => time() - 650, 'requeue_count' => 2]);
        [$code, $output, $errors] = Process::run(
            [dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:reap', '--wake-stranded=600'],
            [],
            false,
        );
        self::assertSame(0, $code, $output . $errors);
        self::assertStringContainsString("original reaper, limit 50\n Woke 1 stranded run(s).\n", $output);
        self::assertSame([$this->db->row($stranded)['uuid']], $this->receive());
        self::assertSame('queued', $this->db->row($waiting)['status'], 'its backoff is not over');
        [$code, $output, $errors] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:reap', '-q',
            '--wake-stranded=600'], [], false);
        self::assertSame([0, '', ''], [$code, $output, $errors]);
        self::assertSame([], $this->receive(), 'woken once');
        [$code, , $errors] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:reap', '--dry-run'], [], false);
        self::assertSame(1, $code);
        self::assertStringContainsString('need the native runtime', $errors);
        $GLOBALS['TYPO3_CONF_VARS']['EXTENSIONS']['nrllm_runtime'] = ['fallback' => 'none'];
        [$code, $output, $errors] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:reap'], [], false);
        self::assertSame([1, ''], [$code, $output]);
        self::assertStringContainsString('forbids nr_llm\'s own reaper', $errors);
    }

    public function testOnAnotherDbmsNrLlmsOwnReaperRuns(): void
    {
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'] = ['driver' => 'pdo_pgsql', 'fixtureDriver' => 'mysqli']
            + $this->db->connection();
        [$code, $output, $errors] = $this->reap(['--limit' => '3']);
        self::assertSame([0, "original reaper, limit 3\n"], [$code, $output], $errors);
        self::assertStringContainsString('the driver "pdo_pgsql"', $errors);
        $this->reap();
        self::assertCount(1, $this->log()->lines('warning'), 'once a process');
    }

    public function testStrandedRunsAreWoken(): void
    {
        $old = $this->db->run(['tstamp' => time() - 4000]);
        $fresh = $this->db->run(['tstamp' => time()]);
        [$code, $output] = $this->reap(['--wake-stranded' => '600']);
        self::assertSame(0, $code, $output);
        self::assertStringContainsString(" Woke 1 stranded run(s).\n", $output);
        self::assertSame([$this->db->row($old)['uuid']], $this->receive());
        self::assertStringContainsString(' Woke 0 stranded run(s).', $this->reap(['--wake-stranded' => '600'])[1]);
        self::assertSame('queued', $this->db->row($fresh)['status']);
        self::assertCount(1, $this->log()->lines('warning'));
    }

    public function testWithoutTheExtensionADatabaseThatIsDownIsNotZeroRuns(): void
    {
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default']['port'] = 1;
        [$code, $output, $errors] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:reap', '-q'], [], false);
        self::assertSame([1, ''], [$code, $output]);
        self::assertStringContainsString('[ERROR] Stale agent runs could not be reaped: ', $errors);
    }

    public function testARuntimeThatMayNotConnectLeavesTheReapingToNrLlm(): void
    {
        // One connection for TYPO3, none for the runtime.
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'] = $this->db->limited(1);
        $this->site()->get(ConnectionPool::class)->getConnectionByName('Default')->executeQuery('SELECT 1');
        [$code, $output, $errors] = $this->reap(['--limit' => '4']);
        self::assertSame([0, "original reaper, limit 4\n"], [$code, $output], $errors);
        self::assertStringContainsString('[NOTE] The native runtime cannot connect, nr_llm\'s own reaper runs: ', $errors);
        self::assertCount(1, $this->log()->lines('error'));
        $this->db->configure(['fallback' => 'none']);
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'] = $this->db->limited(1);
        $this->site = null;
        $this->site()->get(ConnectionPool::class)->getConnectionByName('Default')->executeQuery('SELECT 1');
        self::assertSame(1, $this->reap()[0]);
    }

    public function testUnreadableRunsHaveAWayOut(): void
    {
        $lost = AgentStateCodec::seal('{"messages":[]}', 'nrllm:agent-state:queued-request', 'another key');
        $stale = $this->db->stale(['queued_request' => $lost]);
        $queued = $this->db->run(['queued_request' => $lost]);
        $good = $this->db->run(['queued_request' => AgentStateCodec::seal('{}', 'nrllm:agent-state:queued-request')]);
        [$code, , $errors] = $this->reap([], OutputInterface::VERBOSITY_QUIET);
        self::assertSame(1, $code);
        self::assertStringContainsString('[ERROR] 1 run(s) were left alone: their stored payload cannot be decrypted. Restore the encryption '
            . 'key (nr_vault), or end them by nrllm:agent:reap --fail-unreadable.', $errors);

        [$code, $output, $errors] = $this->reap(['--fail-unreadable' => true, '--format' => 'json']);
        self::assertSame([0, ''], [$code, $errors], $output);
        $document = Schema::check('reap', $output);
        self::assertSame([[$stale, $queued], 1, 0], [array_column($document['failedUnreadable'], 'uid'),
            $document['counts']['deadLettered'], $document['counts']['leftAlone']]);
        self::assertSame(['failed', 'not_retryable', ''], $this->columns($stale, 'status', 'termination_reason', 'queued_request'));
        self::assertSame(
            ['failed', 'provider_failed', 'NrLlmRuntime\Typo3\Reap\UnreadablePayloadException'],
            $this->columns($queued, 'status', 'termination_reason', 'error_class'),
        );
        self::assertSame('queued', $this->db->row($good)['status']);
        self::assertSame([0, ''], array_slice($this->reap([], OutputInterface::VERBOSITY_QUIET), 0, 2), 'nothing is left to report');
    }

    public function testAMissingTableIsReportedWithTypo3sRemedy(): void
    {
        foreach (['sys_messenger_messages', 'tx_nrllm_agentrun'] as $table) {
            $this->db->pdo->exec('DROP TABLE ' . $table);
            [$code, , $errors] = $this->reap();
            self::assertSame(1, $code);
            self::assertStringContainsString('The table ' . $table . ' does not exist in the database of the connection "Default". Create it: '
                . 'vendor/bin/typo3 extension:setup', $errors);
            self::assertStringNotContainsString('option table', $errors);
        }
    }

    public function testAMissingColumnIsReportedWithTypo3sRemedy(): void
    {
        $this->db->pdo->exec('ALTER TABLE tx_nrllm_agentrun DROP COLUMN requeue_count');
        [$code, , $errors] = $this->reap();
        self::assertSame(1, $code);
        self::assertStringContainsString('lacks the column requeue_count. Update the schema: vendor/bin/typo3 extension:setup', $errors);
    }

    public function testASettingThatTheReaperCannotUseStopsIt(): void
    {
        foreach (['clock' => 'databse', 'fallback' => 'maybe', 'queryTimeoutMs' => '5s', 'transport' => ['doctrine']] as $key => $value) {
            $this->db->configure([$key => $value]);
            $this->site = null;
            $uid = $this->db->stale();
            [$code, $output, $errors] = $this->reap([], OutputInterface::VERBOSITY_QUIET);
            self::assertSame([1, ''], [$code, $output], $key);
            self::assertStringContainsString('[ERROR] The extension setting ' . $key . ' must be ', $errors);
            self::assertSame('running', $this->db->row($uid)['status'], $key);
        }
        $this->db->configure(['leaseSeconds' => 'long']);
        $this->site = null;
        self::assertSame(0, $this->reap()[0], 'a setting of the workers');
    }

    public function testEventsReportWhatBecameOfStaleRuns(): void
    {
        $requeued = $this->db->stale();
        $dead = $this->db->stale(['requeue_count' => 3]);
        self::assertSame(0, $this->reap()[0]);
        $events = $this->site()->get(Listeners::class);
        self::assertEquals(
            [new AgentRunRequeuedEvent($requeued, $this->db->row($requeued)['uuid'], 'lease_expired', 1)],
            $events->of(AgentRunRequeuedEvent::class),
        );
        self::assertEquals(
            [new AgentRunDeadLetteredEvent($dead, $this->db->row($dead)['uuid'], 'retries_exhausted')],
            $events->of(AgentRunDeadLetteredEvent::class),
        );
    }

    public function testAListenerThatThrowsDoesNotStopTheReaper(): void
    {
        $this->site(static function (ContainerBuilder $builder): void {
            $builder->register('failing.listener', FailingListener::class)->setPublic(true)
                ->addTag('event.listener', ['event' => AgentRunRequeuedEvent::class]);
        });
        $runs = [$this->db->stale(), $this->db->stale()];
        self::assertSame(0, $this->reap()[0]);
        self::assertSame(['queued', 'queued'], [$this->db->row($runs[0])['status'], $this->db->row($runs[1])['status']]);
        self::assertCount(2, $this->log()->lines('error'));
    }

    public function testAWatchingReaperActsWithinTwoSecondsOfTheExpiry(): void
    {
        $this->db->configure(['leaseSeconds' => '30']);
        [$process, $pipes] = Process::start([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:reap', '--watch',
            '--wake-stranded=600', '--format=json', '--time-limit=40']);
        $stranded = $this->db->run(['tstamp' => time() - 4000]);
        $late = [];
        // The first may be known when the reaper begins to wait; the others are taken while it
        // sleeps.
        foreach ([3, 1, 4] as $ahead) {
            $uid = $this->db->run(['status' => 'running', 'claimed_by' => 'worker:dead:1', 'lease_expires' => $expires = time() + $ahead]);
            self::eventually(fn(): bool => $this->db->row($uid)['status'] === 'queued', $ahead + 12, 'the run is queued');
            $late[] = microtime(true) - $expires;
        }
        self::assertLessThan(2.0, max($late));
        self::assertGreaterThanOrEqual(1.0, min($late), 'a lease is good until its last second is over');
        proc_terminate($process, SIGTERM);
        $output = (string)stream_get_contents($pipes[1]);
        $errors = (string)stream_get_contents($pipes[2]);
        self::assertSame(0, proc_close($process), $output . $errors);
        $lines = array_filter(explode("\n", $output));
        self::assertNotSame([], $lines);
        $woken = [];
        foreach ($lines as $line) {
            $woken = [...$woken, ...Schema::check('reap', $line)['woken']];
        }
        self::assertSame([$stranded], array_column($woken, 'uid'));
    }

    public function testAWatchingReaperReportsAnOutageOnceAndWaits(): void
    {
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'] = $this->db->limited(0);
        [$process, $pipes] = Process::start([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:reap', '--watch', '--time-limit=30']);
        $first = $this->db->stale();
        self::eventually(fn(): bool => $this->db->row($first)['status'] === 'queued', 20, 'the first run');
        $this->db->refuse();
        $second = $this->db->stale();
        usleep(2500000);
        self::assertTrue(proc_get_status($process)['running']);
        $this->db->accept();
        self::eventually(fn(): bool => $this->db->row($second)['status'] === 'queued', 20, 'the second run');
        proc_terminate($process, SIGTERM);
        $errors = (string)stream_get_contents($pipes[2]);
        self::assertSame(0, proc_close($process), $errors);
        self::assertSame([1, 1], [substr_count($errors, '[ERROR] The database cannot be reached; nrllm:agent:reap waits for it.'),
            substr_count($errors, '[NOTE] The database answers again')], $errors);
    }

    public function testWithoutTheExtensionAWatchingReaperCallsNrLlms(): void
    {
        $stranded = $this->db->run(['tstamp' => time() - 4000]);
        [$code, $output, $errors] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:reap', '--watch', '--time-limit=1',
            '--wake-stranded=600'], [], false);
        self::assertSame(0, $code, $output . $errors);
        self::assertSame([$this->db->row($stranded)['uuid']], $this->receive());
    }

    public function testARetryWaitsForTheFailuresOwnWaitingTime(): void
    {
        foreach ([
            [new CircuitOpenException('p', 120), 120],
            [new CircuitOpenException('p', 7200), 3600],
            [new CircuitOpenException('p', 5), 30],
            [new \RuntimeException('no waiting time'), 30],
        ] as $number => [$failure, $seconds]) {
            $uuid = sprintf('99999999-0000-4000-8000-%012d', $number);
            $this->site()->get(QueuedRunFailureRecovery::class)->recover($uuid, $failure);
            $waits = (int)$this->db->one("SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), available_at) FROM sys_messenger_messages WHERE body LIKE '%$uuid%'");
            self::assertEqualsWithDelta($seconds, $waits, 3, (string)$number);
        }
    }

    public function testHelpHasExamplesAndExitCodes(): void
    {
        foreach (['nrllm:agent:reap', 'nrllm:agent:status', 'nrllm:agent:work'] as $name) {
            [$code, $output] = Process::run([dirname(__DIR__) . '/Support/console.php', $name, '--help']);
            self::assertSame(0, $code);
            self::assertStringContainsString($name . ' [options]', $output);
            self::assertMatchesRegularExpression('/Examples\s+.*' . $name . ' -.*Exit codes\s+0  .*\s1  .*\s2  an option is wrong/s', $output);
            self::assertStringNotContainsString('%command', $output);
        }
        [, $output] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:reap', '--help']);
        self::assertStringContainsString('Reclaim or dead-letter queued agent runs whose worker lease has expired.', $output);
        self::assertMatchesRegularExpression(
            '/-l, --limit=LIMIT +Maximum number of stale runs to handle in this run. \[default: "50"\]/',
            $output,
        );
    }

    /**
     * @param array<string, mixed> $input
     * @return array{int, string, string}
     */
    private function reap(array $input = [], int $verbosity = OutputInterface::VERBOSITY_NORMAL, bool $decorated = false): array
    {
        return Console::call($this->command('nrllm:agent:reap'), array_diff_key($input, ['-v' => 1]), $verbosity, $decorated);
    }

    /**
     * The run table in a database of its own, and no table for the messages: the bus cannot send.
     */
    private function runTableOnly(): \NrLlmRuntime\Typo3\Tests\Support\Database
    {
        $other = new \NrLlmRuntime\Typo3\Tests\Support\Database();
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections'] = ['Default' => $other->connection(), 'Runs' => $this->db->connection()];
        $GLOBALS['TYPO3_CONF_VARS']['DB']['TableMapping'] = ['tx_nrllm_agentrun' => 'Runs'];
        $other->pdo->exec('DROP TABLE sys_messenger_messages');

        return $other;
    }

    /**
     * Everything that Symfony's transport receives, acknowledged.
     *
     * @return list<string> the runs' uuids
     */
    private function receive(): array
    {
        $transport = $this->site()->get(DoctrineTransport::class);
        $uuids = [];
        while ($envelopes = [...$transport->get()]) {
            foreach ($envelopes as $envelope) {
                $uuids[] = $envelope->getMessage()->runUuid;
                $transport->ack($envelope);
            }
        }

        return $uuids;
    }

    /**
     * @return list<mixed>
     */
    private function columns(int $uid, string ...$names): array
    {
        $row = $this->db->row($uid);

        return array_map(static fn(string $name): mixed => $row[$name], $names);
    }
}
