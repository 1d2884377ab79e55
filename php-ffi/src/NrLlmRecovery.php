<?php

declare(strict_types=1);

use NrLlmRuntime\Ffi\Caller;
use NrLlmRuntime\Ffi\Values;

require_once __DIR__ . '/../autoload.php';

// The extension declares the same class; then this file has nothing to do.
if (!class_exists(NrLlmRecovery::class, false)) {
    /**
     * What became of a failed run, from {@see NrLlmRuntime::recoverFailure()}.
     *
     * Not cloneable, not serializable, not made by `new`.
     */
    final readonly class NrLlmRecovery implements JsonSerializable
    {
        /** The run is queued again. */
        public const REQUEUED = 'requeued';

        /** The run has ended as failed. */
        public const DEAD_LETTERED = 'dead_lettered';

        /** The caller does not own the run: nothing was written. */
        public const LEASE_LOST = 'lease_lost';

        /** @internal not made by `new` */
        public function __construct()
        {
            throw Caller::blame(new Exception('You cannot instantiate this class from PHP.'));
        }

        /**
         * Returns what was written.
         *
         * @return self::REQUEUED|self::DEAD_LETTERED|self::LEASE_LOST
         */
        public function outcome(): string
        {
            return Values::of($this)['outcome'];
        }

        /**
         * Returns why the run was dead-lettered; null otherwise.
         *
         * @return 'not_retryable'|'retries_exhausted'|null
         */
        public function reason(): ?string
        {
            return Values::of($this)['reason'];
        }

        /** Returns the classified failure. */
        public function failure(): NrLlmFailure
        {
            return Values::make(NrLlmFailure::class, Values::of($this)['failure']);
        }

        /**
         * Returns how often the run has been requeued, as the row has it now; null when the lease
         * is lost.
         *
         * @return int<0, max>|null
         */
        public function requeueCount(): ?int
        {
            return Values::of($this)['requeueCount'];
        }

        /**
         * Returns the delay before the wake-up in milliseconds, jitter included; null unless
         * requeued.
         *
         * @return int<0, max>|null
         */
        public function delayMs(): ?int
        {
            return Values::of($this)['delayMs'];
        }

        /**
         * Returns whether the wake-up was written in the same transaction. When false after a
         * requeue, the caller notifies a worker.
         */
        public function wokenUp(): bool
        {
            return Values::of($this)['wokenUp'];
        }

        /**
         * Returns whether the server's reply was lost and the outcome was read back from the row.
         */
        public function isConfirmed(): bool
        {
            return Values::of($this)['confirmed'];
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
            return Values::of($this);
        }

        /** @internal not cloneable */
        private function __clone() {}

        /** @internal not serializable */
        public function __serialize(): array
        {
            throw Caller::blame(new Exception("Serialization of 'NrLlmRecovery' is not allowed"));
        }

        /** @internal not serializable */
        public function __unserialize(array $data): void
        {
            throw Caller::blame(new Exception("Unserialization of 'NrLlmRecovery' is not allowed"));
        }
    }
}
