<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Functional;

use NrLlmRuntime\Typo3\Command\StatusCommand;
use NrLlmRuntime\Typo3\Console\ConsoleMessages;
use NrLlmRuntime\Typo3\Tests\Support\Console;
use NrLlmRuntime\Typo3\Tests\Support\Metrics;
use NrLlmRuntime\Typo3\Tests\Support\PrivateServer;
use NrLlmRuntime\Typo3\Tests\Support\Process;
use NrLlmRuntime\Typo3\Tests\Support\Schema;
use NrLlmRuntime\Typo3\Tests\Support\SiteTestCase;
use Symfony\Component\Console\Output\OutputInterface;
use TYPO3\CMS\Core\Type\ContextualFeedbackSeverity;
use TYPO3\CMS\Dashboard\WidgetRegistry;
use TYPO3\CMS\Reports\Registry\StatusRegistry;

/**
 * nrllm:agent:status: health, exit codes, and the installation's checks.
 */
final class StatusCommandTest extends SiteTestCase
{
    public function testAHealthySite(): void
    {
        $this->db->run(['status' => 'running', 'claimed_by' => 'worker:live:1', 'lease_expires' => time() + 100]);
        [$code, $output, $errors] = $this->ask();
        self::assertSame([0, ''], [$code, $errors], $output);
        self::assertStringContainsString("\n running          1\n", $output);
        self::assertStringContainsString("\n live workers     not evaluated (nr_llm does not record them)\n", $output);
        self::assertStringContainsString(
            "\n ok       path: Native runtime by " . self::binding() . '. The PHP extension nrllm_runtime ',
            $output,
        );
        self::assertStringContainsString("\n ok       command: nrllm:agent:reap is this package's.\n", $output);
        self::assertStringContainsString("\n ok       routing: The message of queued runs goes to \"doctrine\".\n", $output);
        self::assertStringContainsString("\n ok       wake-ups: Wake-ups of the transport \"doctrine\" are written in the requeue's own transaction.\n", $output);
        self::assertStringContainsString("\n warning  key: The run table has no key (status, lease_expires)", $output);
        self::assertStringEndsWith("\n [OK] Healthy.\n\n", $output);
        self::assertStringContainsString(self::hasProxies()
            ? "\n ok       repository: nr_llm's run repository is overridden.\n"
            : "\n warning  repository: nr_llm's run repository is not overridden: symfony/var-exporter 6.2 or newer", $output);
    }

    public function testWhatIsUnhealthyExits1(): void
    {
        $cases = [
            'an expired lease' => [fn() => $this->db->stale(), [], '1 running run(s) with an expired lease'],
            'a long wait' => [fn() => $this->db->run(['tstamp' => time() - 400]), [],
                'The oldest queued run waits for 400 s, and 300 s are allowed.'],
            'a wait over the given limit' => [fn() => $this->db->run(['tstamp' => time() - 100]), ['--max-queue-wait' => '60'],
                'and 60 s are allowed.'],
            'an unknown wait' => [function (): void {
                $this->db->pdo->exec('ALTER TABLE tx_nrllm_agentrun ADD queued_at int unsigned NOT NULL DEFAULT 0');
                $this->db->run(['tstamp' => time()]);
            }, [], 'Of 1 queued run(s) it is not known since when they wait.'],
            'no live worker' => [fn() => $this->workers([]), [], '0 live worker(s), and 1 are wanted.'],
            'an old sign of life' => [fn() => $this->workers([['w1', 'doctrine', time() - 130]]), [], '0 live worker(s)'],
            'a worker of another transport' => [fn() => $this->workers([['w1', 'rabbit', time()]]), [], '0 live worker(s)'],
            'too few' => [fn() => $this->workers([['w1', 'doctrine', time()]]), ['--minimum-workers' => '2'],
                '1 live worker(s), and 2 are wanted.'],
            'two rows of one worker' => [fn() => $this->workers([['w1', 'doctrine', time()], ['w1', 'doctrine', time() - 5]]),
                ['--minimum-workers' => '2'], '1 live worker(s), and 2 are wanted.'],
            'a clock of a worker that is far ahead' => [fn() => $this->workers([['w1', 'doctrine', time() + 500]]), [], '0 live worker(s)'],
        ];
        foreach ($cases as $case => [$make, $options, $said]) {
            $make();
            [$code, $output, $errors] = $this->ask($options);
            self::assertSame([1, ''], [$code, $errors], $case . $output);
            self::assertStringContainsString($said, preg_replace('/waits for 40[1-9]/', 'waits for 400', $output), $case);
            self::assertStringNotContainsString('[OK]', $output, $case);
            $this->db->drop();
            $this->setUp();
            $this->site = null;
        }
    }

