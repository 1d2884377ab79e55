<?php

declare(strict_types=1);

// The exceptions that the failure taxonomy knows, as nr_llm and PSR-18 declare them, reduced to
// what the taxonomy reads.

namespace Psr\Http\Client {
    interface ClientExceptionInterface extends \Throwable {}
    interface NetworkExceptionInterface extends ClientExceptionInterface {}
}

namespace Netresearch\NrLlm\Provider\Exception {
    class ProviderException extends \RuntimeException {}
    class ProviderConnectionException extends ProviderException {}
    class ProviderConfigurationException extends ProviderException {}
    class ProviderResponseException extends ProviderException {}
    class CircuitOpenException extends ProviderException {}
    class FallbackChainExhaustedException extends ProviderException
    {
        /** @param list<array{configuration: string, error: \Throwable}> $attempts */
        public function __construct(string $message, private readonly array $attempts)
        {
            parent::__construct($message);
        }

        /** @return list<array{configuration: string, error: \Throwable}> */
        public function getAttemptErrors(): array
        {
            return $this->attempts;
        }
    }
}

namespace Bench {
    use Netresearch\NrLlm\Provider\Exception as Provider;

    final class NetworkFailure extends \RuntimeException implements \Psr\Http\Client\NetworkExceptionInterface {}

    /** Returns one throwable per family. */
    function throwable(string $family): \Throwable
    {
        return match ($family) {
            'plain' => new \RuntimeException('some error'),
            'connection' => new Provider\ProviderConnectionException('timeout'),
            'network' => new NetworkFailure('refused'),
            'configuration' => new Provider\ProviderConfigurationException('no key'),
            'auth' => new Provider\ProviderResponseException('unauthorized', 401),
            'rateLimit' => new Provider\ProviderResponseException('slow down', 429),
            'serverError' => new Provider\ProviderResponseException('unavailable', 503),
            'clientError' => new Provider\ProviderResponseException('bad request', 400),
            'circuitOpen' => new Provider\CircuitOpenException('open'),
            'chain' => new Provider\FallbackChainExhaustedException('exhausted', [
                ['configuration' => 'a', 'error' => new Provider\ProviderResponseException('unauthorized', 401)],
                ['configuration' => 'b', 'error' => new Provider\ProviderResponseException('slow down', 429)],
            ]),
        };
    }
}
