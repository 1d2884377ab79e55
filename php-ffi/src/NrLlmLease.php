<?php

declare(strict_types=1);

use NrLlmRuntime\Ffi\Caller;
use NrLlmRuntime\Ffi\Values;

require_once __DIR__ . '/../autoload.php';

// The extension declares the same class; then this file has nothing to do.
if (!class_exists(NrLlmLease::class, false)) {
    /**
     * A lease that a thread keeps renewing, from {@see NrLlmRuntime::keepLease()}. Released when destroyed, and at the end of the request.
     *
     * All reads are of memory and a clock: none waits for the server. Each compares the lease's deadline with the clock, so that a process that
     * was stopped and continued never reads a stale `held`.
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
         * How the lease stands.
         *
         * @return 'held'|'unknown'|'lost'|'cancelled'|'stopped' `held`: the last beat succeeded; `unknown`: it failed, and the deadline has not
         *     passed; `lost`: the server named another owner, or the deadline passed; `cancelled`: the run was; `stopped`: released, inherited by a
         *     fork, or the run was settled. The last three are final.
         */
        public function state(): string
        {
            return Values::of($this)->state();
        }

        /** Whether the run is still this process's: true exactly in `held` and `unknown`. */
        public function isHeld(): bool
        {
            return Values::of($this)->isHeld();
        }

        /**
         * Milliseconds until the lease runs out, counted from when the last successful beat was sent; 0 outside `held` and `unknown`.
         *
         * @return int<0, max>
         */
        public function remainingMs(): int
        {
            return Values::of($this)->remainingMs();
        }

        /**
         * Says that progress was made: the limit `maxSilentSeconds` counts from here.
         *
         * @throws NrLlmLeaseLostException in `lost` and `stopped`; the message says why
         * @throws NrLlmRunCancelledException in `cancelled`
         */
        public function step(): void
        {
            Values::of($this)->step();
        }

        /**
         * How many beats succeeded, the first renewal included.
         *
         * @return int<0, max>
         */
        public function beats(): int
        {
            return Values::of($this)->beats();
        }

        /** Why the last beat failed, or which limit ended the beats; null when nothing went wrong. */
        public function lastError(): ?string
        {
            return Values::of($this)->lastError();
        }

        /**
         * The run's uid.
         *
         * @return positive-int
         */
        public function runUid(): int
        {
            return Values::of($this)->runUid();
        }

        /**
         * The owner.
         *
         * @return non-empty-string
         */
        public function claimedBy(): string
        {
            return Values::of($this)->claimedBy();
        }

        /** Stops the beats: `held` and `unknown` become `stopped`. The row is left as it is. May be called again. */
        public function release(): void
        {
            Values::of($this)->release();
        }

        /** @internal not cloneable */
        private function __clone()
        {
        }

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
