<?php

/**
 * What a reaper's tick did, from {@see NrLlmRuntime::reap()}. `count()` is requeued + dead-lettered + skipped.
 *
 * Not cloneable, not serializable, not made by `new`.
 *
 * @phpstan-type ReapedRun array{
 *     uid: int,
 *     uuid: string,
 *     claimedBy: string,
 *     leaseExpires: int,
 *     requeueCount: int,
 *     reason: string|null,
 *     wokenUp: bool,
 *     confirmed: bool
 * } `claimedBy` and `leaseExpires` as the reaper found them; `requeueCount` as the row has it now (dry run: as it would have it);
 *   `confirmed`: the reply was lost and the outcome read back
 */
final class NrLlmReapReport implements Countable, JsonSerializable
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
     * The runs that are queued again; `reason` is null.
     *
     * @return list<ReapedRun>
     */
    public function requeued(): array
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * The runs that have ended as failed; `reason` is the termination reason.
     *
     * @return list<ReapedRun>
     */
    public function deadLettered(): array
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * The runs that were left alone; `reason` is `renewed` (no longer stale), `contended` (locked by somebody else), `excepted`,
     * with `wakeUp` also `unwakeable` (its uuid does not fit into the message; nothing was written), or `unknown` (the connection died at the
     * commit and the row could not be read back: it may have been handled; `leaseState()` tells, and the sweep wakes what was not woken).
     *
     * @return list<ReapedRun>
     */
    public function skipped(): array
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /** Whether nothing was written: the report says what would have been. */
    public function isDryRun(): bool
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /** Whether stale candidates were left: another tick would find work. */
    public function hasMore(): bool
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Requeued, dead-lettered and skipped together.
     *
     * @return int<0, max>
     */
    public function count(): int
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * The same as an array, for `json_encode()` and logs.
     *
     * @return array{requeued: list<ReapedRun>, deadLettered: list<ReapedRun>, skipped: list<ReapedRun>, dryRun: bool, hasMore: bool}
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
