<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Command;

use NrLlmRuntime\Typo3\Console\Lines;
use NrLlmRuntime\Typo3\Console\Options;
use NrLlmRuntime\Typo3\Door\Door;
use NrLlmRuntime\Typo3\Reap\Reaper;
use NrLlmRuntime\Typo3\Reap\Tally;
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
 * Without #[AsCommand]: with it and the tag of TakeoverPass the command would have two tags of one name, and TYPO3 would take the second
 * for an alias and leave the command out of its list.
 */
final class ReapCommand extends Command
{
    public const DESCRIPTION = 'Reclaim or dead-letter queued agent runs whose worker lease has expired.';

    /**
     * @param \Closure(): Command $stock makes nr_llm's own command, for sites without the native runtime
     */
    public function __construct(
        private readonly Door $door,
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
        $lines = new Lines($output);
        $limit = Options::integer($input->getOption('limit'), 1);
        $format = $input->getOption('format');
        $stranded = $input->getOption('wake-stranded');
        $wakeStranded = $stranded === null ? null : Options::integer($stranded, 0);
        $dryRun = (bool)$input->getOption('dry-run');
        if ($limit === null) {
            $lines->invalid('The --limit option must be a positive integer.');

            return self::INVALID;
        }
        if ($format !== 'text' && $format !== 'json') {
            $lines->invalid('The --format option must be text or json.');

            return self::INVALID;
        }
        if ($stranded !== null && $wakeStranded === null) {
            $lines->invalid('The --wake-stranded option must be a number of seconds, 0 or more.');

            return self::INVALID;
        }
        if ($dryRun && $wakeStranded !== null) {
            $lines->invalid('The --wake-stranded option wakes runs; it cannot be used with --dry-run.');

            return self::INVALID;
        }
        if (!$this->door->isOpen()) {
            return $this->withoutRuntime($lines, $output, $limit, $dryRun || $format !== 'text' || $wakeStranded !== null);
        }

        $bar = $this->progressBar($lines, $output, $limit);
        try {
            if ($this->wakeUps->mode() === WakeUps::NONE) {
                $lines->failure($this->wakeUps->reason());

                return self::FAILURE;
            }
            if ($this->wakeUps->mode() === WakeUps::SYNCHRONOUS && !$dryRun) {
                $lines->aside($this->wakeUps->reason());
            }
            $tally = $this->reaper->tick($limit, $dryRun, $wakeStranded, $bar === null ? null : $bar->advance(...));
        } catch (\Throwable $error) {
            $bar?->clear();
            $this->logger->error('Stale agent runs could not be reaped: {reason}',
                ['reason' => $error->getMessage(), 'exception' => $error]);
            $lines->failure('Stale agent runs could not be reaped: ' . $error->getMessage());

            return self::FAILURE;
        }
        $bar?->finish();
        $bar?->clear();
        if ($format === 'json') {
            $lines->raw(Lines::json($tally));
        } else {
            self::print($lines, $tally);
        }

        return $tally->leftAlone === [] ? self::SUCCESS : self::FAILURE;
    }

    /**
     * The text answer. Public so that its wording can be tested without a database.
     */
    public static function print(Lines $lines, Tally $tally): void
    {
        $verbose = OutputInterface::VERBOSITY_VERBOSE;
        $lines->line('Wake-ups: ' . $tally->wakeUps . '. ' . $tally->wakeUpsReason, $verbose);
        $lists = ['requeued' => $tally->requeued, 'dead-lettered' => $tally->deadLettered, 'skipped' => $tally->skipped];
        foreach ($lists as $what => $entries) {
            foreach ($entries as $entry) {
                $lines->line(self::entry($what, $entry), $verbose);
            }
        }
        foreach ($tally->woken as $entry) {
            $lines->line(sprintf('%-13s %s  uid %d, queued for %d s', 'woken', $entry['uuid'], $entry['uid'], $entry['queuedSeconds']),
                $verbose);
        }
        foreach ($tally->undispatched as $entry) {
            $lines->warning(sprintf(
                $entry['settled']
                    ? 'Run "%s" was reclaimed but its wake-up could not be dispatched; settled failed to avoid an orphan: %s'
                    : 'The wake-up of run "%s" could not be dispatched, and the run was not settled: %s',
                $entry['uuid'],
                $entry['problem'],
            ));
        }
        foreach ($tally->leftAlone as $entry) {
            $lines->warning(sprintf('Run "%s" (uid %d) was left alone: its %s.', $entry['uuid'], $entry['uid'], $entry['problem']));
        }
        if ($tally->sweptStranded) {
            $lines->line(sprintf(' Woke %d stranded run(s).', count($tally->woken)));
        }
        if ($tally->hasMore) {
            $lines->line(' More stale runs are waiting for the next call.', $verbose);
        }
        $lines->success(($tally->dryRun ? 'Dry run, nothing was changed: ' : '') . $tally->summary());
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
            $entry['claimedBy'] === '' ? '(nobody)' : Lines::flat($entry['claimedBy']),
            gmdate('Y-m-d H:i:s', $entry['leaseExpires']) . ' UTC',
            $entry['reason'] === null ? '' : ': ' . $entry['reason'],
            $entry['confirmed'] ? ' (confirmed after a lost reply)' : '',
        );
    }

    private function withoutRuntime(Lines $lines, OutputInterface $output, int $limit, bool $needsRuntime): int
    {
        $this->door->sayClosed();
        $reason = implode(' ', $this->door->reasons());
        if ($needsRuntime) {
            $lines->failure('--dry-run, --format=json and --wake-stranded need the native runtime. ' . $reason);

            return self::FAILURE;
        }
        if ($this->settings->fallback() === RuntimeSettings::FALLBACK_NONE) {
            $lines->failure('The native runtime cannot be used, and the extension setting "fallback" forbids nr_llm\'s own reaper. '
                . $reason);

            return self::FAILURE;
        }
        $lines->aside('nr_llm\'s own reaper runs. ' . $reason);
        // A new input: the bound one holds the command's name, which the original does not expect.
        $input = new ArrayInput(['--limit' => (string)$limit]);
        $input->setInteractive(false);

        return ($this->stock)()->run($input, $output);
    }

    private function progressBar(Lines $lines, OutputInterface $output, int $limit): ?ProgressBar
    {
        $errors = $lines->errors();
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