    public function testWhatIsHealthyExits0(): void
    {
        $cases = [
            'a short wait' => [fn() => $this->db->run(['tstamp' => time() - 100]), []],
            'a known wait' => [function (): void {
                $this->db->pdo->exec('ALTER TABLE tx_nrllm_agentrun ADD queued_at int unsigned NOT NULL DEFAULT 0');
                $this->db->run(['tstamp' => time() - 9000, 'queued_at' => time() - 10]);
                $this->db->run(['status' => 'completed', 'queued_at' => 0]);
            }, []],
            'a live worker' => [fn() => $this->workers([['w1', 'doctrine', time() - 100], ['w2', 'doctrine', time() - 500]]), []],
            'a worker within the given age' => [fn() => $this->workers([['w1', 'doctrine', time() - 500]]), ['--worker-max-age' => '600']],
            'a worker of the given transport' => [fn() => $this->workers([['w1', 'rabbit', time()]]), ['--transport' => 'rabbit']],
            'a worker whose clock is ahead' => [fn() => $this->workers([['w1', 'doctrine', time() + 60]]), []],
            'limits as large as can be' => [fn() => $this->workers([['w1', 'doctrine', time() - 5000]]),
                ['--worker-max-age' => (string)PHP_INT_MAX, '--max-queue-wait' => (string)PHP_INT_MAX]],
            'no worker wanted' => [fn() => $this->workers([]), ['--minimum-workers' => '0']],
        ];
        foreach ($cases as $case => [$make, $options]) {
            $make();
            [$code, $output] = $this->ask($options);
            self::assertSame(0, $code, $case . $output);
            $this->db->drop();
            $this->setUp();
            $this->site = null;
        }
    }

    public function testWorkersAreNotEvaluatedWhereTheirTableIsOfAnotherShape(): void
    {
        foreach (['worker_id', 'transport', 'last_seen'] as $column) {
            $this->workers([]);
            $this->db->pdo->exec("ALTER TABLE tx_nrllm_worker_heartbeat DROP COLUMN $column");
            [$code, $output, $errors] = $this->ask();
            self::assertSame([0, ''], [$code, $errors], $column . $output);
            self::assertStringContainsString("\n live workers     not evaluated (nr_llm does not record them)\n", $output);
            self::assertStringContainsString('Workers are not evaluated', $output);
            $this->db->pdo->exec('DROP TABLE tx_nrllm_worker_heartbeat');
        }
    }

    public function testJsonFollowsItsSchemaAndHasNrLlmsKeys(): void
    {
        $this->db->stale(['requeue_count' => 3]);
        $this->db->run(['tstamp' => time() - 30]);
        $this->db->run(['status' => 'failed', 'termination_reason' => 'retries_exhausted']);
        $this->db->run(['status' => 'failed', 'termination_reason' => 'provider_failed']);
        foreach ([['--json' => true], ['--format' => 'json']] as $options) {
            [$code, $output, $errors] = $this->ask($options);
            self::assertSame([1, ''], [$code, $errors]);
            $document = Schema::check('status', $output);
            self::assertSame(['queued', 'running', 'dead_lettered', 'expired_leases', 'oldest_queue_wait_seconds', 'unknown_queue_wait',
                'live_workers', 'healthy'], array_slice(array_keys($document), 0, 8));
            self::assertSame(
                [1, 1, 1, 1, 0, null, false],
                [$document['queued'], $document['running'], $document['dead_lettered'], $document['expired_leases'],
                    $document['unknown_queue_wait'], $document['live_workers'], $document['healthy']],
            );
            self::assertEqualsWithDelta(30, $document['oldest_queue_wait_seconds'], 3);
            self::assertSame(self::binding(), $document['path']);
            self::assertSame(\NrLlmRuntime::VERSION, $document['versions']['runtime']);
            self::assertSame('13.4.18', $document['versions']['typo3']);
        }
    }

