<?php

declare(strict_types=1);

namespace Netresearch\NrLlm\Provider\Exception;

/** Stands in for nr_llm's exception. */
final class CircuitOpenException extends \RuntimeException
{
    public function __construct(public readonly string $provider, public readonly int $retryAfterSeconds)
    {
        parent::__construct('Circuit open.');
    }
}
