<?php

declare(strict_types=1);

use Netresearch\NrLlm\Provider\Exception as P;

// The taxonomy, also with throwables that could mislead it.
final class Network extends Exception implements Psr\Http\Client\NetworkExceptionInterface
{
}
final class Both extends P\ProviderResponseException implements Psr\Http\Client\NetworkExceptionInterface
{
}
final class OddCode extends P\ProviderResponseException
{
    public function __construct(mixed $code)
    {
        parent::__construct('x');
        $this->code = $code;
    }
}
final class NoCode extends P\ProviderResponseException
{
    public function __construct()
    {
        unset($this->code);
    }
    public function __get(string $name): mixed
    {
        echo "user code ran\n";

        return 429;
    }
}
final class PublicCode extends P\ProviderResponseException
{
    public $code = 429;
    public function __construct()
    {
    }
}
final class Waiting extends P\CircuitOpenException
{
    public function __construct(private readonly int $retryAfterSeconds)
    {
        parent::__construct('x');
    }
}
final class HiddenAttempts extends P\CircuitOpenException
{
}
class Attempt
{
    private mixed $error;
    public function __construct(mixed $error)
    {
        $this->error = $error;
    }
    public function __get(string $name): mixed
    {
        echo "user code ran\n";

        return $this->error;
    }
}
final class SubAttempt extends Attempt
{
}
final class StaticAttempts extends P\FallbackChainExhaustedException
{
    public function getAttemptErrors(): mixed
    {
        return [['error' => new P\ProviderResponseException('x', 500)]];
    }
}
$attempt = static fn (mixed ...$attempts) => new P\FallbackChainExhaustedException($attempts);
$connection = new P\ProviderConnectionException('x', 503);
$reference = ['configuration' => 'c', 'error' => &$connection];
$errors = [
    'exception' => new Exception('x', 503), 'error' => new Error('x', 503), 'circuit' => new P\CircuitOpenException('x', 401), 'connection' => $connection, 'network' => new Network(),
    'configuration' => new P\ProviderConfigurationException('x', 429), 'both' => new Both('x', 401), 'previous' => new Exception('x', 0, $connection), 'alias' => new HiddenAttempts(),
    'no code' => new NoCode(), 'public code' => new PublicCode(), 'empty chain' => $attempt(), 'chain' => $attempt(['error' => new Exception()], ['configuration' => 5, 'error' => $connection]),
    'nested' => $attempt(['error' => $attempt(['error' => $attempt(['error' => new P\ProviderResponseException('x', 429)])])]), 'no list' => new P\FallbackChainExhaustedException(['a' => ['error' => $connection]]),
    'a gap' => new P\FallbackChainExhaustedException([1 => ['error' => $connection]]), 'a string' => new P\FallbackChainExhaustedException('x'), 'null' => new P\FallbackChainExhaustedException(null),
    'no error' => $attempt(['configuration' => 'c']), 'error null' => $attempt(['error' => null]), 'error a string' => $attempt(['error' => 'x']), 'error no throwable' => $attempt(['error' => new stdClass()]),
    'attempt the throwable' => $attempt($connection), 'attempt an object' => $attempt(new Attempt($connection)), 'attempt a subclass' => $attempt(new SubAttempt($connection)),
    'attempt a public property' => $attempt((object) ['configuration' => 'c']), 'attempt null' => $attempt(null), 'reference' => $attempt($reference), 'a method of its own' => new StaticAttempts([]),
    'waiting' => new Waiting(90), 'waiting not at all' => new Waiting(-1), 'waiting chain' => $attempt(['error' => new Waiting(7)]),
];
foreach ([401, 403, 429, 500, 599, 400, 404, 499, 200, 399, 600, 0, -1, PHP_INT_MAX, PHP_INT_MIN, '429', 429.0, null, true, [429]] as $code) {
    $errors['code ' . json_encode($code)] = new OddCode($code);
}
foreach ($errors as $label => $error) {
    show($label, static fn () => NrLlmRuntime::classifyFailure($error));
}
$failure = NrLlmRuntime::classifyFailure(error: $errors['nested']);
show('methods', static fn () => [$failure->failureClass(), $failure->isRetryable(), $failure->tripsCircuit(), $failure->errorClass(), $failure->httpStatus(), $failure->retryAfterSeconds(), (string) $failure]);
