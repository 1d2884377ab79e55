<?php

/**
 * The report of one {@see NrLlmRuntime::reap()}. `count()` is requeued + dead-lettered + skipped.
 *
 * Not cloneable, not serializable, not made by `new`.
 *
 * @phpstan-type ReapedRun array{
 *     uid: positive-int,
 *     uuid: string,
 *     claimedBy: string,
 *     leaseExpires: positive-int,
 *     requeueCount: int<0, max>,
 *     reason: string|null,
 *     wokenUp: bool,
 *     confirmed: bool
 * } `claimedBy` and `leaseExpires` as the reaper found them; `requeueCount` as the row has it now
 *     (dry run: as it would have it); `confirmed`: the reply was lost and the outcome was read back
 */
final class NrLlmReapReport implements Countable, JsonSerializable
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
     * Returns the requeued runs; `reason` is null.
     *
     * @return list<ReapedRun>
     */
    public function requeued(): array
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Returns the dead-lettered runs; `reason` is the termination reason.
     *
     * @return list<ReapedRun>
     */
    public function deadLettered(): array
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Returns the runs that were skipped; `reason` is `renewed` (no longer stale), `contended`
     * (another transaction locks the row), `excepted`, `timed_out` (a statement for this run alone
     * took longer than its limit), `too_large` (a Galera node refuses a transaction even of this
     * size), with `wakeUp` also `unwakeable` (the uuid does not fit into the message; nothing was
     * written), or `unknown` (the connection was lost at
     * the commit and the row could not be read back: it may have been handled; `leaseState()`
     * reports it, and the sweep finds it if no worker was notified).
     *
     * @return list<ReapedRun>
     */
    public function skipped(): array
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /** Returns whether this was a dry run: nothing was written. */
    public function isDryRun(): bool
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /** Returns whether stale candidates were left that this call did not examine. */
    public function hasMore(): bool
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Returns the number of requeued, dead-lettered and skipped runs together.
     *
     * @return int<0, max>
     */
    public function count(): int
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Returns the report as an array, for `json_encode()` and logs.
     *
     * @return array{
     *     requeued: list<ReapedRun>,
     *     deadLettered: list<ReapedRun>,
     *     skipped: list<ReapedRun>,
     *     dryRun: bool,
     *     hasMore: bool
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
