<?php

declare(strict_types=1);

namespace Netresearch\NrLlm\Service\Agent;

use Netresearch\NrLlm\Domain\Enum\AgentRunStatus;
use Netresearch\NrLlm\Service\Tool\AgentRunPersister;

/**
 * Stands in for nr_llm's runtime: claims, renews at step boundaries, and settles. What happens in a
 * step is a test's.
 */
final class AgentRuntime implements AgentRuntimeInterface
{
    public const LEASE_SECONDS = 900;
    public const MAX_REQUEUES = 3;

    /** @var \Closure(int, string): void|null called with run and identity, as a provider call */
    public static ?\Closure $step = null;
    /** @var \Closure(): void|null called when a run is over */
    public static ?\Closure $after = null;
    public static int $steps = 2;
    /** @var list<string> */
    public static array $ran = [];

    public function __construct(private readonly AgentRunPersister $persister) {}

    public function runQueued(string $runUuid, ?\Closure $onStep = null): ?AgentRunResult
    {
        $run = $this->persister->find($runUuid);
        $identity = substr('worker:' . gethostname() . ':' . getmypid(), 0, 64);
        if ($run === null || $run->status !== AgentRunStatus::Queued || $run->queuedRequest === null
            || !$this->persister->claim($run, $identity, time() + self::LEASE_SECONDS)) {
            return null;
        }
        self::$ran[] = $runUuid;
        for ($step = 0; $step < self::$steps; $step++) {
            if (self::$step !== null) {
                (self::$step)($run->uid, $identity);
            }
            if (!$this->persister->renew($run->uid, $identity, time() + self::LEASE_SECONDS)) {
                return new AgentRunResult('lease_lost');
            }
        }
        $this->persister->finish($run->uid, 'completed', ownedBy: $identity);
        if (self::$after !== null) {
            (self::$after)();
        }

        return new AgentRunResult('completed');
    }
}