    public function testOpenMetricsOnARealServer(): void
    {
        $this->db->stale();
        [$code, $output, $errors] = $this->ask(['--format' => 'openmetrics']);
        self::assertSame([1, ''], [$code, $errors]);
        $values = Metrics::parse($output);
        self::assertSame(1.0, $values['nrllm_agent_expired_leases{}']);
        self::assertSame(1.0, $values['nrllm_agent_runs{"status": "running"}']);
        self::assertSame(0.0, $values['nrllm_agent_healthy{}']);
    }

    public function testChecksNameWhatIsSilentlyWrong(): void
    {
        $message = 'Netresearch\NrLlm\Service\Agent\Queue\AgentRunQueuedMessage';
        $this->db->run(['status' => 'running', 'lease_expires' => 0]);
        $this->db->configure(['leaseSeconds' => '1'], [$message => 'doctrine', '*' => 'default']);
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default']['initCommands'] = "SET sql_mode=''";
        $checks = $this->checks();
        self::assertSame('warning', $checks['routing']['level']);
        self::assertStringContainsString('executes at once in the process that queues it', $checks['routing']['text']);
        self::assertSame('warning', $checks['unleased']['level']);
        self::assertSame('error', $checks['settings']['level']);
        self::assertStringStartsWith(
            'The extension setting leaseSeconds must be a whole number from 2 to 86400, not "1"; 60 is used instead.',
            $checks['settings']['text'],
        );
        self::assertStringContainsString('set sql_mode', $checks['init-commands']['text']);

        $this->db->configure([], ['*' => 'default']);
        $checks = $this->checks();
        self::assertSame('warning', $checks['routing']['level']);
        self::assertStringContainsString('runs execute in the process that queues or reaps them', $checks['routing']['text']);
        self::assertSame('warning', $checks['wake-ups']['level']);
        self::assertArrayNotHasKey('settings', $checks);

        $this->db->configure(['transport' => 'gone']);
        self::assertStringContainsString('The transport "gone" (extension setting "transport") is not registered', $this->checks()['routing']['text']);

        $this->db->configure();
        $this->db->pdo->exec('ALTER TABLE tx_nrllm_agentrun ADD KEY nrllm_runtime_lease (status, lease_expires)');
        self::assertSame('ok', $this->checks()['key']['level']);
    }

