<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Status;

use NrLlmRuntime\Typo3\Command\ReapCommand;
use NrLlmRuntime\Typo3\DependencyInjection\ContainerFacts;
use NrLlmRuntime\Typo3\Repository\LeasedAgentRunRepository;
use NrLlmRuntime\Typo3\Repository\LeasedAgentRunRepositoryFactory;
use NrLlmRuntime\Typo3\Runtime\RuntimeLocator;
use NrLlmRuntime\Typo3\Settings\ConnectionSettings;
use NrLlmRuntime\Typo3\Settings\RuntimeSettings;
use NrLlmRuntime\Typo3\WakeUp\Routing;
use NrLlmRuntime\Typo3\WakeUp\WakeUps;

/**
 * Checks that the installation works as the administrator believes it does. Most of what goes wrong
 * here goes wrong silently: an override that was lost, a routing that executes runs twice, a key
 * that was never created.
 */
final class InstallationCheck
{
    public const OK = 'ok';
    public const WARNING = 'warning';
    /** Runs cannot be executed or reaped as the settings say: the status is unhealthy. */
    public const ERROR = 'error';
    /** The length of a lease that is not kept in the background. */
    private const NR_LLM_LEASE_SECONDS = 900;
    /** The skew in seconds that synchronised clocks stay below. */
    private const MOST_SKEW_SECONDS = 2.0;

    /**
     * @param object|null $registry TYPO3's CommandRegistry
     * @param object|null $runs     what nr_llm is given as its repository
     * @param object|null $ours     this package's proxy of it
     */
    public function __construct(
        private readonly RuntimeLocator $locator,
        private readonly ContainerFacts $facts,
        private readonly Routing $routing,
        private readonly WakeUps $wakeUps,
        private readonly ConnectionSettings $connection,
        private readonly RuntimeSettings $settings,
        private readonly ?object $registry = null,
        private readonly ?object $runs = null,
        private readonly ?object $ours = null,
        private readonly ?LeasedAgentRunRepositoryFactory $factory = null,
    ) {}

    /**
     * @param array<string, mixed> $status of StatusReader
     * @return list<array{check: string, level: string, text: string}>
     */
    public function checks(array $status): array
    {
        $checks = [
            $this->runtime($status['runtimeProblem']),
            $this->command(),
            $this->repository($status['runtimeProblem']),
            $this->keeper($status['databaseProblem'] === '' && $status['runtimeProblem'] === ''),
            $this->routingCheck(),
            $this->wakeUpsCheck(),
        ];
        if ($status['leaseKey'] !== null) {
            $checks[] = self::result('key', $status['leaseKey'], $status['leaseKey']
                ? 'The run table has a key that begins with (status, lease_expires).'
                : 'The run table has no key (status, lease_expires): the reaper scans all running runs. Create it with `typo3 extension:setup` or the database analyser.');
        }
        if ($status['clockSkewMs'] !== null) {
            $checks[] = self::clock(
                $status['clockSkewMs'],
                $this->settings->clock(),
                $this->settings->keepsLeases() ? $this->settings->leaseSeconds() : self::NR_LLM_LEASE_SECONDS,
            );
        }
        if ($status['binlog'] !== null) {
            $checks[] = self::binlog($status['binlog']);
        }
        if ($status['stranded'] !== null) {
            $checks[] = self::result('stranded', $status['stranded'] === 0, $status['stranded'] === 0
                ? 'No queued run seems to have lost its wake-up.'
                : sprintf(
                    '%d queued run(s) seem to have lost their wake-up: call nrllm:agent:reap with --wake-stranded=600.',
                    $status['stranded'],
                ));
        }
        if ($status['unleasedRunning'] !== null) {
            $checks[] = self::result('unleased', $status['unleasedRunning'] === 0, $status['unleasedRunning'] === 0
                ? 'Every running run has a lease.'
                : sprintf(
                    '%d running run(s) without a lease: no reaper will ever find them (runs of an older release, or given up).',
                    $status['unleasedRunning'],
                ));
        }
        if ($status['databaseProblem'] === '') {
            $checks[] = $status['liveWorkers'] === null
                ? self::result('workers', true, 'Workers are not evaluated: this release of nr_llm does not record them.')
                : self::result('workers', $status['liveWorkers'] > 0, sprintf('%d live worker(s).', $status['liveWorkers']));
        }
        foreach ($this->settings->problems() as $problem) {
            $checks[] = self::error('settings', $problem);
        }
        foreach ($this->connection->initCommandFindings() as $finding) {
            $checks[] = self::result('init-commands', false, $finding);
        }

        return $checks;
    }

