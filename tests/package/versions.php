<?php

/**
 * Every place that names the version names the same one.
 *
 *   php -n -d extension=/path/to/libnrllm_runtime.so tests/package/versions.php
 */

declare(strict_types=1);

$top = dirname(__DIR__, 2);
$failed = 0;
$first = static function (string $file, string $pattern) use ($top): string {
    if (!preg_match($pattern, (string) file_get_contents("$top/$file"), $match)) {
        return "(none found in $file)";
    }
    return $match[1];
};

$crate = $first('Cargo.toml', '/^version = "(.+)"$/m');
$places = [
    'Cargo.lock' => $first('Cargo.lock', '/^name = "nrllm-runtime"\nversion = "(.+)"$/m'),
    "phpversion('nrllm_runtime')" => (string) phpversion('nrllm_runtime'),
    'NrLlmRuntime::VERSION' => NrLlmRuntime::VERSION,
    'php-stubs/NrLlmRuntime.php' => $first('php-stubs/NrLlmRuntime.php', "/const VERSION = '(.+)';/"),
    'CHANGELOG.md, its newest entry' => $first('CHANGELOG.md', '/^## \[?(\d+\.\d+\.\d+)/m'),
];
// Composer takes the version from the tag. A manifest that names one all the same has to be right.
foreach (array_merge(["$top/composer.json"], glob("$top/*/composer.json")) as $file) {
    $manifest = json_decode(file_get_contents($file), true, flags: JSON_THROW_ON_ERROR);
    if (isset($manifest['version'])) {
        $places[substr($file, strlen($top) + 1)] = $manifest['version'];
    }
    foreach ($manifest['require'] ?? [] as $package => $constraint) {
        if (str_starts_with($package, 'nrllm-runtime/') || $package === 'ext-nrllm_runtime') {
            $series = implode('.', array_slice(explode('.', $crate), 0, 2));
            $ok = in_array($constraint, ['self.version', "^$series", "~$series.0"], true);
            echo $ok ? 'ok      ' : 'FAILED  ', substr($file, strlen($top) + 1), " requires $package $constraint\n";
            $failed += $ok ? 0 : 1;
        }
    }
}
if (is_file("$top/typo3/ext_emconf.php")) {
    $places['typo3/ext_emconf.php'] = $first('typo3/ext_emconf.php', "/'version' => '(.+)'/");
}
if (is_file("$top/php-ffi/src/NrLlmRuntime.php")) {
    $places['php-ffi/src/NrLlmRuntime.php'] = $first('php-ffi/src/NrLlmRuntime.php', "/const VERSION = '(.+)';/");
}
foreach ($places as $place => $version) {
    echo $version === $crate ? 'ok      ' : 'FAILED  ', "$place: $version", $version === $crate ? '' : ", the crate is $crate", "\n";
    $failed += $version === $crate ? 0 : 1;
}
exit($failed === 0 ? 0 : 1);