    public function testAHeartbeatsCostToTheBinaryLogIsReportedWithTheRemedy(): void
    {
        $this->db->configure();
        self::assertSame(
            ['check' => 'binlog', 'level' => 'ok', 'text' => 'The server keeps no binary log.'],
            $this->checks()['binlog'],
        );

        $server = new PrivateServer('--log-bin=binlog', '--server-id=1', '--binlog-format=ROW');
        try {
            $run = $this->db->pdo->query('SHOW CREATE TABLE tx_nrllm_agentrun')->fetch()['Create Table'];
            $server->pdo->exec('CREATE DATABASE logged');
            $server->pdo->exec('USE logged');
            $server->pdo->exec($run);
            $server->pdo->exec("CREATE USER 'plain'@'%' IDENTIFIED BY 'x'");
            $server->pdo->exec("GRANT SELECT, INSERT, UPDATE, DELETE ON logged.* TO 'plain'@'%'");
            $server->pdo->prepare("INSERT INTO tx_nrllm_agentrun (uuid, status, lease_expires, queued_request) VALUES ('r', 'running', ?, ?)")
                ->execute([time() + 100, str_repeat('x', 20480)]);
            $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'] = ['driver' => 'mysqli', 'host' => '127.0.0.1', 'port' => $server->port,
                'user' => 'plain', 'password' => 'x', 'dbname' => 'logged', 'charset' => 'utf8mb4'];
            $check = $this->checks()['binlog'];
            self::assertSame('warning', $check['level'], $check['text']);
            self::assertMatchesRegularExpression('/^A heartbeat adds about 4\d{4} bytes to the binary log \(binlog_format ROW, binlog_row_image FULL\)\. '
                . 'Grant the account .+, or set binlog_row_image=MINIMAL on the server: a heartbeat then logs about \d+ bytes\.$/', $check['text']);
            $document = Schema::check('status', $this->ask(['--json' => true])[1]);
            self::assertSame(['ROW', 'FULL'], [$document['binlog']['format'], $document['binlog']['rowImage']]);
            $values = Metrics::parse($this->ask(['--format' => 'openmetrics'])[1]);
            self::assertSame((float)$document['binlog']['bytesPerHeartbeat'], $values['nrllm_agent_heartbeat_binlog_bytes{}']);

            $server->pdo->exec("SET GLOBAL binlog_row_image = 'MINIMAL'");
            // Another account: the process keeps the connection of the first one.
            $server->pdo->exec("CREATE USER 'later'@'%' IDENTIFIED BY 'x'");
            $server->pdo->exec("GRANT SELECT, INSERT, UPDATE, DELETE ON logged.* TO 'later'@'%'");
            $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default']['user'] = 'later';
            $check = $this->checks()['binlog'];
            self::assertSame('ok', $check['level'], $check['text']);
            self::assertStringEndsWith('(binlog_format ROW, binlog_row_image MINIMAL).', $check['text']);
        } finally {
            $server->stop();
        }
    }

    public function testACommandOfAnotherExtensionIsReported(): void
    {
        $this->site(static function ($builder): void {
            // Loaded after this package, under the same name: the last one of a name wins.
            $builder->autowire('other.reap', 'Netresearch\NrLlm\Command\ReapStaleAgentRunsCommand')
                ->addTag('console.command', ['command' => 'nrllm:agent:reap', 'schedulable' => true]);
        });
        $checks = $this->checks(false);
        self::assertSame('warning', $checks['command']['level']);
        self::assertStringContainsString(
            'Netresearch\NrLlm\Command\ReapStaleAgentRunsCommand: another extension has overridden it',
            $checks['command']['text'],
        );
    }

    public function testWithoutTheRuntimeTheStatusStillReports(): void
    {
        $this->db->stale();
        $this->db->run(['tstamp' => time() - 10]);
        [$code, $output, $errors] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:status', '--json'], [], false);
        self::assertSame(1, $code, $output . $errors);
        $document = Schema::check('status', $output);
        self::assertSame(['none', 1, 1, null], [$document['path'], $document['expired_leases'], $document['queued'],
            $document['stranded']]);
        [$code, $output] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:status'], [], false);
        self::assertSame(1, $code);
        self::assertStringContainsString(' warning  path: No native runtime, nr_llm\'s own PHP code. The PHP extension nrllm_runtime is not loaded.', $output);
    }

    public function testWithoutTheRuntimeTheWaitCountsFromWhenARunWasQueuedAgain(): void
    {
        $wait = function (): int {
            [, $output, $errors] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:status', '--json'], [], false);
            self::assertSame('', $errors);

            return Schema::check('status', $output)['oldest_queue_wait_seconds'];
        };
        $this->db->run(['tstamp' => time() - 7000]);
        self::assertGreaterThanOrEqual(7000, $wait(), 'a release without the column');
        $this->db->pdo->exec('ALTER TABLE tx_nrllm_agentrun ADD queued_at int unsigned NOT NULL DEFAULT 0');
        self::assertGreaterThanOrEqual(7000, $wait(), 'a row that was queued before there was the column');
        $this->db->pdo->exec('UPDATE tx_nrllm_agentrun SET queued_at = ' . (time() - 400));
        $this->db->run(['tstamp' => time(), 'queued_at' => time() - 500]);
        self::assertThat($wait(), self::logicalAnd(self::greaterThanOrEqual(500), self::lessThan(7000)));
    }

    public function testBadOptionsExitWith2(): void
    {
        foreach ([['--max-queue-wait' => '-1'], ['--max-queue-wait' => 'x'], ['--minimum-workers' => '1.5'], ['--worker-max-age' => '0'],
            ['--transport' => 'a b'], ['--transport' => '']] as $options) {
            self::assertSame(
                [2, "\n [ERROR] Limits must be non-negative integers, --worker-max-age must be positive, and --transport must be a simple identifier.\n\n", ''],
                $this->ask($options),
                json_encode($options),
            );
        }
        self::assertSame(
            [2, "\n [ERROR] The --format option must be text, json or openmetrics.\n\n", ''],
            $this->ask(['--format' => 'xml']),
        );
    }

    public function testADatabaseThatCannotBeReadIsReported(): void
    {
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default']['port'] = 1;
        foreach ([[], ['--json' => true], ['--format' => 'openmetrics']] as $options) {
            [$code, $output, $errors] = $this->ask($options, OutputInterface::VERBOSITY_QUIET);
            self::assertSame([1, ''], [$code, $output]);
            self::assertStringContainsString(' [ERROR] The status could not be read: ', $errors);
            self::assertSame(3, substr_count($errors, "\n"), $errors);
        }
        [$code, $output] = $this->ask(['--format' => 'openmetrics']);
        self::assertSame(1, $code);
        $values = Metrics::parse($output);
        self::assertSame([0.0, 0.0], [$values['nrllm_agent_healthy{}'], $values['nrllm_agent_database_up{}']]);
        self::assertArrayNotHasKey('nrllm_agent_expired_leases{}', $values, 'what is not known is left out');
        [$code, $output] = $this->ask(['--json' => true]);
        self::assertSame(1, $code);
        $document = Schema::check('status', $output);
        self::assertSame([false, null, null], [$document['healthy'], $document['queued'], $document['expired_leases']]);
        self::assertStringStartsWith('The database cannot be read: ', $document['problems'][0]);
        [, $output] = $this->ask();
        self::assertStringContainsString("\n expired leases   unknown\n", $output);
        self::assertStringContainsString("\n warning  keeper: No lease is kept in the background", $output);
    }

    public function testAMissingTableIsReportedWithTypo3sRemedy(): void
    {
        $this->db->pdo->exec('DROP TABLE tx_nrllm_agentrun');
        [$code, $output] = $this->ask(['--json' => true]);
        self::assertSame(1, $code);
        self::assertSame(
            ['The database cannot be read: The table tx_nrllm_agentrun does not exist in the database of the connection "Default". '
            . 'Create it: vendor/bin/typo3 extension:setup (or Admin Tools > Maintenance > Analyze Database Structure).'],
            Schema::check('status', $output)['problems'],
        );
    }

    public function testALibraryThatWasCutOffIsNamedAndEndsNoCommand(): void
    {
        $folder = (string)realpath(sys_get_temp_dir()) . '/nrllm-' . bin2hex(random_bytes(6));
        mkdir($folder, 0700);
        try {
            // Any shared object of the project will do: the bridge refuses it before loading it.
            $whole = (string)file_get_contents((string)(getenv('NRLLM_FFI_LIBRARY') ?: getenv('NRLLM_MODULE')));
            file_put_contents($folder . '/library.so', substr($whole, 0, intdiv(strlen($whole), 2)));
            file_put_contents($folder . '/bridge.php', '<?php const NRLLM_RUNTIME_LIBRARY = ' . var_export($folder . '/library.so', true)
                . '; require_once ' . var_export(dirname(__DIR__, 3) . '/php-ffi/autoload.php', true) . ';');
            $this->db->stale();
            foreach (['nrllm:agent:status' => 1, 'nrllm:agent:reap' => 0, 'nrllm:agent:work' => 1] as $command => $expected) {
                [$code, $output, $errors] = Process::run(
                    ['-d', 'auto_prepend_file=' . $folder . '/bridge.php', dirname(__DIR__) . '/Support/console.php', $command],
                    [],
                    false,
                );
                self::assertSame($expected, $code, "$command: $output$errors");
                self::assertStringContainsString(
                    $command === 'nrllm:agent:reap' ? 'original reaper' : 'is refused, because it is not whole',
                    (string)preg_replace('/\s+/', ' ', $output . $errors),
                    $command,
                );
            }
        } finally {
            array_map('unlink', (array)glob($folder . '/*'));
            rmdir($folder);
        }
    }

    public function testFallbackNoneWithoutARuntimeIsUnhealthy(): void
    {
        $GLOBALS['TYPO3_CONF_VARS']['EXTENSIONS']['nrllm_runtime'] = ['fallback' => 'none'];
        [$code, $output] = Process::run([dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:status'], [], false);
        self::assertSame(1, $code, $output);
        self::assertStringContainsString(' error    path: No native runtime, and the extension setting "fallback" forbids nr_llm\'s own code: no '
            . 'run is executed or reaped.', $output);
        self::assertStringContainsString(' warning  keeper: No lease is kept in the background', $output);
    }

    public function testARuntimeThatRefusesItsSettingsIsUnhealthy(): void
    {
        $this->db->run(['tstamp' => time()]);
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default']['ssl_ca'] = '/nowhere/ca.pem';
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default']['driver'] = 'pdo_mysql';
        [$code, $output] = $this->ask(['--json' => true]);
        self::assertSame(1, $code, $output);
        $document = Schema::check('status', $output);
        self::assertSame([1, false], [$document['queued'], $document['healthy']]);
        self::assertStringStartsWith('The native runtime cannot be used: ', $document['problems'][0]);
    }

    public function testAHeartbeatThatGetsNoConnectionIsReported(): void
    {
        // One for TYPO3 and one for the runtime's calls.
        $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'] = $this->db->limited(2);
        $keeper = $this->checks(false)['keeper'];
        if (!self::hasProxies()) {
            self::assertStringContainsString('run repository is not overridden', $keeper['text']);
        } else {
            self::assertStringContainsString('the heartbeat\'s connection is refused', $keeper['text']);
        }
        self::assertSame('warning', $keeper['level']);
    }

    public function testAnUnknownTransportIsUnhealthy(): void
    {
        $this->db->configure(['transport' => 'doctrin']);
        [$code, $output] = $this->ask();
        self::assertSame(1, $code);
        self::assertStringContainsString("\n error    routing: The transport \"doctrin\" (extension setting \"transport\") is not registered", $output);
    }

    public function testVersionsAreKnownInClassicModeToo(): void
    {
        // Composer knows neither extension here, as in classic mode.
        $versions = Schema::check('status', $this->ask(['--json' => true])[1])['versions'];
        self::assertSame(['0.1.0', '0.33.0'], [$versions['package'], $versions['nr_llm']]);
    }

    public function testTheBackendShowsTheStatusWhereItsExtensionsAreInstalled(): void
    {
        $this->db->stale();
        $providers = $this->site()->get(StatusRegistry::class)->providers;
        self::assertCount(1, $providers);
        self::assertSame('Agent runs (nrllm_runtime)', $providers[0]->getLabel());
        $entries = $providers[0]->getStatus();
        self::assertSame(['Unhealthy', ContextualFeedbackSeverity::ERROR], [$entries['health']->value, $entries['health']->severity]);
        self::assertStringContainsString('1 running run(s) with an expired lease', $entries['health']->message);
        self::assertContains('Native runtime', array_map(static fn(object $entry): string => $entry->title, $entries));

        $widget = $this->site()->get(WidgetRegistry::class)->widgets['nrllm_runtime-agent-runs'];
        self::assertSame(['Live: 0', 'Stale (lease expired): 1', 'Queued: 0', 'Stranded (queued, no wake-up left): 0', 'Dead-lettered: 0',
            'Longest wait in the queue: nothing is queued'], $widget->dataProvider->getItems());
        self::assertSame('systemInfo', $widget->configuration->tag['groupNames']);
    }

    public function testWithoutTheBackendsExtensionsTheSiteStarts(): void
    {
        [$code, $output, $errors] = Process::run(
            [dirname(__DIR__) . '/Support/console.php', 'nrllm:agent:status'],
            ['NRLLM_TYPO3_BACKEND' => 'none'],
        );
        self::assertSame(0, $code, $output . $errors);
    }

    public function testTheTextAnswer(): void
    {
        $output = new Console();
        StatusCommand::print(
            new ConsoleMessages($output),
            [
                'counts' => ['queued' => 3, 'running' => 2, 'waiting_for_approval' => 1, 'waiting_for_input' => 4],
                'deadLetters' => ['retries_exhausted' => 2, 'not_retryable' => 1, 'cancelled' => 9],
                'expiredLeases' => 1, 'unleasedRunning' => 0, 'oldestLease' => 1, 'oldestQueuedSeconds' => 42, 'unknownQueueWait' => 0,
                'stranded' => null, 'clockSkewMs' => 12,
                'leaseKey' => true, 'server' => '10.11', 'isolation' => 'READ-COMMITTED', 'binlog' => null, 'liveWorkers' => 2, 'databaseProblem' => '',
            ],
            ['1 running run(s) with an expired lease: is nrllm:agent:reap called every minute?'],
            [['check' => 'path', 'level' => 'ok', 'text' => "Native\nruntime by extension."],
                ['check' => 'key', 'level' => 'warning', 'text' => 'No <error>key</error>.']],
            ['package' => '', 'runtime' => '0.1.0', 'server' => '10.11'],
        );
        self::assertSame(<<<'TEXT'

             queued           3 (the oldest waits for 42 s)
             running          2
             waiting          5
             dead-lettered    3
             expired leases   1
             without a lease  0
             stranded         unknown
             live workers     2
             clock skew       12 ms

             ok       path: Native runtime by extension.
             warning  key: No <error>key</error>.

             Versions: runtime 0.1.0, server 10.11

             [ERROR] 1 running run(s) with an expired lease: is nrllm:agent:reap called every minute?


            TEXT, $output->fetch());
    }

    /**
     * @param list<array{string, string, int}> $workers
     */
    private function workers(array $workers): void
    {
        $this->db->pdo->exec('CREATE TABLE tx_nrllm_worker_heartbeat (uid int unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, worker_id varchar(64) NOT NULL, transport varchar(64) NOT NULL, last_seen int unsigned NOT NULL)');
        foreach ($workers as $worker) {
            $this->db->pdo->prepare('INSERT INTO tx_nrllm_worker_heartbeat (worker_id, transport, last_seen) VALUES (?, ?, ?)')->execute($worker);
        }
    }

    /**
     * @return array<string, array{check: string, level: string, text: string}>
     */
    private function checks(bool $anew = true): array
    {
        if ($anew) {
            $this->site = null;
        }

        return array_column(json_decode($this->ask(['--json' => true])[1], true)['checks'], null, 'check');
    }

    /**
     * @param array<string, mixed> $input
     * @return array{int, string, string}
     */
    private function ask(array $input = [], int $verbosity = OutputInterface::VERBOSITY_NORMAL): array
    {
        return Console::call($this->command('nrllm:agent:status'), $input, $verbosity);
    }
}
