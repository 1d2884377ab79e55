<?php

/**
 * Checks that what the documents name exists: code, links, commands, files of the tree, methods.
 *
 *   php -n -d extension=/path/to/libnrllm_runtime.so tests/package/documents.php
 */

declare(strict_types=1);

$top = dirname(__DIR__, 2);
$failures = 0;
$expect = static function (string $what, bool $holds) use (&$failures): void {
    if (!$holds) {
        echo 'FAILED  ', $what, "\n";
        $failures++;
    }
};
$readme = file_get_contents("$top/README.md");
$expect('the README has at most 1 200 words, ' . count(preg_split('/\s+/', trim($readme))) . ' found', count(preg_split('/\s+/', trim($readme))) <= 1200);

$documents = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'UPGRADING.md', 'CHANGELOG.md', ...array_map(
    static fn (string $file): string => substr($file, strlen($top) + 1),
    [...glob("$top/docs/*.md"), ...glob("$top/docs/*/*.md"), ...glob("$top/*/README.md")]
)];
// Every piece of PHP parses.
foreach ($documents as $document) {
    preg_match_all('/^```php\n(.*?)^```$/ms', file_get_contents("$top/$document"), $blocks);
    foreach ($blocks[1] as $number => $code) {
        $code = str_starts_with($code, '<?php') ? $code : "<?php\n$code";
        $lint = proc_open([PHP_BINARY, '-n', '-l'], [['pipe', 'r'], ['pipe', 'w'], ['redirect', 1]], $pipes);
        fwrite($pipes[0], $code);
        fclose($pipes[0]);
        $said = stream_get_contents($pipes[1]);
        $expect("PHP block $number of $document parses: $said", proc_close($lint) === 0);
    }
}

$rust = preg_match('/^rust-version = "(.+)"$/m', file_get_contents("$top/Cargo.toml"), $match) ? $match[1] : '';
foreach (['README.md', 'docs/installation.md'] as $document) {
    preg_match_all('/Rust (\d+\.\d+) or newer/', file_get_contents("$top/$document"), $named);
    $expect("$document names Rust $rust, as Cargo.toml does", $named[1] !== [] && array_unique($named[1]) === [$rust]);
}
$slug = static fn (string $heading): string => preg_replace('/[^a-z0-9_-]/', '', str_replace(' ', '-', strtolower(trim(str_replace('`', '', $heading)))));
$anchors = static function (string $file) use ($slug): array {
    preg_match_all('/^#+ (.+)$/m', preg_replace('/^```.*?^```$/ms', '', file_get_contents($file)), $headings);
    return array_map($slug, $headings[1]);
};
// One of nr_llm's, which classification calls.
$methods = ['getattempterrors' => true];
foreach ((new ReflectionExtension('nrllm_runtime'))->getClasses() as $class) {
    foreach ($class->getMethods() as $method) {
        $methods[strtolower($method->getName())] = true;
    }
}
foreach (glob("$top/docs/decisions/*.md") as $page) {
    $name = basename($page);
    $expect("docs/decisions/README.md lists $name", $name === 'README.md' || str_contains(file_get_contents("$top/docs/decisions/README.md"), "]($name)"));
}
foreach (array_unique($documents) as $document) {
    $text = file_get_contents("$top/$document");
    preg_match_all('/\[[^\]]*\]\(([^)\s]+)\)/', $text, $links);
    foreach ($links[1] as $link) {
        if (preg_match('#^[a-z]+://|^mailto:#', $link)) {
            continue;
        }
        [$path, $anchor] = explode('#', $link, 2) + [1 => ''];
        $file = $path === '' ? "$top/$document" : dirname("$top/$document") . "/$path";
        $expect("$document links to $link", file_exists($file));
        $expect("$document links to a heading of $link", $anchor === '' || (is_file($file) && in_array($anchor, $anchors($file), true)));
    }
    // Commands of bin/, files of the tree, and methods that are named in code.
    preg_match_all('#(?<![\w/.])(bin/[a-z-]+|examples/[a-z-]+\.php|phpt/[\w-]+\.phpt|docs/[\w/-]+\.md|src/[a-z_]+(?:(?:/[a-z_]+)*\.rs)?|tests/[a-z_]+(?:/[a-z_]+)*(?:\.\w+)?|benches/[\w/]+(?:\.\w+)?)#', $text, $paths);
    foreach (array_unique($paths[1]) as $path) {
        $expect("$document names $path", file_exists("$top/$path"));
    }
    preg_match_all('/`(?:NrLlm\w+::|->)?([a-z]\w+)\(\)/', $text, $named);
    foreach (array_unique($named[1]) as $name) {
        $expect("$document names the method $name()", isset($methods[strtolower($name)]) || function_exists($name));
    }
}
echo $failures === 0 ? "ok\n" : "$failures failed\n";
exit($failures === 0 ? 0 : 1);
