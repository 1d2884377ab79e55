<?php

declare(strict_types=1);

namespace Bench;

use Netresearch\NrLlm\Provider\Exception as Provider;

/**
 * The value object that a classification in PHP builds, with the data of NrLlmFailure and as
 * immutable.
 */
final class PlainFailure implements \JsonSerializable
{
    public function __construct(
        private readonly string $failureClass,
        private readonly string $errorClass,
        private readonly ?int $httpStatus,
    ) {}

    public function failureClass(): string
    {
        return $this->failureClass;
    }

    public function isRetryable(): bool
    {
        return in_array($this->failureClass, ['connection', 'rateLimit', 'serverError', 'circuitOpen'], true);
    }

    public function errorClass(): string
    {
        return $this->errorClass;
    }

    public function httpStatus(): ?int
    {
        return $this->httpStatus;
    }

    public function jsonSerialize(): array
    {
        return ['failureClass' => $this->failureClass, 'errorClass' => $this->errorClass, 'httpStatus' => $this->httpStatus];
    }
}

/** The failure taxonomy in plain PHP, as short as possible with the same results. */
final class Ladder
{
    public static function classify(\Throwable $error): PlainFailure
    {
        $name = $error::class;
        // The rest of an anonymous class's name is a path on this server.
        if (($nul = strpos($name, "\0")) !== false) {
            $name = substr($name, 0, $nul);
        }
        if (strlen($name) > 255) {
            $name = mb_substr($name, 0, 255);
        }
        $current = $error;
        for ($depth = 0; $depth <= 100_000; $depth++) {
            if ($current instanceof Provider\CircuitOpenException) {
                return new PlainFailure('circuitOpen', $name, null);
            }
            if ($current instanceof Provider\FallbackChainExhaustedException) {
                $attempts = $current->getAttemptErrors();
                $last = $attempts === [] ? null : ($attempts[array_key_last($attempts)]['error'] ?? null);
                if (!$last instanceof \Throwable) {
                    break;
                }
                $current = $last;
                continue;
            }
            if ($current instanceof Provider\ProviderConnectionException || $current instanceof \Psr\Http\Client\NetworkExceptionInterface) {
                return new PlainFailure('connection', $name, null);
            }
            if ($current instanceof Provider\ProviderConfigurationException) {
                return new PlainFailure('configuration', $name, null);
            }
            if ($current instanceof Provider\ProviderResponseException) {
                $code = $current->getCode();
                $class = match (true) {
                    $code === 401, $code === 403 => 'auth',
                    $code === 429 => 'rateLimit',
                    $code >= 500 && $code <= 599 => 'serverError',
                    $code >= 400 && $code <= 499 => 'clientError',
                    default => null,
                };
                return $class === null ? new PlainFailure('unknown', $name, null) : new PlainFailure($class, $name, $code);
            }
            break;
        }

        return new PlainFailure('unknown', $name, null);
    }
}
