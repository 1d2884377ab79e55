<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Reports;

use NrLlmRuntime\Typo3\Status\Health;
use NrLlmRuntime\Typo3\Status\InstallationCheck;
use NrLlmRuntime\Typo3\Status\StatusReader;
use TYPO3\CMS\Core\Type\ContextualFeedbackSeverity;
use TYPO3\CMS\Reports\Status;
use TYPO3\CMS\Reports\StatusProviderInterface;

/**
 * The status command's answer in System > Reports. Registered only where EXT:reports is installed;
 * no other code may load this class.
 */
final class AgentRunStatusProvider implements StatusProviderInterface
{
    private const MAX_QUEUE_WAIT_SECONDS = 300;
    private const WORKER_MAX_AGE_SECONDS = 120;
    private const TITLES = [
        'path' => 'Native runtime', 'command' => 'Reaper command', 'repository' => 'Run repository', 'keeper' => 'Heartbeat',
        'routing' => 'Message routing', 'wake-ups' => 'Wake-ups', 'key' => 'Database key', 'clock' => 'Clocks',
        'stranded' => 'Stranded runs', 'unleased' => 'Runs without a lease', 'workers' => 'Workers', 'settings' => 'Extension settings',
        'init-commands' => 'Initial commands of the connection',
    ];

    public function __construct(private readonly StatusReader $reader, private readonly InstallationCheck $installation) {}

    public function getLabel(): string
    {
        return 'Agent runs (nrllm_runtime)';
    }

    /**
     * @return Status[]
     */
    public function getStatus(): array
    {
        $status = $this->reader->read('doctrine', self::WORKER_MAX_AGE_SECONDS);
        $checks = $this->installation->checks($status);
        $problems = Health::problems($status, self::MAX_QUEUE_WAIT_SECONDS, 1, $checks);
        $entries = ['health' => new Status(
            'Agent runs',
            $problems === [] ? 'Healthy' : 'Unhealthy',
            self::text(implode(' ', $problems)),
            $problems === [] ? ContextualFeedbackSeverity::OK : ContextualFeedbackSeverity::ERROR,
        )];
        foreach ($checks as $position => $check) {
            $entries[$check['check'] . $position] = new Status(
                self::TITLES[$check['check']] ?? $check['check'],
                $check['level'],
                self::text($check['text']),
                match ($check['level']) {
                    InstallationCheck::OK => ContextualFeedbackSeverity::OK,
                    InstallationCheck::WARNING => ContextualFeedbackSeverity::WARNING,
                    default => ContextualFeedbackSeverity::ERROR,
                },
            );
        }

        return $entries;
    }

    /**
     * EXT:reports prints the message as HTML.
     */
    private static function text(string $text): string
    {
        return htmlspecialchars($text, ENT_QUOTES | ENT_SUBSTITUTE, 'UTF-8');
    }
}
