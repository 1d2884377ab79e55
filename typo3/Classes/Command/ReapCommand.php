<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Command;

use NrLlmRuntime\Typo3\Console\ConsoleMessages;
use NrLlmRuntime\Typo3\Console\Options;
use NrLlmRuntime\Typo3\Console\StopSignals;
use NrLlmRuntime\Typo3\Database\DatabaseConnections;
use NrLlmRuntime\Typo3\Database\DatabaseOutage;
use NrLlmRuntime\Typo3\Database\SchemaProblem;
use NrLlmRuntime\Typo3\Reap\NextExpiry;
use NrLlmRuntime\Typo3\Reap\Reaper;
use NrLlmRuntime\Typo3\Reap\ReapOptions;
use NrLlmRuntime\Typo3\Reap\ReapResult;
use NrLlmRuntime\Typo3\Runtime\RuntimeLocator;
use NrLlmRuntime\Typo3\Settings\RuntimeSettings;
use NrLlmRuntime\Typo3\WakeUp\WakeUps;
use Psr\Log\LoggerInterface;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Helper\ProgressBar;
use Symfony\Component\Console\Input\ArrayInput;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\NullOutput;
use Symfony\Component\Console\Output\OutputInterface;

/**
 * nrllm:agent:reap in place of nr_llm's own, with its options, its summary line and its exit codes.
 *
 * Without #[AsCommand]: with it and the tag of OverrideNrLlmServicesPass the command would have two
 * tags of one name, and TYPO3 would take the second for an alias and leave the command out of its
 * list.
 */
final class ReapCommand extends Command
{
    public const DESCRIPTION = 'Reclaim or dead-letter queued agent runs whose worker lease has expired.';
    private const SWEEP_INTERVAL_SECONDS = 60.0;
    private const HELP = <<<'TEXT'
        Reaps the agent runs of dead workers: runs in status <comment>running</comment> whose lease has expired are requeued, or
        dead-lettered where another attempt is not allowed. Call it once a minute, or keep it running with <comment>--watch</comment>.

        <comment>Examples</comment>

          Once a minute, by cron; also notifies workers of queued runs whose message was lost:
            <info>%command.full_name% -q --wake-stranded=600</info>
          Resident, under systemd or supervisor; a dead worker's run is queued within two seconds of its lease's expiry:
            <info>%command.full_name% --watch --wake-stranded=600 --time-limit=3600</info>
          What would be done:
            <info>%command.full_name% --dry-run -v</info>
          For programs (schema: Resources/Public/Schema/reap.schema.json):
            <info>%command.full_name% --format=json</info>
          The encryption key is gone for good, end the runs that can no longer be decrypted:
            <info>%command.full_name% --fail-unreadable</info>

        <comment>Exit codes</comment>

          0  done
          1  it could not do its work (database, message bus, transport, settings), or runs were left alone because their stored payload
             cannot be decrypted, or a wake-up could not be sent
          2  an option is wrong
        TEXT;

    /** How long the resident reaper leaves stale runs alone that the last tick could not handle. */
    private const RETRY_SECONDS = 10.0;
    /** Runs that the last tick left alone: they stay stale. */
    private int $leftAlone = 0;

    /**
     * @param \Closure(): Command $stock makes nr_llm's own command, for sites without the native
     *     runtime
     */
    public function __construct(
        private readonly RuntimeLocator $locator,
        private readonly RuntimeSettings $settings,
        private readonly Reaper $reaper,
        private readonly WakeUps $wakeUps,
        private readonly NextExpiry $nextExpiry,
        private readonly DatabaseConnections $connections,
        private readonly SchemaProblem $schema,
        private readonly LoggerInterface $logger,
        private readonly \Closure $stock,
    ) {
        parent::__construct();
    }

