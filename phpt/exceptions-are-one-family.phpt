--TEST--
Exceptions: subclasses of RuntimeException, created and extended in PHP as usual, with the file, line and trace of the call
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
foreach (['NrLlmException', 'NrLlmConfigurationException', 'NrLlmConnectionException', 'NrLlmQueryException', 'NrLlmLeaseLostException',
    'NrLlmRunCancelledException'] as $name) {
    $class = new ReflectionClass($name);
    echo $name, ' extends ', $class->getParentClass()->getName(), $class->isFinal() ? ', final' : '', "\n";
    $error = new $name('made in PHP', 7, new LogicException('before'));
    check_by_hand($error);
}
function check_by_hand(NrLlmException $error): void
{
    if ([$error->getMessage(), $error->getCode(), $error->getPrevious()?->getMessage(), $error->getFile(), $error->getLine() > 0, count($error->getTrace())]
        !== ['made in PHP', 7, 'before', __FILE__, true, 0]) {
        var_dump($error);
    }
}
final class OfMine extends NrLlmException
{
}
echo get_class(new OfMine('x')), ' is an ', get_parent_class(OfMine::class), "\n";

function outer(): NrLlmRuntime
{
    return inner();
}
function inner(): NrLlmRuntime
{
    return new NrLlmRuntime(['driver' => 'pdo_sqlite']); // line 28
}
try {
    outer();
} catch (RuntimeException $error) {
    echo get_class($error), ' in ', basename($error->getFile()), ' line ', $error->getLine(), "\n";
    foreach ($error->getTrace() as $frame) {
        echo '  ', $frame['class'] ?? '', $frame['type'] ?? '', $frame['function'], ' line ', $frame['line'], "\n";
    }
    var_dump($error->getPrevious(), $error->getCode());
}
?>
--EXPECT--
NrLlmException extends RuntimeException
NrLlmConfigurationException extends NrLlmException, final
NrLlmConnectionException extends NrLlmException, final
NrLlmQueryException extends NrLlmException, final
NrLlmLeaseLostException extends NrLlmException, final
NrLlmRunCancelledException extends NrLlmException, final
OfMine is an NrLlmException
NrLlmConfigurationException in exceptions-are-one-family.php line 28
  NrLlmRuntime->__construct line 28
  inner line 24
  outer line 31
NULL
int(0)
