<?php

/**
 * Describes classes by Reflection and compares two descriptions: what the extension declares, and
 * what php-stubs/ promises.
 */

declare(strict_types=1);

/**
 * What is known to differ, and may: ext-php-rs cannot declare a union, so `array|string` is `mixed`
 * in the extension.
 */
const KNOWN_DIFFERENCES = [
    'NrLlmRuntime::__construct($connection) type' => ['extension' => 'mixed', 'stubs' => 'array|string'],
];

/**
 * The description of a class: one entry for each fact, by a name that says where it is.
 *
 * @return array<string, string>
 */
function describe_class(ReflectionClass $class): array
{
    $name = $class->getName();
    $interfaces = $class->getInterfaceNames();
    sort($interfaces);
    $facts = [
        "$name kind" => ($class->isFinal() ? 'final ' : '') . ($class->isAbstract() ? 'abstract ' : '') . ($class->isInterface() ? 'interface' : 'class'),
        "$name parent" => $class->getParentClass() ? $class->getParentClass()->getName() : 'none',
        "$name interfaces" => implode(', ', $interfaces),
    ];
    foreach ($class->getReflectionConstants() as $constant) {
        if ($constant->getDeclaringClass()->getName() === $name) {
            $facts["$name::{$constant->getName()}"] = modifiers($constant) . ' const ' . var_export($constant->getValue(), true);
        }
    }
    foreach ($class->getProperties() as $property) {
        if ($property->getDeclaringClass()->getName() === $name) {
            $facts["$name::\${$property->getName()}"] = modifiers($property) . ' property ' . ($property->getType() ?? 'untyped');
        }
    }
    foreach ($class->getMethods() as $method) {
        if ($method->getDeclaringClass()->getName() === $name) {
            $facts += describe_method($name, $method);
        }
    }
    return $facts;
}

/** @return array<string, string> */
function describe_method(string $class, ReflectionMethod $method): array
{
    $where = "$class::{$method->getName()}()";
    $names = array_map(static fn (ReflectionParameter $parameter): string => '$' . $parameter->getName(), $method->getParameters());
    $facts = [
        $where => modifiers($method) . ' method' . ($method->returnsReference() ? ' by reference' : ''),
        "$where parameters" => implode(', ', $names),
        "$where returns" => (string) ($method->getReturnType() ?? $method->getTentativeReturnType() ?? 'nothing declared'),
    ];
    foreach ($method->getParameters() as $parameter) {
        $at = "$class::{$method->getName()}(\${$parameter->getName()})";
        $type = $parameter->getType();
        if ($type instanceof ReflectionUnionType) {
            $members = array_map('strval', $type->getTypes());
            sort($members);
            $type = implode('|', $members);
        }
        $facts["$at type"] = (string) ($type ?? 'untyped');
        // By value: `self::LEASE_SECONDS` and 900 are the same default.
        $facts["$at default"] = $parameter->isDefaultValueAvailable() ? var_export($parameter->getDefaultValue(), true) : 'none';
        $facts["$at passing"] = ($parameter->isOptional() ? 'optional' : 'required') . ($parameter->isPassedByReference() ? ' by reference' : '')
            . ($parameter->isVariadic() ? ' variadic' : '');
    }
    return $facts;
}

function modifiers(ReflectionMethod|ReflectionProperty|ReflectionClassConstant $member): string
{
    return implode(' ', Reflection::getModifierNames($member->getModifiers()));
}

/**
 * Every class that the loaded extension declares.
 *
 * @return array<string, string>
 */
function describe_extension(string $extension = 'nrllm_runtime'): array
{
    $facts = [];
    foreach ((new ReflectionExtension($extension))->getClasses() as $class) {
        $facts += describe_class($class);
    }
    ksort($facts);
    return $facts;
}

/**
 * Every class that the PHP files of a folder declare. Only in a process without the extension.
 *
 * @return array<string, string>
 */
function describe_stubs(string $folder): array
{
    if (extension_loaded('nrllm_runtime')) {
        throw new LogicException('stubs are never loaded beside the extension');
    }
    // Parents are found by their file's name; a file that declares another class than its name says
    // is found by the comparison.
    spl_autoload_register(static function (string $class) use ($folder): void {
        if (is_file("$folder/$class.php")) {
            require_once "$folder/$class.php";
        }
    });
    $before = get_declared_classes();
    foreach (glob("$folder/*.php") ?: [] as $file) {
        require_once $file;
    }
    $facts = [];
    foreach (array_diff(get_declared_classes(), $before) as $class) {
        $facts += describe_class(new ReflectionClass($class));
    }
    ksort($facts);
    return $facts;
}

/**
 * The description of a stub folder, made in a process of its own without the extension.
 *
 * @return array<string, string>
 */
function describe_stubs_apart(string $folder): array
{
    $code = 'require $argv[1]; echo json_encode(describe_stubs($argv[2]), JSON_THROW_ON_ERROR);';
    $process = proc_open([PHP_BINARY, '-n', '-d', 'display_errors=stderr', '-r', $code, '--', __FILE__, $folder], [1 => ['pipe', 'w'], 2 => ['pipe', 'w']], $pipes);
    if ($process === false) {
        throw new RuntimeException('PHP could not be started');
    }
    $output = stream_get_contents($pipes[1]);
    $errors = stream_get_contents($pipes[2]);
    if (proc_close($process) !== 0) {
        throw new RuntimeException("the stubs in $folder cannot be described: $errors$output");
    }
    return json_decode($output, true, flags: JSON_THROW_ON_ERROR);
}

/**
 * Returns the differences, both ways, as sentences; an empty list when there are none.
 *
 * @param array<string, string> $extension
 * @param array<string, string> $stubs
 *
 * @return list<string>
 */
function interface_differences(array $extension, array $stubs): array
{
    $differences = [];
    foreach ($extension + $stubs as $fact => $ignored) {
        $pair = ['extension' => $extension[$fact] ?? null, 'stubs' => $stubs[$fact] ?? null];
        if ($pair['extension'] === $pair['stubs']) {
            continue;
        }
        // A known difference is exactly the one that is known: any other at that place is reported.
        if (isset(KNOWN_DIFFERENCES[$fact]) && KNOWN_DIFFERENCES[$fact] === $pair) {
            continue;
        }
        $differences[] = sprintf('%s: extension %s, stubs %s', $fact, $pair['extension'] ?? 'has no such thing', $pair['stubs'] ?? 'have no such thing');
    }
    sort($differences);
    return $differences;
}