    protected function configure(): void
    {
        $this->setDescription(self::DESCRIPTION)
            ->setHelp(self::HELP)
            ->addOption('limit', 'l', InputOption::VALUE_REQUIRED, 'Maximum number of stale runs to handle in this run.', '50')
            ->addOption('dry-run', null, InputOption::VALUE_NONE, 'Report what would be done, and change nothing.')
            ->addOption('format', null, InputOption::VALUE_REQUIRED, 'text or json.', 'text')
            ->addOption(
                'wake-stranded',
                null,
                InputOption::VALUE_REQUIRED,
                'Also notify workers of queued runs of which none was notified for so many SECONDS.',
            )
            ->addOption(
                'fail-unreadable',
                null,
                InputOption::VALUE_NONE,
                'End stale and queued runs whose stored payload cannot be decrypted; their payload is erased.',
            )
            ->addOption('watch', 'w', InputOption::VALUE_NONE, 'Keep running, and act when the next lease expires.')
            ->addOption('time-limit', 't', InputOption::VALUE_REQUIRED, 'With --watch: end after so many seconds.')
            ->addOption('memory-limit', 'm', InputOption::VALUE_REQUIRED, 'With --watch: end when more memory is in use, as 128M.');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $messages = new ConsoleMessages($output);
        $limit = Options::integer($input->getOption('limit'), 1);
        $format = $input->getOption('format');
        $stranded = $input->getOption('wake-stranded');
        $wakeStranded = $stranded === null ? null : Options::integer($stranded, 0);
        $seconds = Options::given($input->getOption('time-limit'), static fn(mixed $value): ?int => Options::integer($value, 1));
        $memory = Options::given($input->getOption('memory-limit'), Options::bytes(...));
        $dryRun = (bool)$input->getOption('dry-run');
        $watch = (bool)$input->getOption('watch');
        $failUnreadable = (bool)$input->getOption('fail-unreadable');
        $invalid = match (true) {
            $limit === null => 'The --limit option must be a positive integer.',
            $format !== 'text' && $format !== 'json' => 'The --format option must be text or json.',
            $stranded !== null && $wakeStranded === null => 'The --wake-stranded option must be a number of seconds, 0 or more.',
            $dryRun && $wakeStranded !== null => 'The --wake-stranded option wakes runs; it cannot be used with --dry-run.',
            $dryRun && $watch => 'The --watch option cannot be used with --dry-run.',
            $dryRun && $failUnreadable => 'The --fail-unreadable option ends runs; it cannot be used with --dry-run.',
            $watch && $failUnreadable => 'The --fail-unreadable option is for one call; it cannot be used with --watch.',
            $seconds === null => 'The --time-limit option must be a positive integer.',
            $memory === null => 'The --memory-limit option must be a size, as 128M.',
            !$watch && ($seconds !== 0 || $memory !== 0) => 'The --time-limit and --memory-limit options need --watch.',
            default => '',
        };
        if ($invalid !== '') {
            $messages->invalid($invalid);

            return self::INVALID;
        }
        $options = new ReapOptions((int)$limit, $dryRun, $wakeStranded, $failUnreadable);
        $problems = $this->settings->problems(RuntimeSettings::OF_THE_REAPER);
        if ($problems !== []) {
            return $this->fails($messages, implode(' ', $problems));
        }
        if ($this->wakeUps->mode() === WakeUps::MISCONFIGURED) {
            return $this->fails($messages, $this->wakeUps->reason());
        }
        if (!$this->locator->isAvailable()) {
            $this->locator->logFallback();
            $reason = implode(' ', $this->locator->reasons());
            if ($dryRun || $format !== 'text' || $failUnreadable) {
                $messages->failure('--dry-run, --format=json and --fail-unreadable need the native runtime. ' . $reason);

                return self::FAILURE;
            }
            if ($this->settings->fallback() === RuntimeSettings::FALLBACK_NONE) {
                $messages->failure('The native runtime cannot be used, and the extension setting "fallback" forbids nr_llm\'s own reaper. '
                    . $reason);

                return self::FAILURE;
            }
            $messages->aside('nr_llm\'s own reaper runs. ' . $reason);
        } elseif (!$this->wakeUps->canBeSent()) {
            $messages->failure($this->wakeUps->reason());

            return self::FAILURE;
        }
        if ($this->wakeUps->mode() === WakeUps::SYNCHRONOUS && !$dryRun && $this->locator->isAvailable()) {
            $messages->aside($this->wakeUps->reason());
        }
        if ($watch) {
            return $this->watch($messages, $output, $options, (string)$format, (int)$seconds, (int)$memory);
        }
        $bar = $this->progressBar($messages, $output);
        try {
            return $this->tick($messages, $output, $options, (string)$format, $bar);
        } catch (\Throwable $error) {
            $bar?->clear();

            return $this->fails($messages, 'Stale agent runs could not be reaped: ' . $this->schema->explain($error), $error);
        }
    }

