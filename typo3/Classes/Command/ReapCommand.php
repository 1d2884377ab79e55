<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Command;

use NrLlmRuntime\Typo3\Console\ConsoleMessages;
use NrLlmRuntime\Typo3\Console\Options;
use NrLlmRuntime\Typo3\Runtime\RuntimeLocator;
use NrLlmRuntime\Typo3\Reap\Reaper;
use NrLlmRuntime\Typo3\Reap\ReapResult;
use NrLlmRuntime\Typo3\Settings\RuntimeSettings;
use NrLlmRuntime\Typo3\WakeUp\WakeUps;
use Psr\Log\LoggerInterface;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Helper\ProgressBar;
use Symfony\Component\Console\Input\ArrayInput;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;

/**
 * nrllm:agent:reap in the place of nr_llm's own, with its options, its summary line and its exit codes.
 *
 * Without #[AsCommand]: with it and the tag of OverrideNrLlmServicesPass the command would have two tags of one name, and TYPO3 would take the second
 * for an alias and leave the command out of its list.
 */
final class ReapCommand extends Command
{
    public const DESCRIPTION = 'Reclaim or dead-letter queued agent runs whose worker lease has expired.';

    /**
     * @param \Closure(): Command $stock makes nr_llm's own command, for sites without the native runtime
     */
    public function __construct(
        private readonly RuntimeLocator $locator,
        private readonly RuntimeSettings $settings,
        private readonly Reaper $reaper,
        private readonly WakeUps $wakeUps,
        private readonly LoggerInterface $logger,
        private readonly \Closure $stock,
    ) {
        parent::__construct();
    }

    protected function configure(): void
    {
        $this->setDescription(self::DESCRIPTION)
            ->addOption('limit', 'l', InputOption::VALUE_REQUIRED, 'Maximum number of stale runs to handle in this run.', '50')
            ->addOption('dry-run', null, InputOption::VALUE_NONE, 'Say what would be done, and change nothing.')
            ->addOption('format', null, InputOption::VALUE_REQUIRED, 'text or json.', 'text')
            ->addOption('wake-stranded', null, InputOption::VALUE_REQUIRED, 'Also wake queued runs that nothing woke for so many SECONDS.');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $messages = new ConsoleMessages($output);
        $limit = Options::integer($input->getOption('limit'), 1);
        $format = $input->getOption('format');
        $stranded = $input->getOption('wake-stranded');
        $wakeStranded = $stranded === null ? null : Options::integer($stranded, 0);
        $dryRun = (bool)$input->getOption('dry-run');
        if ($limit === null) {
            $messages->invalid('The --limit option must be a positive integer.');

            return self::INVALID;
        }
        if ($format !== 'text' && $format !== 'json') {
            $messages->invalid('The --format option must be text or json.');

            return self::INVALID;
        }
        if ($stranded !== null && $wakeStranded === null) {
            $messages->invalid('The --wake-stranded option must be a number of seconds, 0 or more.');

            return self::INVALID;
        }
        if ($dryRun && $wakeStranded !== null) {
            $messages->invalid('The --wake-stranded option wakes runs; it cannot be used with --dry-run.');

            return self::INVALID;
        }
        if (!$this->locator->isAvailable()) {
            return $this->withoutRuntime($messages, $output, $limit, $dryRun || $format !== 'text' || $wakeStranded !== null);
        }

        $bar = $this->progressBar($messages, $output, $limit);
        try {
            if ($this->wakeUps->mode() === WakeUps::NONE) {
                $messages->failure($this->wakeUps->reason());

                return self::FAILURE;
            }
            if ($this->wakeUps->mode() === WakeUps::SYNCHRONOUS && !$dryRun) {
                $messages->aside($this->wakeUps->reason());
            }
            $result = $this->reaper->tick($limit, $dryRun, $wakeStranded, $bar === null ? null : $bar->advance(...));
        } catch (\Throwable $error) {
            $bar?->clear();
            $this->logger->error('Stale agent runs could not be reaped: {reason}',
                ['reason' => $error->getMessage(), 'exception' => $error]);
            $messages->failure('Stale agent runs could not be reaped: ' . $error->getMessage());

            return self::FAILURE;
        }
        $bar?->finish();
        $bar?->clear();
        if ($format === 'json') {
            $messages->raw(ConsoleMessages::json($result));
        } else {
            self::print($messages, $result);
        }

        return $result->leftAlone === [] ? self::SUCCESS : self::FAILURE;
    }

    /**
     * The text answer. Public so that its wording can be tested without a database.
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
            $messages->line(sprintf('%-13s %s  uid %d, queued for %d s', 'woken', $entry['uuid'], $entry['uid'], $entry['queuedSeconds']),
                $verbose);
        }
        foreach ($result->undispatched as $entry) {
            $messages->warning(sprintf(
                $entry['settled']
                    ? 'Run "%s" was reclaimed but its wake-up could not be dispatched; settled failed to avoid an orphan: %s'
                    : 'The wake-up of run "%s" could not be dispatched, and the run was not settled: %s',
                $entry['uuid'],
                $entry['problem'],
            ));
        }
        foreach ($result->leftAlone as $entry) {
            $messages->warning(sprintf('Run "%s" (uid %d) was left alone: its %s.', $entry['uuid'], $entry['uid'], $entry['problem']));
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
            $entry['claimedBy'] === '' ? '(nobody)' : ConsoleMessages::flat($entry['claimedBy']),
            gmdate('Y-m-d H:i:s', $entry['leaseExpires']) . ' UTC',
            $entry['reason'] === null ? '' : ': ' . $entry['reason'],
            $entry['confirmed'] ? ' (confirmed after a lost reply)' : '',
        );
    }

    private function withoutRuntime(ConsoleMessages $messages, OutputInterface $output, int $limit, bool $needsRuntime): int
    {
        $this->locator->logFallback();
        $reason = implode(' ', $this->locator->reasons());
        if ($needsRuntime) {
            $messages->failure('--dry-run, --format=json and --wake-stranded need the native runtime. ' . $reason);

            return self::FAILURE;
        }
        if ($this->settings->fallback() === RuntimeSettings::FALLBACK_NONE) {
            $messages->failure('The native runtime cannot be used, and the extension setting "fallback" forbids nr_llm\'s own reaper. '
                . $reason);

            return self::FAILURE;
        }
        $messages->aside('nr_llm\'s own reaper runs. ' . $reason);
        // A new input: the bound one holds the command's name, which the original does not expect.
        $input = new ArrayInput(['--limit' => (string)$limit]);
        $input->setInteractive(false);

        return ($this->stock)()->run($input, $output);
    }

    private function progressBar(ConsoleMessages $messages, OutputInterface $output, int $limit): ?ProgressBar
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
