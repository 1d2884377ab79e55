<?php

/**
 * What became of a failed run, from {@see NrLlmRuntime::recoverFailure()}.
 *
 * Not cloneable, not serializable, not made by `new`.
 */
final class NrLlmRecovery implements JsonSerializable
{
    /** The run is queued again. */
    public const REQUEUED = 'requeued';

    /** The run has ended as failed. */
    public const DEAD_LETTERED = 'dead_lettered';

    /** The caller does not own the run: nothing was written. */
    public const LEASE_LOST = 'lease_lost';

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
     * Returns what was written.
     *
     * @return self::REQUEUED|self::DEAD_LETTERED|self::LEASE_LOST
     */
    public function outcome(): string
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Returns why the run was dead-lettered; null otherwise.
     *
     * @return 'not_retryable'|'retries_exhausted'|null
     */
    public function reason(): ?string
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /** Returns the classified failure. */
    public function failure(): NrLlmFailure
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Returns how often the run has been requeued, as the row has it now; null when the lease is
     * lost.
     *
     * @return int<0, max>|null
     */
    public function requeueCount(): ?int
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Returns the delay before the wake-up in milliseconds, jitter included; null unless requeued.
     *
     * @return int<0, max>|null
     */
    public function delayMs(): ?int
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Returns whether the wake-up was written in the same transaction. When false after a requeue,
     * the caller notifies a worker.
     */
    public function wokenUp(): bool
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /** Returns whether the server's reply was lost and the outcome was read back from the row. */
    public function isConfirmed(): bool
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Returns the recovery as an array, for `json_encode()` and logs.
     *
     * @return array{
     *     outcome: self::REQUEUED|self::DEAD_LETTERED|self::LEASE_LOST,
     *     reason: 'not_retryable'|'retries_exhausted'|null,
     *     failure: array{
     *         failureClass: string,
     *         retryable: bool,
     *         tripsCircuit: bool,
     *         errorClass: string,
     *         httpStatus: int|null,
     *         retryAfterSeconds: int|null
     *     },
     *     requeueCount: int<0, max>|null,
     *     delayMs: int<0, max>|null,
     *     wokenUp: bool,
     *     confirmed: bool
     * }
     */
    public function jsonSerialize(): array
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /** @internal not cloneable */
    private function __clone()
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }
}
