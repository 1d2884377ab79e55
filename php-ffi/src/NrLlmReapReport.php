<?php

declare(strict_types=1);

use NrLlmRuntime\Ffi\Caller;
use NrLlmRuntime\Ffi\Values;

require_once __DIR__ . '/../autoload.php';

// The extension declares the same class; then this file has nothing to do.
if (!class_exists(NrLlmReapReport::class, false)) {
    /**
     * The report of one {@see NrLlmRuntime::reap()}. `count()` is requeued + dead-lettered +
     * skipped.
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
     * } `claimedBy` and `leaseExpires` as the reaper found them; `requeueCount` as the row has it
     *     now (dry run: as it would have it); `confirmed`: the reply was lost and the outcome was
     *     read back
     */
    final readonly class NrLlmReapReport implements Countable, JsonSerializable
    {
        /** @internal not made by `new` */
        public function __construct()
        {
            throw Caller::blame(new Exception('You cannot instantiate this class from PHP.'));
        }

        /**
         * Returns the requeued runs; `reason` is null.
         *
         * @return list<ReapedRun>
         */
        public function requeued(): array
        {
            return Values::of($this)['requeued'];
        }

        /**
         * Returns the dead-lettered runs; `reason` is the termination reason.
         *
         * @return list<ReapedRun>
         */
        public function deadLettered(): array
        {
            return Values::of($this)['deadLettered'];
        }

        /**
         * Returns the runs that were skipped; `reason` is `renewed` (no longer stale), `contended`
         * (another transaction locks the row), `excepted`, `timed_out` (a statement for this run
         * alone took longer than its limit), `too_large` (a Galera node refuses a transaction even
         * of this size), with `wakeUp` also `unwakeable` (the uuid does not fit into the message;
         * nothing was written), or `unknown` (the connection was lost at the commit and the row
         * could not be read back: it may have been handled; `leaseState()` reports it, and the
         * sweep finds it if no worker was notified).
         *
         * @return list<ReapedRun>
         */
        public function skipped(): array
        {
            return Values::of($this)['skipped'];
        }

        /** Returns whether this was a dry run: nothing was written. */
        public function isDryRun(): bool
        {
            return Values::of($this)['dryRun'];
        }

        /** Returns whether stale candidates were left that this call did not examine. */
        public function hasMore(): bool
        {
            return Values::of($this)['hasMore'];
        }

        /**
         * Returns the number of requeued, dead-lettered and skipped runs together.
         *
         * @return int<0, max>
         */
        public function count(): int
        {
            return count(Values::of($this)['requeued']) + count(Values::of($this)['deadLettered']) + count(Values::of($this)['skipped']);
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
            return Values::of($this);
        }

        /** @internal not cloneable */
        private function __clone() {}

        /** @internal not serializable */
        public function __serialize(): array
        {
            throw Caller::blame(new Exception("Serialization of 'NrLlmReapReport' is not allowed"));
        }

        /** @internal not serializable */
        public function __unserialize(array $data): void
        {
            throw Caller::blame(new Exception("Unserialization of 'NrLlmReapReport' is not allowed"));
        }
    }
}
