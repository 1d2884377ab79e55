<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Command;

use NrLlmRuntime\Typo3\Console\ConsoleMessages;
use NrLlmRuntime\Typo3\Console\Options;
use NrLlmRuntime\Typo3\Console\StopSignals;
use NrLlmRuntime\Typo3\Database\DatabaseConnections;
use NrLlmRuntime\Typo3\Database\DatabaseOutage;
use NrLlmRuntime\Typo3\Database\SchemaProblem;
use NrLlmRuntime\Typo3\Reap\PayloadCheck;
use NrLlmRuntime\Typo3\Repository\LeaseKeeper;
use NrLlmRuntime\Typo3\Repository\UnhandledRuns;
use NrLlmRuntime\Typo3\Runtime\RuntimeLocator;
use NrLlmRuntime\Typo3\Settings\RuntimeSettings;
use NrLlmRuntime\Typo3\Work\DrainGuard;
use Psr\Log\LoggerInterface;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;

/**
 * nrllm:agent:work: runs due runs one after the other, without a message bus. Many may run at once:
 * the claim decides who has a run.
 */
final class WorkCommand extends Command
{
    public const DESCRIPTION = 'Run queued agent runs that are due, one after the other, without a message bus.';
    /**
     * How long a run that could not be claimed, or whose execution threw, is left to other workers.
     */
    private const PAUSE_SECONDS = 60;
    private const LISTED = 10;
    /**
     * The age that a list may have, in seconds: what is requeued meanwhile has a backoff that the
     * list does not know.
     */
    private const LIST_SECONDS = 1.0;
    private const HELP = <<<'TEXT'
        Takes due runs from the run table and executes them, one after the other. It needs no message bus. Many workers may run at once, on
        many hosts. A database that cannot be reached is waited for, however long that takes.

        <comment>Examples</comment>

          Under systemd or supervisor:
            <info>%command.full_name% --time-limit=3600 --memory-limit=256M --drain=25</info>
          Execute what is due now, at most ten runs:
            <info>%command.full_name% --limit=10 --time-limit=60 -v</info>

        <comment>Signals</comment>

          SIGTERM and SIGINT end the worker after the run under way. With <comment>--drain=SECONDS</comment> that run has so many seconds to end; then
          it is handed back to the queue, without using up one of its retries, and another worker starts it again.

        <comment>Exit codes</comment>

          0  ended by a signal or a limit
          1  it could not work: no native runtime, a wrong setting, an account or a table that the database refuses
          2  an option is wrong
        TEXT;

    /**
     * @param \Closure(): object $runtime makes nr_llm's AgentRuntimeInterface
     */
    public function __construct(
        private readonly RuntimeLocator $locator,
        private readonly RuntimeSettings $settings,
        private readonly LeaseKeeper $keeper,
        private readonly UnhandledRuns $unhandled,
        private readonly PayloadCheck $payloads,
        private readonly DatabaseConnections $connections,
        private readonly SchemaProblem $schema,
        private readonly DrainGuard $drain,
        private readonly LoggerInterface $logger,
        private readonly \Closure $runtime,
    ) {
        parent::__construct();
    }

