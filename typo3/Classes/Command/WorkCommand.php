<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Command;

use NrLlmRuntime\Typo3\Console\ConsoleMessages;
use NrLlmRuntime\Typo3\Console\Options;
use NrLlmRuntime\Typo3\Runtime\RuntimeLocator;
use NrLlmRuntime\Typo3\Repository\LeaseKeeper;
use Psr\Log\LoggerInterface;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;

/**
 * nrllm:agent:work: runs due runs one after the other, without a message bus. Many may run at once: the claim decides who has a run.
 */
final class WorkCommand extends Command
{
    public const DESCRIPTION = 'Run queued agent runs that are due, one after the other, without a message bus.';
    /** How long a run that could not be claimed, or whose execution threw, is left to others. */
    private const PAUSE_SECONDS = 60;
    private const LISTED = 10;
    /** How old a list may get, in seconds: what is requeued meanwhile has a backoff that the list does not know. */
    private const LIST_SECONDS = 1.0;

    private bool $stop = false;

    /**
     * @param \Closure(): object $runtime makes nr_llm's AgentRuntimeInterface
     */
    public function __construct(
        private readonly RuntimeLocator $locator,
        private readonly LeaseKeeper $keeper,
        private readonly LoggerInterface $logger,
        private readonly \Closure $runtime,
    ) {
        parent::__construct();
    }

    protected function configure(): void
    {
        $this->setDescription(self::DESCRIPTION)
            ->addOption('limit', 'l', InputOption::VALUE_REQUIRED, 'End after so many runs.')
            ->addOption('time-limit', 't', InputOption::VALUE_REQUIRED, 'End after so many seconds (the run under way is finished first).')
            ->addOption('memory-limit', 'm', InputOption::VALUE_REQUIRED, 'End when more memory is in use after a run, as 256M.')
            ->addOption('sleep', null, InputOption::VALUE_REQUIRED, 'Seconds to wait when nothing is due.', '1');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $messages = new ConsoleMessages($output);
        $limit = $this->given($input, 'limit', static fn(mixed $value): ?int => Options::integer($value, 1));
        $seconds = $this->given($input, 'time-limit', static fn(mixed $value): ?int => Options::integer($value, 1));
        $memory = $this->given($input, 'memory-limit', Options::bytes(...));
        $sleep = Options::integer($input->getOption('sleep'), 0);
        foreach (['limit' => $limit, 'time-limit' => $seconds] as $name => $value) {
            if ($value === null) {
                $messages->invalid(sprintf('The --%s option must be a positive integer.', $name));

                return self::INVALID;
            }
        }
        if ($memory === null || $sleep === null) {
            $messages->invalid($memory === null ? 'The --memory-limit option must be a size, as 256M.'
                : 'The --sleep option must be a number of seconds, 0 or more.');

            return self::INVALID;
        }
        if (!$this->locator->isAvailable()) {
            $messages->failure('nrllm:agent:work needs the native runtime. ' . implode(' ', $this->locator->reasons()));

            return self::FAILURE;
        }

        $restore = $this->listen();
        try {
            return $this->loop($messages, $limit, $seconds === 0 ? PHP_FLOAT_MAX : microtime(true) + $seconds, $memory, $sleep);
        } catch (\Throwable $error) {
            $this->logger->error('The worker ends: {reason}', ['reason' => $error->getMessage(), 'exception' => $error]);
            $messages->failure('The worker ends: ' . $error->getMessage());

            return self::FAILURE;
        } finally {
            $restore();
        }
    }

    private function loop(ConsoleMessages $messages, int $limit, float $deadline, int $memory, int $sleep): int
    {
        $native = $this->locator->runtime();
        $agents = ($this->runtime)();
        $done = 0;
        /** @var array<int, int> $paused run => until when it is left to others */
        $paused = [];
        while (!$this->stop && microtime(true) < $deadline) {
            $paused = array_filter($paused, static fn(int $until): bool => $until > time());
            // Runs that could not be claimed stay in the list, in front: asked for behind them.
            $list = $native->dueRuns(self::LISTED + count($paused));
            $listed = hrtime(true);
            foreach ($list as $due) {
                if ($this->stop || microtime(true) >= $deadline) {
                    break;
                }
                if (isset($paused[$due['uid']])) {
                    continue;
                }
                if (hrtime(true) - $listed > self::LIST_SECONDS * 1e9) {
                    continue 2;
                }
                $ran = $this->runOne($agents, $due, $messages);
                if (!$ran) {
                    // Another worker has it (then it leaves the list by itself), or it cannot run, as with a payload that does not decrypt.
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
                // A list is good for one execution: that may take minutes, and others claim and requeue runs of it meanwhile.
                continue 2;
            }
            // --sleep=0 too waits a moment: the database is not asked in a tight loop.
            $this->wait(min(max($sleep, 0.05), max(0.0, $deadline - microtime(true))));
        }
        $messages->success(sprintf('Ran %d agent run(s).', $done));

        return self::SUCCESS;
    }

    /**
     * @param array<string, mixed> $due
     * @return bool false: it was not ours to run
     */
    private function runOne(object $agents, array $due, ConsoleMessages $messages): bool
    {
        try {
            $result = $agents->runQueued($due['uuid']);
        } catch (\Throwable $error) {
            // nr_llm settles a run that fails; what gets out is nr_llm itself failing.
            $this->logger->error('Agent run {run} could not be run: {reason}',
                ['run' => $due['uid'], 'uuid' => $due['uuid'], 'reason' => $error->getMessage(), 'exception' => $error]);
            $messages->warning(sprintf('Run "%s" could not be run: %s', $due['uuid'], $error->getMessage()));

            return false;
        } finally {
            // Whatever nr_llm did, this process executes nothing now.
            $this->keeper->endAll();
        }
        $messages->line(sprintf('%-13s %s  uid %d, waited %d s', $result === null ? 'not claimed' : 'ran', $due['uuid'], $due['uid'],
            $due['queuedSeconds']), OutputInterface::VERBOSITY_VERBOSE);

        return $result !== null;
    }

    /**
     * @return \Closure(): void puts the signal handlers back
     */
    private function listen(): \Closure
    {
        $this->stop = false;
        if (!function_exists('pcntl_async_signals')) {
            return static function (): void {};
        }
        $async = pcntl_async_signals(true);
        $before = [];
        foreach ([SIGTERM, SIGINT] as $signal) {
            $before[$signal] = pcntl_signal_get_handler($signal);
            pcntl_signal($signal, function (): void {
                $this->stop = true;
            });
        }

        return static function () use ($before, $async): void {
            foreach ($before as $signal => $handler) {
                pcntl_signal($signal, $handler);
            }
            pcntl_async_signals($async);
        };
    }

    private function wait(float $seconds): void
    {
        // A signal ends usleep() early. Short pieces where signals cannot be listened to cost nothing that matters.
        for ($until = microtime(true) + $seconds; !$this->stop && ($left = $until - microtime(true)) > 0;) {
            usleep((int)(min($left, 1.0) * 1000000));
        }
    }

    /**
     * @param \Closure(mixed): ?int $read
     * @return int|null 0: not given; null: given wrongly
     */
    private function given(InputInterface $input, string $name, \Closure $read): ?int
    {
        $value = $input->getOption($name);

        return $value === null ? 0 : $read($value);
    }
}
