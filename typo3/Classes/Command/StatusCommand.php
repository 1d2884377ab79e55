<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Command;

use NrLlmRuntime\Typo3\Console\ConsoleMessages;
use NrLlmRuntime\Typo3\Console\Options;
use NrLlmRuntime\Typo3\Runtime\RuntimeLocator;
use NrLlmRuntime\Typo3\Status\Health;
use NrLlmRuntime\Typo3\Status\InstallationCheck;
use NrLlmRuntime\Typo3\Status\OpenMetrics;
use NrLlmRuntime\Typo3\Status\StatusReader;
use Psr\Log\LoggerInterface;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;

/**
 * nrllm:agent:status, or nrllm:runtime:status where nr_llm has a command of the first name: health,
 * and the installation's checks.
 */
final class StatusCommand extends Command
{
    private const HELP = <<<'TEXT'
        Reports the health of agent runs and whether the native runtime is in place: one line for each check, <comment>ok</comment>, <comment>warning</comment> or
        <comment>error</comment>, with what to do.

        <comment>Examples</comment>

          After the installation:
            <info>%command.full_name%</info>
          For a health check; at least two workers, and no run may wait longer than ten minutes:
            <info>%command.full_name% -q --minimum-workers=2 --max-queue-wait=600</info>
          For programs (schema: Resources/Public/Schema/status.schema.json):
            <info>%command.full_name% --json</info>
          For Prometheus (node_exporter's textfile collector; alert rules: Resources/Private/Monitoring):
            <info>%command.full_name% --format=openmetrics</info>

        <comment>Exit codes</comment>

          0  healthy
          1  unhealthy: an expired lease, a queue that waits too long, too few workers, a wrong setting, or a database that cannot be read
          2  an option is wrong
        TEXT;

    public const DESCRIPTION = 'Show queue, lease and worker health, and whether the native runtime is in place.';

    public function __construct(
        private readonly StatusReader $reader,
        private readonly InstallationCheck $installation,
        private readonly RuntimeLocator $locator,
        private readonly LoggerInterface $logger,
    ) {
        parent::__construct();
    }

    protected function configure(): void
    {
        $this->setDescription(self::DESCRIPTION)
            ->setHelp(self::HELP)
            ->addOption('json', null, InputOption::VALUE_NONE, 'The same as --format=json.')
            ->addOption('format', null, InputOption::VALUE_REQUIRED, 'text, json or openmetrics.', 'text')
            ->addOption('max-queue-wait', null, InputOption::VALUE_REQUIRED, 'Maximum known queue wait in seconds.', '300')
            ->addOption('minimum-workers', null, InputOption::VALUE_REQUIRED, 'Minimum live workers for the transport.', '1')
            ->addOption('worker-max-age', null, InputOption::VALUE_REQUIRED, 'Maximum age of a worker\'s sign of life in seconds.', '120')
            ->addOption('transport', null, InputOption::VALUE_REQUIRED, 'Transport whose workers are counted.', 'doctrine');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $messages = new ConsoleMessages($output);
        $wait = Options::integer($input->getOption('max-queue-wait'), 0);
        $minimum = Options::integer($input->getOption('minimum-workers'), 0);
        $age = Options::integer($input->getOption('worker-max-age'), 1);
        $transport = $input->getOption('transport');
        $format = $input->getOption('json') ? 'json' : $input->getOption('format');
        if ($wait === null || $minimum === null || $age === null || !is_string($transport)
            || preg_match('/^[A-Za-z0-9_.-]{1,64}$/D', $transport) !== 1) {
            $messages->invalid('Limits must be non-negative integers, --worker-max-age must be positive, and --transport must be a simple identifier.');

            return self::INVALID;
        }
        if (!in_array($format, ['text', 'json', 'openmetrics'], true)) {
            $messages->invalid('The --format option must be text, json or openmetrics.');

            return self::INVALID;
        }
        $status = $this->reader->read($transport, $age);
        $checks = $this->installation->checks($status);
        $problems = Health::problems($status, $wait, $minimum, $checks);
        $versions = $this->installation->versions($status['server']);
        match ($format) {
            'json' => $messages->raw(ConsoleMessages::json(self::document(
                $status,
                $problems,
                $checks,
                $versions,
                $this->locator->binding(),
            ))),
            'openmetrics' => $messages->raw(OpenMetrics::render($status, $problems === [], $this->locator->binding(), $versions)),
            default => self::print($messages, $status, $problems, $checks, $versions),
        };
        if ($status['databaseProblem'] !== '') {
            $this->logger->error('The status of agent runs could not be read: {reason}', ['reason' => $status['databaseProblem']]);
            $messages->failure('The status could not be read: ' . $status['databaseProblem']);
        }

        return $problems === [] ? self::SUCCESS : self::FAILURE;
    }

    /**
     * nr_llm's own keys first, with its meaning; then ours.
     *
     * @param array<string, mixed>                                    $status
     * @param list<string>                                            $problems
     * @param list<array{check: string, level: string, text: string}> $checks
     * @param array<string, string>                                   $versions
     * @return array<string, mixed> see Resources/Public/Schema/status.schema.json
     */
    public static function document(array $status, array $problems, array $checks, array $versions, string $path): array
    {
        $isKnown = $status['databaseProblem'] === '';

        return [
            // null: the database cannot be read.
            'queued' => $isKnown ? $status['counts']['queued'] ?? 0 : null,
            'running' => $isKnown ? $status['counts']['running'] ?? 0 : null,
            'dead_lettered' => $isKnown ? self::deadLettered($status) : null,
            'expired_leases' => $status['expiredLeases'],
            'oldest_queue_wait_seconds' => $status['oldestQueuedSeconds'],
            'unknown_queue_wait' => $status['unknownQueueWait'],
            'live_workers' => $status['liveWorkers'],
            'healthy' => $problems === [],
            'problems' => $problems,
            'counts' => (object)$status['counts'],
            'failed_by_reason' => (object)$status['deadLetters'],
            'unleased_running' => $status['unleasedRunning'],
            'oldest_lease' => $status['oldestLease'],
            'stranded' => $status['stranded'],
            'clock_skew_ms' => $status['clockSkewMs'],
            'lease_key' => $status['leaseKey'],
            'isolation' => $status['isolation'],
            'binlog' => $status['binlog'],
            'path' => $path,
            'versions' => $versions,
            'checks' => $checks,
        ];
    }

    /**
     * The text answer. Public so that its wording can be tested without a database.
     *
     * @param array<string, mixed>                                    $status
     * @param list<string>                                            $problems
     * @param list<array{check: string, level: string, text: string}> $checks
     * @param array<string, string>                                   $versions
     */
    public static function print(ConsoleMessages $messages, array $status, array $problems, array $checks, array $versions): void
    {
        $unknown = static fn(mixed $value, string $unit = ''): string => $value === null ? 'unknown' : $value . $unit;
        $isKnown = $status['databaseProblem'] === '';
        $count = static fn(string $name): ?int => $isKnown ? $status['counts'][$name] ?? 0 : null;
        $rows = [
            'queued' => $unknown($count('queued'))
                . ($status['oldestQueuedSeconds'] === null ? '' : sprintf(' (the oldest waits for %d s)', $status['oldestQueuedSeconds'])),
            'running' => $unknown($count('running')),
            'waiting' => $unknown($isKnown ? $count('waiting_for_approval') + $count('waiting_for_input') : null),
            'dead-lettered' => $unknown($isKnown ? self::deadLettered($status) : null),
            'expired leases' => $unknown($status['expiredLeases']),
            'without a lease' => $unknown($status['unleasedRunning']),
            'stranded' => $unknown($status['stranded']),
            'live workers' => $status['liveWorkers'] !== null ? (string)$status['liveWorkers']
                : ($isKnown ? 'not evaluated (nr_llm does not record them)' : 'unknown'),
            'clock skew' => $unknown($status['clockSkewMs'], ' ms'),
        ];
        $messages->line('');
        foreach ($rows as $label => $value) {
            $messages->line(sprintf(' %-16s %s', $label, $value));
        }
        $messages->line('');
        foreach ($checks as $check) {
            $messages->line(sprintf(' %-8s %s: %s', $check['level'], $check['check'], ConsoleMessages::flat($check['text'])));
        }
        $known = [];
        foreach (array_filter($versions) as $component => $version) {
            $known[] = $component . ' ' . $version;
        }
        $messages->line('');
        $messages->line(' Versions: ' . implode(', ', $known));
        if ($problems === []) {
            $messages->success('Healthy.');

            return;
        }
        foreach ($problems as $problem) {
            $messages->invalid($problem);
        }
    }

    /**
     * @param array<string, mixed> $status
     */
    private static function deadLettered(array $status): int
    {
        return ($status['deadLetters']['retries_exhausted'] ?? 0) + ($status['deadLetters']['not_retryable'] ?? 0);
    }
}