    /**
     * Returns whether the clocks of this host and of the database agree well enough. A lease is
     * renewed a third of its length after the last time, so that a skew of two thirds makes a lease
     * look over that is kept; a third is half of that. Pure, so that it can be tested without
     * clocks that are wrong.
     *
     * @return array{check: string, level: string, text: string}
     */
    public static function clock(int $skewMs, string $clock, int $leaseSeconds): array
    {
        $seconds = abs($skewMs) / 1000;
        $text = sprintf(
            'The clocks of this host and of the database differ by %.1f s; the clock of the %s counts.',
            $seconds,
            $clock === RuntimeSettings::CLOCK_DATABASE ? 'database' : 'calling host',
        );
        $third = $leaseSeconds / 3;
        if ($clock === RuntimeSettings::CLOCK_DATABASE || $seconds <= min(self::MOST_SKEW_SECONDS, $third)) {
            return self::result('clock', true, $text);
        }
        if ($seconds > $third) {
            $text .= sprintf(
                ' That is more than a third of the lease of %d s: a reaper whose clock is ahead takes runs away from workers that live.',
                $leaseSeconds,
            );
        }

        return self::result('clock', false, $text . ' Set the clocks (NTP), or the extension setting "clock" to "database".');
    }

    /**
     * Reports what a heartbeat costs the server's binary log. Where heartbeats log whole rows, a
     * payload of 20 KiB costs 41 KiB per heartbeat.
     *
     * @param array{format: ?string, rowImage: ?string, bytesPerHeartbeat: int, remedy: ?string}
     *     $binlog
     * @return array{check: string, level: string, text: string}
     */
    public static function binlog(array $binlog): array
    {
        if ($binlog['format'] === null) {
            return self::result('binlog', true, 'The server keeps no binary log.');
        }
        $text = sprintf(
            'A heartbeat adds about %d bytes to the binary log (binlog_format %s%s).',
            $binlog['bytesPerHeartbeat'],
            $binlog['format'],
            $binlog['rowImage'] === null ? '' : ', binlog_row_image ' . $binlog['rowImage'],
        );

        return $binlog['remedy'] === null ? self::result('binlog', true, $text)
            : self::result('binlog', false, $text . ' ' . ucfirst(rtrim($binlog['remedy'], '.')) . '.');
    }

    /**
     * @return array<string, string> component => version, '' where it is not known
     */
    public function versions(string $server): array
    {
        return [
            'package' => self::package('nrllm-runtime/typo3', 'nrllm_runtime'),
            'runtime' => $this->locator->version(),
            'nr_llm' => self::package('netresearch/nr-llm', 'nr_llm'),
            'typo3' => class_exists('TYPO3\CMS\Core\Information\Typo3Version')
                ? (new \TYPO3\CMS\Core\Information\Typo3Version())->getVersion() : '',
            'php' => PHP_VERSION,
            'server' => $server,
        ];
    }

    /**
     * @return array{check: string, level: string, text: string}
     */
    private function runtime(string $problem): array
    {
        $reasons = implode(' ', $this->locator->reasons());
        if ($problem !== '') {
            return self::error('path', 'The native runtime cannot be used: ' . $problem
                . ($this->forbidsFallback() ? ' The extension setting "fallback" forbids nr_llm\'s own code, so no run is executed.' : ''));
        }
        if ($this->locator->isAvailable()) {
            return self::result('path', true, 'Native runtime by ' . $this->locator->binding() . '. ' . $reasons);
        }
        if ($this->forbidsFallback()) {
            return self::error('path', 'No native runtime, and the extension setting "fallback" forbids nr_llm\'s own code: no run is '
                . 'executed or reaped. ' . $reasons);
        }

        return self::result('path', false, 'No native runtime, nr_llm\'s own PHP code. ' . $reasons);
    }

    private function forbidsFallback(): bool
    {
        return $this->settings->fallback() === RuntimeSettings::FALLBACK_NONE;
    }

    /**
     * @return array{check: string, level: string, text: string}
     */
    private function command(): array
    {
        if (!$this->facts->reapIsOverridden()) {
            return self::result('command', false, 'nrllm:agent:reap is not overridden: ' . $this->facts->reapProblem());
        }
        try {
            // What TYPO3 runs under that name, which is what counts.
            $command = $this->registry !== null && method_exists($this->registry, 'get') ? $this->registry->get('nrllm:agent:reap') : null;
        } catch (\Throwable $error) {
            return self::result('command', false, 'nrllm:agent:reap cannot be made: ' . $error->getMessage());
        }
        if ($command !== null && !$command instanceof ReapCommand) {
            return self::result('command', false, sprintf('nrllm:agent:reap is %s: another extension has overridden it.', $command::class));
        }

        return self::result('command', true, 'nrllm:agent:reap is this package\'s.');
    }

