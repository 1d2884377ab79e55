--TEST--
Classes are final, have no properties, and cannot be cloned, serialised, extended or given properties; value classes have no constructor
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
$runtime = $db->runtime();
$uid = $db->running(time() + 100);
$objects = [
    $runtime,
    NrLlmRuntime::classifyFailure(new Exception()),
    $runtime->recoverFailure($uid, 'worker:b', new Exception()),
    $runtime->reap(),
    $runtime->keepLease($uid, 'worker:a'),
];
foreach ($objects as $object) {
    $class = new ReflectionClass($object);
    $interfaces = $class->getInterfaceNames();
    sort($interfaces);
    echo $class->getName(), ': ', implode(' ', array_keys(array_filter([
        'final' => $class->isFinal(), 'abstract' => $class->isAbstract(), 'iterable' => $class->isIterable(),
        'cloneable' => $class->isCloneable() || (new ReflectionClass($object::class))->isCloneable(),
    ]))), '; properties ', count($class->getProperties()), '; interfaces ', implode(' ', $interfaces), "\n";
    thrown('  clone', static fn () => clone $object);
    thrown_class('  serialize', static fn () => serialize($object));
    thrown_class('  unserialize', static fn () => unserialize(sprintf('O:%d:"%s":0:{}', strlen($object::class), $object::class)));
    thrown_class('  unserialize C', static fn () => @unserialize(sprintf('C:%d:"%s":0:{}', strlen($object::class), $object::class)));
    thrown_class('  new property', static function () use ($object): void { $object->extra = 1; });
    // Only for a class that is written in PHP does PHP create such an object, which is unusable.
    thrown_class('  without constructor', static fn () => $class->newInstanceWithoutConstructor()->{match (true) {
        $object instanceof JsonSerializable => 'jsonSerialize',
        $object instanceof NrLlmLease => 'state',
        default => 'close',
    }}());
    if (!$object instanceof NrLlmRuntime) {
        thrown_class('  new', static fn () => $class->newInstance());
    }
    echo '  dump ', str_contains(print_r($object, true), 'Object') ? 'ok' : 'odd', ', casts to ', count((array) $object), " properties\n";
}
echo "done\n";
?>
--EXPECTF--
NrLlmRuntime: final; properties 0; interfaces%w
  clone: Error: Call to private %SNrLlmRuntime::__clone() from global scope
  serialize: Exception
  unserialize: Exception
  unserialize C: %s
  new property: Error
  without constructor: %rReflectionException|Error%r
  dump ok, casts to 0 properties
NrLlmFailure: final; properties 0; interfaces JsonSerializable Stringable
  clone: Error: Call to private %SNrLlmFailure::__clone() from global scope
  serialize: Exception
  unserialize: Exception
  unserialize C: %s
  new property: Error
  without constructor: %rReflectionException|Error%r
  new: Exception
  dump ok, casts to 0 properties
NrLlmRecovery: final; properties 0; interfaces JsonSerializable
  clone: Error: Call to private %SNrLlmRecovery::__clone() from global scope
  serialize: Exception
  unserialize: Exception
  unserialize C: %s
  new property: Error
  without constructor: %rReflectionException|Error%r
  new: Exception
  dump ok, casts to 0 properties
NrLlmReapReport: final; properties 0; interfaces Countable JsonSerializable
  clone: Error: Call to private %SNrLlmReapReport::__clone() from global scope
  serialize: Exception
  unserialize: Exception
  unserialize C: %s
  new property: Error
  without constructor: %rReflectionException|Error%r
  new: Exception
  dump ok, casts to 0 properties
NrLlmLease: final; properties 0; interfaces%w
  clone: Error: Call to private %SNrLlmLease::__clone() from global scope
  serialize: Exception
  unserialize: Exception
  unserialize C: %s
  new property: Error
  without constructor: %rReflectionException|Error%r
  new: Exception
  dump ok, casts to 0 properties
done
