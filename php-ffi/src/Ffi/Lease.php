<?php

declare(strict_types=1);

namespace NrLlmRuntime\Ffi;

use FFI\CData;

/**
 * The library's handle of a kept lease. It is released and freed with its object.
 *
 * @internal
 */
final class Lease
{
    public function __construct(private readonly int $runUid, private readonly string $claimedBy, private readonly CData $handle) {}

    public function state(): string
    {
        return (string)Call::text('nrllm_kept_lease_state', $this->handle);
    }

    public function isHeld(): bool
    {
        return Call::flag('nrllm_kept_lease_is_held', $this->handle);
    }

    public function remainingMs(): int
    {
        return Call::integer('nrllm_kept_lease_remaining_ms', $this->handle);
    }

    public function step(): void
    {
        Call::action('nrllm_kept_lease_step', $this->handle);
    }

    public function beats(): int
    {
        return Call::integer('nrllm_kept_lease_beats', $this->handle);
    }

    public function lastError(): ?string
    {
        return Call::text('nrllm_kept_lease_last_error', $this->handle);
    }

    public function runUid(): int
    {
        return $this->runUid;
    }

    public function claimedBy(): string
    {
        return $this->claimedBy;
    }

    public function release(): void
    {
        Call::action('nrllm_kept_lease_release', $this->handle);
    }

    public function __destruct()
    {
        // While destructors run, a later one may still end the run: on the command line heartbeats
        // continue until the process ends. Elsewhere the process continues, and heartbeats must
        // not.
        if (!(Ending::isNear() && PHP_SAPI === 'cli')) {
            Library::ffi()->nrllm_kept_lease_free($this->handle);
        }
    }
}
