<?php

/**
 * A kept lease, from {@see NrLlmRuntime::keepLease()}: the heartbeat thread renews it. Released
 * when destroyed, and at the end of the request.
 *
 * All reads are of memory and a clock and never wait for the server. Each compares the lease's
 * deadline with the clock, so a process that was stopped and continued never reads `held` after the
 * deadline.
 *
 * Not cloneable, not serializable, not made by `new`.
 */
final class NrLlmLease
{
    /**
     * Throws: only the runtime creates objects of this class.
     *
     * @throws Exception always
     */
    public function __construct()
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Returns the state of the lease.
     *
     * @return 'held'|'unknown'|'lost'|'cancelled'|'stopped' `held`: the last heartbeat succeeded;
     *     `unknown`: it failed, and the deadline has not passed; `lost`: the server named another
     *     owner, or the deadline passed; `cancelled`: the run was cancelled; `stopped`: released,
     *     inherited by a fork, or the run is completed, failed or waiting. The last three are
     *     final.
     */
    public function state(): string
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /** Returns whether this process still owns the run: true exactly in `held` and `unknown`. */
    public function isHeld(): bool
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Returns the milliseconds until the lease expires, counted from when the last successful
     * heartbeat was sent; 0 outside `held` and `unknown`.
     *
     * @return int<0, max>
     */
    public function remainingMs(): int
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Reports progress: the limit `maxSilentSeconds` counts from here.
     *
     * @throws NrLlmLeaseLostException in `lost` and `stopped`; the message gives the reason
     * @throws NrLlmRunCancelledException in `cancelled`
     */
    public function step(): void
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Returns the number of successful heartbeats, the first renewal included.
     *
     * @return int<0, max>
     */
    public function beats(): int
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Returns why the last heartbeat failed, or which limit paused renewal; null after a success.
     */
    public function lastError(): ?string
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Returns the run's uid.
     *
     * @return positive-int
     */
    public function runUid(): int
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Returns the owner.
     *
     * @return non-empty-string
     */
    public function claimedBy(): string
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Ends the heartbeats: `held` and `unknown` become `stopped`. The row keeps its values. A
     * second call has no effect.
     */
    public function release(): void
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /** @internal not cloneable */
    private function __clone()
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }
}
