<?php

declare(strict_types=1);

use NrLlmRuntime\Ffi\Caller;
use NrLlmRuntime\Ffi\Values;

require_once __DIR__ . '/../autoload.php';

// The extension declares the same class; then this file has nothing to do.
if (!class_exists(NrLlmLease::class, false)) {
    /**
     * A kept lease, from {@see NrLlmRuntime::keepLease()}: the heartbeat thread renews it. Released
     * when destroyed, and at the end of the request.
     *
     * All reads are of memory and a clock and never wait for the server. Each compares the lease's
     * deadline with the clock, so a process that was stopped and continued never reads `held` after
     * the deadline.
     *
     * Not cloneable, not serializable, not made by `new`.
     */
    final readonly class NrLlmLease
    {
        /** @internal not made by `new` */
        public function __construct()
        {
            throw Caller::blame(new Exception('You cannot instantiate this class from PHP.'));
        }

        /**
         * Returns the state of the lease.
         *
         * @return 'held'|'unknown'|'lost'|'cancelled'|'stopped' `held`: the last heartbeat
         *     succeeded; `unknown`: it failed, and the deadline has not passed; `lost`: the server
         *     named another owner, or the deadline passed; `cancelled`: the run was cancelled;
         *     `stopped`: released, inherited by a fork, or the run is completed, failed or waiting.
         *     The last three are final.
         */
        public function state(): string
        {
            return Values::of($this)->state();
        }

        /**
         * Returns whether this process still owns the run: true exactly in `held` and `unknown`.
         */
        public function isHeld(): bool
        {
            return Values::of($this)->isHeld();
        }

        /**
         * Returns the milliseconds until the lease expires, counted from when the last successful
         * heartbeat was sent; 0 outside `held` and `unknown`.
         *
         * @return int<0, max>
         */
        public function remainingMs(): int
        {
            return Values::of($this)->remainingMs();
        }

        /**
         * Reports progress: the limit `maxSilentSeconds` counts from here.
         *
         * @throws NrLlmLeaseLostException in `lost` and `stopped`; the message gives the reason
         * @throws NrLlmRunCancelledException in `cancelled`
         */
        public function step(): void
        {
            Values::of($this)->step();
        }

        /**
         * Returns the number of successful heartbeats, the first renewal included.
         *
         * @return int<0, max>
         */
        public function beats(): int
        {
            return Values::of($this)->beats();
        }

        /**
         * Returns why the last heartbeat failed, or which limit paused renewal; null after a
         * success.
         */
        public function lastError(): ?string
        {
            return Values::of($this)->lastError();
        }

        /**
         * Returns the run's uid.
         *
         * @return positive-int
         */
        public function runUid(): int
        {
            return Values::of($this)->runUid();
        }

        /**
         * Returns the owner.
         *
         * @return non-empty-string
         */
        public function claimedBy(): string
        {
            return Values::of($this)->claimedBy();
        }

        /**
         * Ends the heartbeats: `held` and `unknown` become `stopped`. The row keeps its values. A
         * second call has no effect.
         */
        public function release(): void
        {
            Values::of($this)->release();
        }

        /** @internal not cloneable */
        private function __clone() {}

        /** @internal not serializable */
        public function __serialize(): array
        {
            throw Caller::blame(new Exception("Serialization of 'NrLlmLease' is not allowed"));
        }

        /** @internal not serializable */
        public function __unserialize(array $data): void
        {
            throw Caller::blame(new Exception("Unserialization of 'NrLlmLease' is not allowed"));
        }
    }
}