    /**
     * @return array{check: string, level: string, text: string}
     */
    private function repository(string $runtimeProblem): array
    {
        if (!$this->facts->repositoryIsOverridden()) {
            return self::result('repository', false, 'nr_llm\'s run repository is not overridden: ' . $this->facts->repositoryProblem());
        }
        if ($this->runs !== $this->ours) {
            return self::result(
                'repository',
                true,
                sprintf(
                    'nr_llm\'s run repository is overridden, and %s of another extension decorates it.',
                    get_debug_type($this->runs),
                ),
            );
        }
        try {
            // What a worker is given. The proxy cannot be asked: what is behind it does not have
            // the type it promises.
            $given = $this->factory?->create();
        } catch (\Throwable $error) {
            return self::result('repository', false, 'nr_llm\'s run repository cannot be made: ' . $error->getMessage());
        }
        if ($given instanceof LeasedAgentRunRepository) {
            return $runtimeProblem !== '' ? self::result('repository', false, 'nr_llm\'s run repository is overridden, but the native runtime '
                . 'cannot answer' . ($this->forbidsFallback() ? '.' : ': nr_llm\'s own code does.')) : self::result('repository', true, 'nr_llm\'s run repository is overridden.');
        }

        return self::result('repository', false, $this->locator->isAvailable()
            ? 'nr_llm\'s run repository is its own: the runtime refuses the settings (see the log).'
            : 'nr_llm\'s run repository is its own: there is no native runtime.');
    }

    /**
     * @return array{check: string, level: string, text: string}
     */
    private function keeper(bool $databaseAnswers): array
    {
        if (!$this->settings->keepsLeases()) {
            return self::result(
                'keeper',
                true,
                'Leases are renewed at step boundaries only, with nr_llm\'s own length (setting "keeper" is off).',
            );
        }
        $obstacle = match (true) {
            !$this->facts->repositoryIsOverridden() => 'nr_llm\'s run repository is not overridden',
            !$this->locator->isAvailable() => 'there is no native runtime',
            !$databaseAnswers => 'the native runtime cannot be used',
            default => $this->heartbeatObstacle(),
        };
        if ($obstacle !== '') {
            return self::result('keeper', false, 'No lease is kept in the background, they are renewed at step boundaries only: '
                . $obstacle . '.');
        }

        return self::result('keeper', true, sprintf(
            'Leases of %d s are kept in the background, for at most %d s without a step and %d s in all.',
            $this->settings->leaseSeconds(),
            $this->settings->maxSilentSeconds(),
            $this->settings->maxSeconds(),
        ));
    }

    /**
     * The heartbeat has a connection of its own.
     */
    private function heartbeatObstacle(): string
    {
        try {
            $this->locator->probeSecondConnection();

            return '';
        } catch (\Throwable $error) {
            return 'the heartbeat\'s connection is refused (' . rtrim($error->getMessage(), '.') . ')';
        }
    }

    /**
     * @return array{check: string, level: string, text: string}
     */
    private function routingCheck(): array
    {
        $trap = $this->routing->trap();
        if ($trap !== '') {
            return self::result('routing', false, $trap);
        }
        $problem = $this->routing->problem();
        if ($problem !== '') {
            return self::error('routing', $problem);
        }
        $names = $this->routing->transports();

        return self::result('routing', !$this->routing->isSynchronous(), $this->routing->isSynchronous()
            ? 'The message of queued runs is handled synchronously: runs execute in the process that queues or reaps them.'
            : sprintf('The message of queued runs goes to "%s"%s.', implode('", "', $names), $this->routing->isConfigured()
                ? ' (extension setting)' : ''));
    }

    /**
     * @return array{check: string, level: string, text: string}
     */
    private function wakeUpsCheck(): array
    {
        if (!$this->wakeUps->canBeSent()) {
            return self::error('wake-ups', $this->wakeUps->reason());
        }
        $atomic = $this->wakeUps->mode() === WakeUps::OUTBOX;

        return self::result('wake-ups', $atomic, $this->wakeUps->reason() . ($atomic ? '' : ' They cannot be atomic.'));
    }

    private static function package(string $name, string $extensionKey): string
    {
        try {
            if (class_exists('Composer\InstalledVersions') && \Composer\InstalledVersions::isInstalled($name)) {
                return (string)\Composer\InstalledVersions::getPrettyVersion($name);
            }

            // Classic mode: Composer knows TYPO3's own packages only.
            return class_exists('TYPO3\CMS\Core\Utility\ExtensionManagementUtility')
                ? \TYPO3\CMS\Core\Utility\ExtensionManagementUtility::getExtensionVersion($extensionKey) : '';
        } catch (\Throwable) {
            return '';
        }
    }

    /**
     * @return array{check: string, level: string, text: string}
     */
    private static function error(string $check, string $text): array
    {
        return ['check' => $check, 'level' => self::ERROR, 'text' => $text];
    }

    /**
     * @return array{check: string, level: string, text: string}
     */
    private static function result(string $check, bool $ok, string $text): array
    {
        return ['check' => $check, 'level' => $ok ? self::OK : self::WARNING, 'text' => $text];
    }
}
