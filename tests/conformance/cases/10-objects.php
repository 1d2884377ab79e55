<?php

declare(strict_types=1);

// Constants, and which uses the objects permit.
foreach (['NrLlmRuntime', 'NrLlmFailure', 'NrLlmRecovery'] as $class) {
    foreach ((new ReflectionClass($class))->getConstants() as $name => $value) {
        echo "$class::$name = ", $name === 'VERSION' ? 'a version' : shown($value), "\n";
    }
}
$db = database();
$runtime = $db->runtime();
$objects = [
    $runtime,
    NrLlmRuntime::classifyFailure(new Exception()),
    $runtime->recoverFailure($db->running(2000000000), 'worker:b', new Exception()),
    $runtime->reap(),
    $runtime->keepLease($db->running(2000000000), 'worker:a'),
];
foreach ($objects as $object) {
    $class = $object::class;
    echo "-- $class\n";
    $reflection = new ReflectionClass($object);
    $interfaces = $reflection->getInterfaceNames();
    sort($interfaces);
    show('final, cloneable', static fn () => [$reflection->isFinal(), $reflection->isCloneable(), (new ReflectionClass($class))->isCloneable(), count($reflection->getProperties()), $interfaces]);
    thrown('clone', static fn () => clone $object);
    thrown('serialize', static fn () => serialize($object));
    thrown('unserialize', static fn () => unserialize(sprintf('O:%d:"%s":0:{}', strlen($class), $class)));
    thrown_class('new property', static function () use ($object): void { $object->extra = 1; });
    thrown_class('read property', static fn () => @$object->extra);
    show('as arrays', static fn () => [(array) $object, get_object_vars($object), get_mangled_object_vars($object)]);
    show('dump', static function () use ($object): string {
        ob_start();
        var_dump($object);
        print_r($object);
        return preg_replace('/#\d+/', '#', ob_get_clean());
    });
    show('json', static fn () => json_encode($object));
    if (!$object instanceof NrLlmRuntime) {
        show('new', static fn () => new $class());
    }
    show('string', static fn () => $object instanceof Stringable ? (string) $object : 'none');
    show('count', static fn () => $object instanceof Countable ? count($object) : 'none');
}
echo "-- exceptions\n";
foreach (['NrLlmException', 'NrLlmConfigurationException', 'NrLlmConnectionException', 'NrLlmQueryException', 'NrLlmLeaseLostException', 'NrLlmRunCancelledException'] as $class) {
    $reflection = new ReflectionClass($class);
    $error = new $class('by hand', 5, new LogicException('before'));
    show($class, static fn () => [$reflection->getParentClass()->getName(), $reflection->isFinal(), $error->getMessage(), $error->getCode(), $error->getPrevious()->getMessage(), basename($error->getFile())]);
}
echo "-- where an exception comes from\n";
function outer(NrLlmRuntime $runtime): void
{
    inner($runtime);
}
function inner(NrLlmRuntime $runtime): void
{
    $runtime->claimQueued(0, 'w', 1); // line 57
}
foreach (['a call' => static fn () => outer($runtime), 'by PHP itself' => static fn () => array_map($runtime->requeue(...), [0], ['w'])] as $label => $call) {
    try {
        $call();
    } catch (ValueError $error) {
        echo $label, ': ', basename($error->getFile()), ':', $error->getLine(), "\n";
        foreach ($error->getTrace() as $frame) {
            if (($frame['class'] ?? '') === '' && str_starts_with($frame['function'], 'require')) {
                break;
            }
            echo '    ', $frame['class'] ?? '', $frame['type'] ?? '', $frame['function'], ' ', isset($frame['line']) ? basename($frame['file']) . ':' . $frame['line'] : 'no line', "\n";
        }
    }
}
