<?php

/**
 * nr_llm's provider exceptions that the demo throws. The extension knows them by name.
 */

declare(strict_types=1);

namespace Netresearch\NrLlm\Provider\Exception;

class ProviderException extends \RuntimeException {}

class ProviderConnectionException extends ProviderException {}

class ProviderResponseException extends ProviderException {}

class FallbackChainExhaustedException extends ProviderException
{
    /** @param list<array{configuration: string, error: \Throwable}> $attempts */
    public function __construct(private readonly array $attempts)
    {
        parent::__construct('Every provider of the chain failed');
    }

    /** @return list<array{configuration: string, error: \Throwable}> */
    public function getAttemptErrors(): array
    {
        return $this->attempts;
    }
}
