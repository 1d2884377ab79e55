<?php

/**
 * What PIE and Composer read: names, types, and that every file that is named exists.
 *
 *   php -n tests/package/manifests.php
 */

declare(strict_types=1);

$top = dirname(__DIR__, 2);
$read = static fn (string $file): array => json_decode(file_get_contents("$top/$file"), true, flags: JSON_THROW_ON_ERROR);
$failures = [];
$expect = static function (string $what, bool $holds) use (&$failures): void {
    echo $holds ? 'ok      ' : 'FAILED  ', $what, "\n";
    if (!$holds) {
        $failures[] = $what;
    }
};

$root = $read('composer.json');
$extension = $root['php-ext'];
$expect('the root package is an extension for PIE', [$root['name'], $root['type']] === ['nrllm-runtime/extension', 'php-ext']);
// PIE's rule for the name; with a hyphen it would refuse the package.
$expect('the extension name is one that PIE takes', $extension['extension-name'] === 'nrllm_runtime' && preg_match('/^[A-Za-z][a-zA-Z0-9_]+$/', $extension['extension-name']) === 1);
$expect('it is for PHP with and without thread safety', $extension['support-nts'] === true && $extension['support-zts'] === true);
$expect('it is not for Windows', $extension['os-families-exclude'] === ['windows'] && !isset($extension['os-families']));
$expect('the build path has a config.m4', is_file("$top/{$extension['build-path']}/config.m4"));
// PIE takes the first that works: without the source behind the prebuilt archive, a missing archive
// would be an error.
$expect('the source is the last way to get it', $extension['download-url-method'] === ['pre-packaged-binary', 'composer-default']);
$expect('the priority of the ini file is one that PIE takes', $extension['priority'] >= 10 && $extension['priority'] <= 99);
$rust = preg_match('/^license = "(.+)"$/m', file_get_contents("$top/Cargo.toml"), $match) ? $match[1] : '';
$expect('the licence is the crate\'s', $root['license'] === 'MIT' && $rust === 'MIT' && str_starts_with(file_get_contents("$top/LICENSE"), 'MIT License'));

// What Packagist shows, and what a user needs to report a problem.
foreach (['', 'php-stubs/', 'php-ffi/', 'typo3/'] as $folder) {
    $package = $read("{$folder}composer.json");
    foreach (['name', 'description', 'type', 'license', 'keywords', 'homepage', 'authors', 'support', 'require'] as $key) {
        $expect("{$folder}composer.json has $key", !empty($package[$key]));
    }
    $expect("{$folder}composer.json says where problems are reported", isset($package['support']['issues'], $package['support']['security']));
    $expect("{$folder} has its licence and README", is_file("$top/{$folder}LICENSE") && is_file("$top/{$folder}README.md"));
}
// A site that requires the extension is content with the bridge.
$expect('the FFI package provides the extension', $read('php-ffi/composer.json')['provide'] === ['ext-nrllm_runtime' => 'self.version']);

$stubs = $read('php-stubs/composer.json');
$expect('the stubs are a package of their own', $stubs['name'] === 'nrllm-runtime/stubs');
// An autoloaded stub would make class_exists('NrLlmRuntime') true on a machine without the
// extension.
$expect('the stubs are never autoloaded', !isset($stubs['autoload']) && !isset($stubs['autoload-dev']));
$neon = file_get_contents("$top/php-stubs/" . $stubs['extra']['phpstan']['includes'][0]);
preg_match_all('/^ +- (\S+\.php)$/m', $neon, $listed);
$files = array_map('basename', glob("$top/php-stubs/*.php"));
sort($listed[1]);
$expect('PHPStan\'s extension.neon names every stub', $files !== [] && $listed[1] === $files);
// Never loaded beside the extension, and where they are loaded by mistake they must not answer.
foreach ($files as $file) {
    $source = file_get_contents("$top/php-stubs/$file");
    $bodies = preg_match_all('/function \w+\([^{;]*\{\s*(.*?)\s*\}/s', $source, $matches) ? array_unique($matches[1]) : [];
    $expect("every method of $file throws", array_diff($bodies, ["throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');"]) === []);
    $documented = preg_match_all('/\*\/\n(?:final |abstract )*class \w+|\*\/\n    public (?:static )?function \w+|\*\/\n    public const/', $source);
    $declared = preg_match_all('/^(?:final |abstract )*class \w+|^    public (?:static )?function \w+|^    public const/m', $source);
    $expect("everything in $file has a doc comment", $documented === $declared);
}
exit($failures === [] ? 0 : 1);
