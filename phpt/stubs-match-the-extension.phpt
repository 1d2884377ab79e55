--TEST--
php-stubs/ and the extension declare the same interface, both ways
--DESCRIPTION--
The stubs are written by hand, for their documentation. This is what keeps them true: classes, parents, interfaces, constants by value,
methods, parameters by name, type and default value, return types. tests/package/stub-mutations.php shows that a lie is found.
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
$top = getenv('NRLLM_TOP') ?: dirname(__DIR__);
require "$top/tests/package/interface.php";
$extension = describe_extension();
$stubs = describe_stubs_apart("$top/php-stubs");
foreach (interface_differences($extension, $stubs) as $difference) {
    echo $difference, "\n";
}
// Files and classes have the same names: an IDE would not find a class in another's file.
$files = array_map(static fn (string $file): string => basename($file, '.php'), glob("$top/php-stubs/*.php"));
$classes = array_map(static fn (ReflectionClass $class): string => $class->getName(), (new ReflectionExtension('nrllm_runtime'))->getClasses());
sort($files);
sort($classes);
echo $files === array_values($classes) ? count($files) . " classes\n" : 'files: ' . implode(', ', $files) . "\nclasses: " . implode(', ', $classes) . "\n";
?>
--EXPECT--
11 classes