    /**
     * Prints the text answer. Public so that its wording can be tested without a database.
     */
    public static function print(ConsoleMessages $messages, ReapResult $result): void
    {
        $verbose = OutputInterface::VERBOSITY_VERBOSE;
        $messages->line('Wake-ups: ' . $result->wakeUps . '. ' . $result->wakeUpsReason, $verbose);
        $lists = ['requeued' => $result->requeued, 'dead-lettered' => $result->deadLettered, 'skipped' => $result->skipped];
        foreach ($lists as $what => $entries) {
            foreach ($entries as $entry) {
                $messages->line(self::entry($what, $entry), $verbose);
            }
        }
        foreach ($result->woken as $entry) {
            $messages->line(
                sprintf('%-13s %s  uid %d, queued for %d s', 'woken', $entry['uuid'], $entry['uid'], $entry['queuedSeconds']),
                $verbose,
            );
        }
        foreach ($result->undispatched as $entry) {
            $messages->warning(sprintf(
                $entry['settled']
                    ? 'Run "%s" was reclaimed but its wake-up could not be dispatched; settled failed to avoid an orphan: %s'
                    : 'The wake-up of run "%s" could not be dispatched; the run stays queued for the next sweep: %s',
                $entry['uuid'],
                $entry['problem'],
            ));
        }
        foreach ($result->leftAlone as $entry) {
            $messages->warning(sprintf('Run "%s" (uid %d) was left alone: its %s.', $entry['uuid'], $entry['uid'], $entry['problem']));
        }
        foreach ($result->failedUnreadable as $entry) {
            $messages->warning(sprintf('Run "%s" (uid %d) was ended as failed: its %s.', $entry['uuid'], $entry['uid'], $entry['problem']));
        }
        if ($result->sweptStranded) {
            $messages->line(sprintf(' Woke %d stranded run(s).', count($result->woken)));
        }
        if ($result->hasMore) {
            $messages->line(' More stale runs are waiting for the next call.', $verbose);
        }
        $messages->success(($result->dryRun ? 'Dry run, nothing was changed: ' : '') . $result->summary());
    }

    /**
     * @param array<string, mixed> $entry
     */
    private static function entry(string $what, array $entry): string
    {
        return sprintf(
            '%-13s %s  uid %d, requeued %d time(s), was %s until %s%s%s',
            $what,
            $entry['uuid'],
            $entry['uid'],
            $entry['requeueCount'],
            $entry['claimedBy'] === '' ? '(no owner)' : ConsoleMessages::flat($entry['claimedBy']),
            gmdate('Y-m-d H:i:s', $entry['leaseExpires']) . ' UTC',
            $entry['reason'] === null ? '' : ': ' . $entry['reason'],
            $entry['confirmed'] ? ' (confirmed after a lost reply)' : '',
        );
    }

    /**
     * One call of the reaper: the runtime's, else nr_llm's.
     *
     * @throws \Throwable where neither can do its work
     */
    private function tick(
        ConsoleMessages $messages,
        OutputInterface $output,
        ReapOptions $options,
        string $format,
        ?ProgressBar $bar = null,
        bool $silentWhenEmpty = false,
    ): int {
        if (!$this->locator->isAvailable()) {
            return $this->stockTick($messages, $output, $options, $silentWhenEmpty);
        }
        try {
            $result = $this->reaper->tick($options, $bar === null ? null : $bar->advance(...));
        } catch (\NrLlmConnectionException $error) {
            if ($options->dryRun || $format !== 'text' || !$this->mayFallBack()) {
                throw $error;
            }
            $bar?->clear();
            $this->logger->error(
                'The native runtime cannot connect, nr_llm\'s own reaper runs: {reason}',
                ['reason' => $error->getMessage(), 'exception' => $error],
            );
            $messages->aside('The native runtime cannot connect, nr_llm\'s own reaper runs: ' . $error->getMessage());

            return $this->stockTick($messages, $output, $options, $silentWhenEmpty);
        }
        $this->leftAlone = count($result->leftAlone);
        $bar?->finish();
        $bar?->clear();
        if ($silentWhenEmpty && $result->isEmpty()) {
            return self::SUCCESS;
        }
        if ($format === 'json') {
            $messages->raw($silentWhenEmpty ? ConsoleMessages::jsonLine($result) : ConsoleMessages::json($result));
        } else {
            self::print($messages, $result);
        }
        if ($result->leftAlone !== []) {
            $messages->failureSummary(sprintf('%d run(s) were left alone: their stored payload cannot be decrypted. Restore the encryption '
                . 'key (nr_vault), or end them by nrllm:agent:reap --fail-unreadable.', count($result->leftAlone)));
        }
        if ($result->undispatched !== []) {
            $messages->failureSummary(sprintf(
                '%d wake-up(s) could not be sent: %s',
                count($result->undispatched),
                $result->undispatched[0]['problem'],
            ));
        }

        return $result->isSuccess() ? self::SUCCESS : self::FAILURE;
    }

