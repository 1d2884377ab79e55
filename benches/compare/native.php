<?php

declare(strict_types=1);

namespace Bench;

use NrLlmRuntime;

/** Variants c and d: the extension, or the FFI bridge, which have the same classes. */
final class NativeVariant implements Variant
{
    private readonly NrLlmRuntime $runtime;

    public function __construct(Target $target)
    {
        $this->runtime = new NrLlmRuntime([
            'driver' => 'mysqli', 'host' => 'localhost', 'unix_socket' => $target->socket, 'user' => $target->user, 'password' => $target->password,
            'dbname' => $target->database,
        ], ['table' => $target->table, 'connectTimeoutMs' => 60_000, 'queryTimeoutMs' => $target->timeoutMs]);
        // Connects: the cost of a connection is measured separately.
        $this->runtime->leaseState(1, 'bench');
    }

    public function renew(int $uid, string $owner, int $lease): bool
    {
        return $this->runtime->renewLease($uid, $owner, $lease);
    }

    public function mark(int $uid, string $owner, string $effect, int $lease): bool
    {
        return $this->runtime->markPendingEffect($uid, $owner, $effect, $lease);
    }

    public function claim(int $uid, string $owner, int $lease): bool
    {
        return $this->runtime->claimQueued($uid, $owner, $lease);
    }

    public function recover(int $uid, string $owner, \Throwable $error): string
    {
        return $this->runtime->recoverFailure($uid, $owner, $error)->outcome();
    }

    public function reap(int $limit, int $now): array
    {
        $report = $this->runtime->reap($limit, $now);

        return [count($report->requeued()), count($report->deadLettered()), count($report->skipped())];
    }

    public function classify(\Throwable $error): object
    {
        return NrLlmRuntime::classifyFailure($error);
    }

    public function runtime(): NrLlmRuntime
    {
        return $this->runtime;
    }
}