    protected function configure(): void
    {
        $this->setDescription(self::DESCRIPTION)
            ->setHelp(self::HELP)
            ->addOption('limit', 'l', InputOption::VALUE_REQUIRED, 'End after so many runs.')
            ->addOption('time-limit', 't', InputOption::VALUE_REQUIRED, 'End after so many seconds (the run under way is finished first).')
            ->addOption('memory-limit', 'm', InputOption::VALUE_REQUIRED, 'End when more memory is in use after a run, as 256M.')
            ->addOption('sleep', null, InputOption::VALUE_REQUIRED, 'Seconds to wait when nothing is due.', '1')
            ->addOption(
                'drain',
                'd',
                InputOption::VALUE_REQUIRED,
                'Hand the run under way back to the queue so many SECONDS after SIGTERM or SIGINT.',
            );
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $messages = new ConsoleMessages($output);
        $limit = Options::given($input->getOption('limit'), static fn(mixed $value): ?int => Options::integer($value, 1));
        $seconds = Options::given($input->getOption('time-limit'), static fn(mixed $value): ?int => Options::integer($value, 1));
        $memory = Options::given($input->getOption('memory-limit'), Options::bytes(...));
        $sleep = Options::integer($input->getOption('sleep'), 0);
        $drain = $input->getOption('drain') === null ? -1 : Options::integer($input->getOption('drain'), 0);
        $invalid = match (true) {
            $limit === null => 'The --limit option must be a positive integer.',
            $seconds === null => 'The --time-limit option must be a positive integer.',
            $memory === null => 'The --memory-limit option must be a size, as 256M.',
            $sleep === null => 'The --sleep option must be a number of seconds, 0 or more.',
            $drain === null => 'The --drain option must be a number of seconds, 0 or more.',
            $drain >= 0 && !DrainGuard::isSupported() => 'The --drain option needs PHP\'s extensions pcntl and posix.',
            default => '',
        };
        if ($invalid !== '') {
            $messages->invalid($invalid);

            return self::INVALID;
        }
        $problems = $this->settings->problems();
        if ($problems !== []) {
            return $this->fails($messages, implode(' ', $problems));
        }
        if (!$this->locator->isAvailable()) {
            $messages->failure('nrllm:agent:work needs the native runtime. ' . implode(' ', $this->locator->reasons()));

            return self::FAILURE;
        }
        if ($drain >= 0 && !method_exists(\NrLlmRuntime::class, 'handBack')) {
            $messages->failure('The --drain option needs a release of the native runtime that can hand runs back; this is '
                . $this->locator->version() . '.');

            return self::FAILURE;
        }
        if ($drain >= 0) {
            // The process that returns here is the one that works; the other one watches it and has
            // ended it.
            $code = $this->drain->split((int)$drain, $messages);
            if ($code !== null) {
                return $code;
            }
        }
        $signals = new StopSignals();
        $signals->listen();
        try {
            return $this->loop(
                $messages,
                $signals,
                (int)$limit,
                $seconds === 0 ? PHP_FLOAT_MAX : microtime(true) + $seconds,
                (int)$memory,
                (int)$sleep,
            );
        } catch (\Throwable $error) {
            return $this->fails($messages, 'The worker ends: ' . $this->schema->explain($error), $error);
        } finally {
            $signals->restore();
        }
    }

    private function loop(
        ConsoleMessages $messages,
        StopSignals $signals,
        int $limit,
        float $deadline,
        int $memory,
        int $sleep,
    ): int {
        $native = $this->locator->runtime();
        $agents = null;
        $outage = new DatabaseOutage('nrllm:agent:work', $messages, $this->logger);
        $done = 0;
        /** @var array<int, int> $paused run => until when it is left to other workers */
        $paused = [];
        while (!$signals->isReceived() && microtime(true) < $deadline && !$this->drain->isAbandoned()) {
            $paused = array_filter($paused, static fn(int $until): bool => $until > time());
            try {
                // Runs that could not be claimed stay in the list, in front: the list is longer by
                // their number.
                $list = $native->dueRuns(self::LISTED + count($paused));
                $listed = hrtime(true);
                if ($list !== []) {
                    $this->connections->reviveAll();
                }
                // nr_llm's services may ask the database when they are made.
                $agents ??= ($this->runtime)();
                $outage->over();
            } catch (\Throwable $error) {
                if (!DatabaseOutage::is($error)) {
                    throw $error;
                }
                $signals->wait(min($outage->pause($error), max(0.0, $deadline - microtime(true))));
                continue;
            }
            foreach ($list as $due) {
                if ($signals->isReceived() || microtime(true) >= $deadline) {
                    break;
                }
                if (isset($paused[$due['uid']])) {
                    continue;
                }
                if (hrtime(true) - $listed > self::LIST_SECONDS * 1e9) {
                    continue 2;
                }
                if (!$this->runOne($agents, $native, $due, $messages)) {
                    // Another worker has it (then it leaves the list by itself), or it cannot run,
                    // as with a payload that does not decrypt.
                    $paused[$due['uid']] = time() + self::PAUSE_SECONDS;
                    continue;
                }
                $done++;
                if ($limit !== 0 && $done >= $limit) {
                    break 2;
                }
                if ($memory !== 0 && memory_get_usage(true) > $memory) {
                    $messages->line(sprintf('Ends: %d bytes of memory in use.', memory_get_usage(true)), OutputInterface::VERBOSITY_VERBOSE);
                    break 2;
                }
                // A list is good for one execution: that may take minutes, and other workers claim
                // and requeue runs of it meanwhile.
                continue 2;
            }
            // --sleep=0 waits a moment too: the database is not asked in a tight loop.
            $signals->wait(min(max($sleep, 0.05), max(0.0, $deadline - microtime(true))));
        }
        $messages->success(sprintf('Ran %d agent run(s).', $done));

        return $outage->isOn() && !$signals->isReceived() ? self::FAILURE : self::SUCCESS;
    }