    /**
     * nr_llm's own reaper, and the sweep over TYPO3's connection.
     *
     * @throws \Throwable where the database cannot be used, which nr_llm's own reaper reports as "0
     *     stale runs"
     */
    private function stockTick(ConsoleMessages $messages, OutputInterface $output, ReapOptions $options, bool $quietly): int
    {
        $this->connections->reviveAll();
        // A new input: the bound one holds the command's name, which the original does not expect.
        $input = new ArrayInput(['--limit' => (string)$options->limit]);
        $input->setInteractive(false);
        $code = ($this->stock)()->run($input, $quietly ? new NullOutput() : $output);
        if ($options->wakeStranded === null) {
            return $code;
        }
        $result = $this->reaper->sweepWithoutRuntime($options->wakeStranded, $options->limit);
        if (!$quietly || $result->woken !== []) {
            $messages->line(sprintf(' Woke %d stranded run(s).', count($result->woken)));
        }
        if ($result->undispatched !== []) {
            $messages->failure(sprintf(
                '%d wake-up(s) could not be sent: %s',
                count($result->undispatched),
                $result->undispatched[0]['problem'],
            ));
        }

        return $result->isSuccess() ? $code : self::FAILURE;
    }

    /**
     * Returns whether nr_llm's own reaper may run although the runtime is there: nothing was
     * written, and TYPO3's connection works.
     */
    private function mayFallBack(): bool
    {
        if ($this->reaper->hasWritten() || $this->settings->fallback() !== RuntimeSettings::FALLBACK_PHP) {
            return false;
        }
        try {
            $this->connections->reviveAll();

            return true;
        } catch (\Throwable) {
            return false;
        }
    }

    /**
     * The resident reaper. It ends by a signal or a limit; a database that cannot be reached is
     * waited for.
     */
    private function watch(
        ConsoleMessages $messages,
        OutputInterface $output,
        ReapOptions $options,
        string $format,
        int $timeLimit,
        int $memoryLimit,
    ): int {
        $signals = new StopSignals();
        $signals->listen();
        $outage = new DatabaseOutage('nrllm:agent:reap', $messages, $this->logger);
        $deadline = $timeLimit === 0 ? PHP_FLOAT_MAX : microtime(true) + $timeLimit;
        $nextSweep = $nextRetry = 0.0;
        $code = self::SUCCESS;
        try {
            while (!$signals->isReceived() && microtime(true) < $deadline) {
                try {
                    $this->connections->reviveAll();
                    $now = hrtime(true) / 1e9;
                    $sweeps = $options->wakeStranded !== null && $now >= $nextSweep;
                    $next = $this->nextExpiry->look();
                    if ($sweeps || $next['stale'] > $this->leftAlone || ($next['stale'] > 0 && $now >= $nextRetry)) {
                        $nextSweep = $sweeps ? $now + self::SWEEP_INTERVAL_SECONDS : $nextSweep;
                        $nextRetry = $now + self::RETRY_SECONDS;
                        $code = $this->tick($messages, $output, $sweeps ? $options : $options->betweenSweeps(), $format, null, true);
                    }
                    $pause = $next['seconds'];
                    $outage->over();
                } catch (\Throwable $error) {
                    if (!DatabaseOutage::is($error)) {
                        throw $error;
                    }
                    $pause = $outage->pause($error);
                }
                if ($memoryLimit !== 0 && memory_get_usage(true) > $memoryLimit) {
                    $messages->line(sprintf('Ends: %d bytes of memory in use.', memory_get_usage(true)), OutputInterface::VERBOSITY_VERBOSE);
                    break;
                }
                $signals->wait(min($pause, max(0.0, $deadline - microtime(true))));
            }
        } catch (\Throwable $error) {
            return $this->fails($messages, 'The reaper ends: ' . $this->schema->explain($error), $error);
        } finally {
            $signals->restore();
        }
        $messages->line('The reaper ends.', OutputInterface::VERBOSITY_VERBOSE);

        return $outage->isOn() ? self::FAILURE : $code;
    }

    private function fails(ConsoleMessages $messages, string $text, ?\Throwable $error = null): int
    {
        $this->logger->error('{text}', ['text' => $text] + ($error === null ? [] : ['exception' => $error]));
        $messages->failure($text);

        return self::FAILURE;
    }

    private function progressBar(ConsoleMessages $messages, OutputInterface $output): ?ProgressBar
    {
        $errors = $messages->errors();
        // On a terminal only: in a log every redraw would be a line.
        if ($errors === $output || !$errors->isDecorated() || $output->getVerbosity() < OutputInterface::VERBOSITY_NORMAL) {
            return null;
        }
        $bar = new ProgressBar($errors);
        $bar->setFormat(' reaping, %current% run(s) so far, %elapsed%');
        $bar->start();

        return $bar;
    }
}
