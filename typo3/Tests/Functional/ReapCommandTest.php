<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Functional;

use Netresearch\NrLlm\Service\Agent\AgentRuntime;
use Netresearch\NrLlm\Service\Tool\AgentStateCodec;
use NrLlmRuntime\Typo3\Tests\Support\Console;
use NrLlmRuntime\Typo3\Tests\Support\HandProxy;
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
        self::assertSame("\n [OK] Reaped 1 stale run(s): 1 requeued, 0 dead-lettered, 0 skipped (renewed or already moved on).\n\n",
            $output);
    }

    public function testStaleRunsAreDecidedAsNrLlmDecidesThem(): void
    {
        $requeue = $this->db->stale(['requeue_count' => 2]);
        $spent = $this->db->stale(['requeue_count' => 3]);
        $fenced = $this->db->stale(['pending_effect' => 'non_idempotent_write']);
        $empty = $this->db->stale(['queued_request' => '']);
        $interactive = $this->db->run(['status' => 'running', 'lease_expires' => 0]);

        [$code, $output, $errors] = $this->reap();

        self::assertSame([0, ''], [$code, $errors]);
        self::assertStringContainsString('Reaped 4 stale run(s): 1 requeued, 3 dead-lettered, 0 skipped', $output);
        self::assertSame(['queued', 3, ''], $this->columns($requeue, 'status', 'requeue_count', 'claimed_by'));
        self::assertSame(['failed', 'retries_exhausted'], $this->columns($spent, 'status', 'termination_reason'));
        self::assertSame(['failed', 'not_retryable'], $this->columns($fenced, 'status', 'termination_reason'));
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
            self::assertMatchesRegularExpression('/^worker:.+:' . getmypid() . ':[^:]+$/', $owners[$uid], 'claimed through the seam');
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

    public function testWithTheSynchronousTransportRunsExecuteInsideTheCommandWhichSaysSo(): void
    {
        $this->db->configure(['keeper' => '0'], ['*' => 'default']);
        $uid = $this->db->stale();
        [$code, $output, $errors] = $this->reap();
        self::assertSame(0, $code, $output . $errors);
        self::assertStringContainsString('[NOTE] The transport "default" is synchronous: requeued runs execute inside the command',
            $errors);
        self::assertSame('completed', $this->db->row($uid)['status']);
        self::assertSame([$this->db->row($uid)['uuid']], AgentRuntime::$ran);
        self::assertStringContainsString('Reaped 1 stale run(s): 1 requeued', $output);
    }

    public function testADispatchThatFailsSettlesThatRunIsToldAndTheTickGoesOn(): void
    {
        $this->db->configure([], [self::MESSAGE => 'nowhere']);
        $first = $this->db->stale();
        $second = $this->db->stale();
        [$code, $output] = $this->reap();
        self::assertSame(0, $code);
        $uuid = $this->db->row($first)['uuid'];
        self::assertStringContainsString(
            ' [WARNING] Run "' . $uuid
                . '" was reclaimed but its wake-up could not be dispatched; settled failed to avoid an orphan: Invalid senders configuration',
            $output,
        );
        self::assertStringContainsString('Reaped 2 stale run(s): 0 requeued, 2 dead-lettered, 0 skipped', $output);
        foreach ([$first, $second] as $uid) {
            self::assertSame(['failed', 'provider_failed', 'RuntimeException'],
                $this->columns($uid, 'status', 'termination_reason', 'error_class'));
        }
        self::assertCount(2, $this->log()->lines('error'));
    }

    public function testRunsWhosePayloadCannotBeReadAreLeftAloneAndTheOthersAreHandled(): void
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

    public function testADryRunChangesNothingAndTellsTheSame(): void
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
        self::assertSame([1, 2], array_column($this->db->all("SELECT uid FROM tx_nrllm_agentrun WHERE status = 'queued' ORDER BY uid"),
            'uid'));
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
            'woken' => 0], $document['counts']);
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

    public function testAMissingMessageTableIsToldBeforeAnythingIsWritten(): void
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

    public function testAsASchedulerTaskNothingIsPrintedAndTheExitCodeTells(): void
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

    public function testOnATerminalProgressGoesToTheErrorOutputAndTheAnswerStaysClean(): void
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
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'] = ['driver' => 'pdo_pgsql', 'host' => 'db', 'dbname' => 'x'];
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

    public function testHelpNamesTheOptions(): void
    {
        [$code, $output] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:reap', '--help']);
        self::assertSame(0, $code);
        self::assertStringContainsString('Reclaim or dead-letter queued agent runs whose worker lease has expired.', $output);
        self::assertMatchesRegularExpression('/-l, --limit=LIMIT +Maximum number of stale runs to handle in this run. \[default: "50"\]/',
            $output);
        self::assertStringContainsString('nrllm:agent:reap [options]', $output);
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
