<?php

/**
 * A lease that a thread keeps renewing, from {@see NrLlmRuntime::keepLease()}. Released when destroyed, and at the end of the request.
 *
 * All reads are of memory and a clock: none waits for the server. Each compares the lease's deadline with the clock, so that a process that
 * was stopped and continued never reads a stale `held`.
 *
 * Not cloneable, not serializable, not made by `new`.
 */
final class NrLlmLease
{
    /**
     * Throws: objects of this class are made by the runtime only.
     *
     * @throws Exception always
     */
    public function __construct()
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * How the lease stands.
     *
     * @return 'held'|'unknown'|'lost'|'cancelled'|'stopped' `held`: the last beat succeeded; `unknown`: it failed, and the deadline has not
     *     passed; `lost`: the server named another owner, or the deadline passed; `cancelled`: the run was; `stopped`: released, inherited by a
     *     fork, or the run was settled. The last three are final.
     */
    public function state(): string
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /** Whether the run is still this process's: true exactly in `held` and `unknown`. */
    public function isHeld(): bool
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Milliseconds until the lease runs out, counted from when the last successful beat was sent; 0 outside `held` and `unknown`.
     *
     * @return int<0, max>
     */
    public function remainingMs(): int
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Says that progress was made: the limit `maxSilentSeconds` counts from here.
     *
     * @throws NrLlmLeaseLostException in `lost` and `stopped`; the message says why
     * @throws NrLlmRunCancelledException in `cancelled`
     */
    public function step(): void
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * How many beats succeeded, the first renewal included.
     *
     * @return int<0, max>
     */
    public function beats(): int
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /** Why the last beat failed, or which limit ended the beats; null when nothing went wrong. */
    public function lastError(): ?string
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * The run's uid.
     *
     * @return positive-int
     */
    public function runUid(): int
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * The owner.
     *
     * @return non-empty-string
     */
    public function claimedBy(): string
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /** Stops the beats: `held` and `unknown` become `stopped`. The row is left as it is. May be called again. */
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
