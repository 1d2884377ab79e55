<?php

declare(strict_types=1);

use NrLlmRuntime\Ffi\Caller;
use NrLlmRuntime\Ffi\Values;

require_once __DIR__ . '/../autoload.php';

// The extension declares the same class; then this file has nothing to do.
if (!class_exists(NrLlmFailure::class, false)) {
    /**
     * A classified failure, from {@see NrLlmRuntime::classifyFailure()}. As a string it is {@see
     * failureClass()}.
     *
     * Not cloneable, not serializable, not made by `new`.
     */
    final readonly class NrLlmFailure implements JsonSerializable, Stringable
    {
        /** The provider could not be reached. Retryable. */
        public const CONNECTION = 'connection';

        /** The provider answered HTTP 429. Retryable. */
        public const RATE_LIMIT = 'rateLimit';

        /** The provider answered HTTP 401 or 403. */
        public const AUTH = 'auth';

        /** The configuration of the provider is wrong. */
        public const CONFIGURATION = 'configuration';

        /** The provider answered another HTTP 4xx. */
        public const CLIENT_ERROR = 'clientError';

        /** The provider answered HTTP 5xx. Retryable. */
        public const SERVER_ERROR = 'serverError';

        /** The circuit to the provider is open. Retryable, and does not trip the circuit again. */
        public const CIRCUIT_OPEN = 'circuitOpen';

        /** Any other failure. */
        public const UNKNOWN = 'unknown';

        /** @internal not made by `new` */
        public function __construct()
        {
            throw Caller::blame(new Exception('You cannot instantiate this class from PHP.'));
        }

        /**
         * Returns the class of the failure.
         *
         * @return self::* one of the constants
         */
        public function failureClass(): string
        {
            return Values::of($this)['failureClass'];
        }

        /**
         * Returns whether another attempt may help: connection, rateLimit, serverError,
         * circuitOpen.
         */
        public function isRetryable(): bool
        {
            return Values::of($this)['retryable'];
        }

        /** Returns whether the failure trips the circuit: connection, rateLimit, serverError. */
        public function tripsCircuit(): bool
        {
            return Values::of($this)['tripsCircuit'];
        }

        /**
         * Returns the class name of the given error, as it goes into `error_class`: at most 255
         * characters, without the path of an anonymous class.
         */
        public function errorClass(): string
        {
            return Values::of($this)['errorClass'];
        }

        /** Returns the HTTP status that decided the class; null when none did. */
        public function httpStatus(): ?int
        {
            return Values::of($this)['httpStatus'];
        }

        /**
         * Returns for how many seconds the failure itself asks to wait: what its declared int
         * property `retryAfterSeconds` holds, as in nr_llm's CircuitOpenException; null where it
         * has none. {@see NrLlmRuntime::recoverFailure()} honours it, up to an hour.
         */
        public function retryAfterSeconds(): ?int
        {
            return Values::of($this)['retryAfterSeconds'];
        }

        /** Returns the class, as {@see failureClass()}. */
        public function __toString(): string
        {
            return Values::of($this)['failureClass'];
        }

        /**
         * Returns the failure as an array, for `json_encode()` and logs.
         *
         * @return array{failureClass: string, retryable: bool, tripsCircuit: bool,
         *     errorClass: string, httpStatus: int|null, retryAfterSeconds: int|null}
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
            throw Caller::blame(new Exception("Serialization of 'NrLlmFailure' is not allowed"));
        }

        /** @internal not serializable */
        public function __unserialize(array $data): void
        {
            throw Caller::blame(new Exception("Unserialization of 'NrLlmFailure' is not allowed"));
        }
    }
}