    /**
     * @param \NrLlmRuntime        $native
     * @param array<string, mixed> $due
     * @return bool false: this worker did not run it
     */
    private function runOne(object $agents, object $native, array $due, ConsoleMessages $messages): bool
    {
        $this->unhandled->clear();
        try {
            $result = $agents->runQueued($due['uuid']);
        } catch (\Throwable $error) {
            // nr_llm settles a run that fails; an exception that gets here is an error of nr_llm
            // itself.
            $this->logger->error(
                'Agent run {run} could not be run: {reason}',
                ['run' => $due['uid'], 'uuid' => $due['uuid'], 'reason' => $error->getMessage(), 'exception' => $error],
            );
            $messages->warning(sprintf('Run "%s" could not be run: %s', $due['uuid'], $error->getMessage()));

            return false;
        } finally {
            // Whatever nr_llm did, this process executes no run now.
            $this->keeper->endAll();
        }
        if ($result === null) {
            $this->reportNotClaimed($native, $due, $messages);
        }
        $messages->line(sprintf(
            '%-13s %s  uid %d, waited %d s',
            $result === null ? 'not claimed' : 'ran',
            $due['uuid'],
            $due['uid'],
            $due['queuedSeconds'],
        ), OutputInterface::VERBOSITY_VERBOSE);

        return $result !== null;
    }

    /**
     * nr_llm reports an error and "another worker has it" alike. A run that is still queued was not
     * claimed by another worker.
     *
     * @param \NrLlmRuntime        $native
     * @param array<string, mixed> $due
     */
    private function reportNotClaimed(object $native, array $due, ConsoleMessages $messages): void
    {
        try {
            $reason = implode(' ', $this->unhandled->take());
            if ($reason === '' && !in_array($native->leaseState($due['uid'], 'none'), ['requeued'], true)) {
                return;
            }
            $payload = $reason === '' ? $this->payloads->problem($due['uid']) : '';
        } catch (\Throwable $error) {
            [$reason, $payload] = [$error->getMessage(), ''];
        }
        if ($payload !== '') {
            $reason = 'its ' . $payload . ' (nrllm:agent:reap --fail-unreadable ends such runs)';
        } elseif ($reason === '') {
            $reason = 'nr_llm did not claim it; its log says why';
        }
        $this->logger->warning(
            'Agent run {run} is still queued: {reason}. It is tried again in {seconds} s',
            ['run' => $due['uid'], 'uuid' => $due['uuid'], 'reason' => $reason, 'seconds' => self::PAUSE_SECONDS],
        );
        $messages->warning(sprintf(
            'Run "%s" (uid %d) is still queued: %s. It is tried again in %d s.',
            $due['uuid'],
            $due['uid'],
            $reason,
            self::PAUSE_SECONDS,
        ));
    }

    private function fails(ConsoleMessages $messages, string $text, ?\Throwable $error = null): int
    {
        $this->logger->error('{text}', ['text' => $text] + ($error === null ? [] : ['exception' => $error]));
        $messages->failure($text);

        return self::FAILURE;
    }
}
