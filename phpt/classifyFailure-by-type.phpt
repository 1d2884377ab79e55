--TEST--
classifyFailure(): every family of the taxonomy, by type, with its class and consequences
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/provider.inc';
use Netresearch\NrLlm\Provider\Exception as P;

class SubConnection extends P\ProviderConnectionException
{
}
final class Network extends Exception implements Psr\Http\Client\NetworkExceptionInterface
{
}
class SubResponse extends P\ProviderResponseException
{
}
final class ResponseAndNetwork extends P\ProviderResponseException implements Psr\Http\Client\NetworkExceptionInterface
{
}
function show(string $label, Throwable $error): void
{
    $f = NrLlmRuntime::classifyFailure($error);
    printf("%-26s %-14s %-9s %-8s %s\n", $label, $f->failureClass(), $f->isRetryable() ? 'retryable' : '-', $f->tripsCircuit() ? 'trips' : '-', $f->httpStatus() ?? '-');
    check($f->errorClass() === get_class($error), "error class $label");
    check((string) $f === $f->failureClass(), 'as a string');
}
function check(bool $holds, string $message): void
{
    if (!$holds) {
        echo "FAILED: $message\n";
    }
}
function chain(mixed ...$errors): P\FallbackChainExhaustedException
{
    return new P\FallbackChainExhaustedException(array_map(static fn ($e): array => ['configuration' => 'c', 'error' => $e], $errors));
}
show('circuit open', new P\CircuitOpenException('x', 401));
show('connection', new P\ProviderConnectionException('x', 401));
show('subclass of connection', new SubConnection());
show('PSR-18 network', new Network());
show('configuration', new P\ProviderConfigurationException('x', 503));
foreach ([401, 403, 429, 500, 503, 599, 400, 402, 404, 422, 499, 200, 399, 600, 0, -1, 4290, PHP_INT_MAX] as $code) {
    show("response $code", new P\ProviderResponseException('x', $code));
}
show('subclass of response', new SubResponse('x', 429));
show('network before response', new ResponseAndNetwork('x', 401));
foreach ([new P\ProviderException('x', 503), new Exception('x', 429), new Error('x', 500), new RuntimeException('503'), new TypeError('x'),
    new Exception('x', 0, new P\ProviderConnectionException('inside')), new JsonException()] as $error) {
    show($error::class, $error);
}
echo "chains:\n";
show('last is 503', chain(new P\ProviderResponseException('a', 401), new P\ProviderResponseException('b', 503)));
show('last is 401', chain(new P\ProviderResponseException('b', 503), new P\ProviderResponseException('a', 401)));
show('nested', chain(new Exception(), chain(new Exception(), chain(new P\ProviderResponseException('c', 429)))));
show('empty', chain());
show('no list', new P\FallbackChainExhaustedException(['a' => ['error' => new P\ProviderConnectionException()]]));
show('a gap in the list', new P\FallbackChainExhaustedException([1 => ['error' => new P\ProviderConnectionException()]]));
show('not even an array', new P\FallbackChainExhaustedException('oops'));
show('null', new P\FallbackChainExhaustedException(null));
show('attempt without error', new P\FallbackChainExhaustedException([['configuration' => 'c']]));
show('attempt is no array', new P\FallbackChainExhaustedException([new P\ProviderConnectionException()]));
show('error is no throwable', chain(new P\ProviderConnectionException(), 'a string'));
show('error is an object', chain(new stdClass()));
show('list by reference', (static function () {
    $error = new P\ProviderConnectionException();
    $attempt = ['configuration' => 'c', 'error' => &$error];
    $attempts = [&$attempt];
    return new P\FallbackChainExhaustedException($attempts);
})());
?>
--EXPECT--
circuit open               circuitOpen    retryable -        -
connection                 connection     retryable trips    -
subclass of connection     connection     retryable trips    -
PSR-18 network             connection     retryable trips    -
configuration              configuration  -         -        -
response 401               auth           -         -        401
response 403               auth           -         -        403
response 429               rateLimit      retryable trips    429
response 500               serverError    retryable trips    500
response 503               serverError    retryable trips    503
response 599               serverError    retryable trips    599
response 400               clientError    -         -        400
response 402               clientError    -         -        402
response 404               clientError    -         -        404
response 422               clientError    -         -        422
response 499               clientError    -         -        499
response 200               unknown        -         -        -
response 399               unknown        -         -        -
response 600               unknown        -         -        -
response 0                 unknown        -         -        -
response -1                unknown        -         -        -
response 4290              unknown        -         -        -
response 9223372036854775807 unknown        -         -        -
subclass of response       rateLimit      retryable trips    429
network before response    connection     retryable trips    -
Netresearch\NrLlm\Provider\Exception\ProviderException unknown        -         -        -
Exception                  unknown        -         -        -
Error                      unknown        -         -        -
RuntimeException           unknown        -         -        -
TypeError                  unknown        -         -        -
Exception                  unknown        -         -        -
JsonException              unknown        -         -        -
chains:
last is 503                serverError    retryable trips    503
last is 401                auth           -         -        401
nested                     rateLimit      retryable trips    429
empty                      unknown        -         -        -
no list                    unknown        -         -        -
a gap in the list          unknown        -         -        -
not even an array          unknown        -         -        -
null                       unknown        -         -        -
attempt without error      unknown        -         -        -
attempt is no array        unknown        -         -        -
error is no throwable      unknown        -         -        -
error is an object         unknown        -         -        -
list by reference          connection     retryable trips    -
