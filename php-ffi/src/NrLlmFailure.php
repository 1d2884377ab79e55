<?php

declare(strict_types=1);

use NrLlmRuntime\Ffi\Caller;
use NrLlmRuntime\Ffi\Values;

require_once __DIR__ . '/../autoload.php';

// The extension declares the same class; then this file has nothing to do.
if (!class_exists(NrLlmFailure::class, false)) {
    /**
     * The class of a failure, from {@see NrLlmRuntime::classifyFailure()}. As a string it is {@see failureClass()}.
     *
     * Not cloneable, not serializable, not made by `new`.
     */
    final readonly class NrLlmFailure implements JsonSerializable, Stringable
    {
        /** The provider could not be reached. Retryable. */
        public const CONNECTION = 'connection';

        /** The provider answered 429. Retryable. */
        public const RATE_LIMIT = 'rateLimit';

        /** The provider answered 401 or 403. */
        public const AUTH = 'auth';

        /** The provider is not set up rightly. */
        public const CONFIGURATION = 'configuration';

        /** The provider answered another 4xx. */
        public const CLIENT_ERROR = 'clientError';

        /** The provider answered 5xx. Retryable. */
        public const SERVER_ERROR = 'serverError';

        /** The circuit to the provider is open. Retryable, and does not trip it again. */
        public const CIRCUIT_OPEN = 'circuitOpen';

        /** None of these. */
        public const UNKNOWN = 'unknown';

        /** @internal not made by `new` */
        public function __construct()
        {
            throw Caller::blame(new Exception('You cannot instantiate this class from PHP.'));
        }

        /**
         * The class.
         *
         * @return self::CONNECTION|self::RATE_LIMIT|self::AUTH|self::CONFIGURATION|self::CLIENT_ERROR|self::SERVER_ERROR|self::CIRCUIT_OPEN|self::UNKNOWN
         */
        public function failureClass(): string
        {
            return Values::of($this)['failureClass'];
        }

        /** Whether another attempt may help: connection, rateLimit, serverError, circuitOpen. */
        public function isRetryable(): bool
        {
            return Values::of($this)['retryable'];
        }

        /** Whether the failure counts against the provider: connection, rateLimit, serverError. */
        public function tripsCircuit(): bool
        {
            return Values::of($this)['tripsCircuit'];
        }

        /** The class name of the error given, as it goes into `error_class`: at most 255 characters, without the path of an anonymous class. */
        public function errorClass(): string
        {
            return Values::of($this)['errorClass'];
        }

        /** The HTTP status that decided; null when none did. */
        public function httpStatus(): ?int
        {
            return Values::of($this)['httpStatus'];
        }

        /** For how many seconds the failure itself asks to wait; null when it does not. {@see NrLlmRuntime::recoverFailure()} honours it. */
        public function retryAfterSeconds(): ?int
        {
            return Values::of($this)['retryAfterSeconds'];
        }

        /** The class, as {@see failureClass()}. */
        public function __toString(): string
        {
            return Values::of($this)['failureClass'];
        }

        /**
         * The same as an array, for `json_encode()` and logs.
         *
         * @return array{failureClass: string, retryable: bool, tripsCircuit: bool, errorClass: string, httpStatus: int|null, retryAfterSeconds: int|null}
         */
        public function jsonSerialize(): array
        {
            return Values::of($this);
        }

        /** @internal not cloneable */
        private function __clone()
        {
        }

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
