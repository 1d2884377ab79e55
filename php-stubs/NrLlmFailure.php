<?php

/**
 * The class of a failure, from {@see NrLlmRuntime::classifyFailure()}. As a string it is {@see failureClass()}.
 *
 * Not cloneable, not serializable, not made by `new`.
 */
final class NrLlmFailure implements JsonSerializable, Stringable
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
     * The class.
     *
     * @return self::CONNECTION|self::RATE_LIMIT|self::AUTH|self::CONFIGURATION|self::CLIENT_ERROR|self::SERVER_ERROR|self::CIRCUIT_OPEN|self::UNKNOWN
     */
    public function failureClass(): string
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /** Whether another attempt may help: connection, rateLimit, serverError, circuitOpen. */
    public function isRetryable(): bool
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /** Whether the failure counts against the provider: connection, rateLimit, serverError. */
    public function tripsCircuit(): bool
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /** The class name of the error given, as it goes into `error_class`: at most 255 characters, without the path of an anonymous class. */
    public function errorClass(): string
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /** The HTTP status that decided; null when none did. */
    public function httpStatus(): ?int
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /** The class, as {@see failureClass()}. */
    public function __toString(): string
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * The same as an array, for `json_encode()` and logs.
     *
     * @return array{failureClass: string, retryable: bool, tripsCircuit: bool, errorClass: string, httpStatus: int|null}
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
