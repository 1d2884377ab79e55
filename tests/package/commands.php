<?php

/**
 * The commands in the documents: every line of a shell block is executed here, or by the
 * suite that this table names.
 *
 *   php -n tests/package/commands.php
 *
 * A new command in a document fails until it has an entry.
 */

declare(strict_types=1);

$top = dirname(__DIR__, 2);
chdir($top);
$failures = 0;
$expect = static function (string $what, bool $holds) use (&$failures): void {
    if (!$holds) {
        echo 'FAILED  ', $what, "\n";
        $failures++;
    }
};

/**
 * pattern of a line => [file that executes it, what stands there], or a reason why it cannot be
 * executed here
 */
const COMMANDS = [
    '#^bin/setup$#' => ['bin/test', 'bin/setup'],
    '#^bin/demo$#' => ['bin/suites/47-docs', 'bin/demo'],
    '#^bin/test( --all)?$#' => ['.ci/run', 'bin/test'],
    '#^bin/test [a-z-]+$#' => ['bin/test', '--list'],
    '#^bin/bench( --quick| compare| binlog| cold| scale| rate)?$#' => ['bin/suites/47-docs', 'bin/bench --quick'],
    '#^bin/bench criterion$#' => 'minutes of measuring: by hand',
    '#^bin/chaos#' => ['bin/suites/85-chaos', 'bin/chaos'],
    '#^bin/release --dry-run$#' => ['bin/suites/42-release', 'bin/release --dry-run'],
    '#^bin/release --only (extension|ffi|packages)$#' => ['bin/suites/40-package', 'bin/release --dry-run --only'],
    '#^bin/build-ffi --portable --out FOLDER$#' => ['bin/release', 'bin/build-ffi --portable --out'],
    '#^cargo test #' => ['bin/suites/20-rust', 'cargo test'],
    '#^git (tag|push) #' => 'it would change the repository that people see',
    '#^pie install nrllm-runtime/extension#' => 'PIE cannot be had on the test machines: the suite source does its steps',
    '#^composer require (--dev )?nrllm-runtime/(stubs|ffi|typo3)#' => ['bin/suites/40-package', 'composer_install'],
    '#^vendor/bin/typo3 #' => ['bin/suites/70-typo3', 'typo3/Tests/run'],
    '#^php -m \| grep -i ffi$#' => 'run',
    '#^php --ri nrllm_runtime$#' => ['bin/lib/package.sh', 'php --ri nrllm_runtime'],
];
/** Documents whose shell blocks are executed as a whole: the suite, by heading */
const WHOLE = ['docs/installation.md' => ['Prebuilt archive' => 'package', 'From source' => 'source', 'From a working copy' => 'package']];

$documents = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'UPGRADING.md', ...glob('docs/*.md'), ...glob('php-*/README.md'), 'typo3/README.md'];
$used = [];
foreach ($documents as $document) {
    $heading = '';
    $language = null;
    foreach (explode("\n", str_replace("\\\n", '', file_get_contents($document))) as $line) {
        if ($language === null && preg_match('/^#+ (.*)/', $line, $match)) {
            $heading = $match[1];
        } elseif (preg_match('/^```(\w*)/', $line, $match)) {
            $language = $language === null ? $match[1] : null;
        } elseif ($language === 'sh' && trim($line) !== '' && !str_starts_with($line, '#')) {
            $command = trim(preg_replace('/ +# .*$/', '', $line));
            $suite = WHOLE[$document][$heading] ?? null;
            if ($suite !== null) {
                $text = implode('', array_map(file_get_contents(...), glob("bin/suites/[0-9][0-9]-$suite")));
                $expect("the suite $suite executes the block under \"$heading\" of $document", str_contains($text, "block sh '$heading' 1"));
                continue;
            }
            $entry = null;
            foreach (COMMANDS as $pattern => $how) {
                if (preg_match($pattern, $command) === 1) {
                    [$entry, $used[$pattern]] = [$how, true];
                    break;
                }
            }
            $expect("a test executes the command of $document: $command", $entry !== null);
            if (is_array($entry)) {
                $expect("$entry[0] executes: $command", str_contains((string) @file_get_contents($entry[0]), $entry[1]));
            } elseif ($entry === 'run') {
                exec("$command 2>&1", $output, $code);
                $expect("$document: $command", $code === 0);
            }
            // Options that a script does not know are errors of the document.
            if (preg_match('#^(bin/[a-z-]+)((?: .*)?)$#', $command, $match)) {
                $help = (string) shell_exec(escapeshellarg($match[1]) . ' --help 2>&1');
                preg_match_all('/(?<= )--[a-z-]+/', $match[2], $options);
                foreach ($options[0] as $option) {
                    $expect("$document: $match[1] has no option $option", str_contains($help, $option));
                }
            }
            if (preg_match('#^bin/test ([a-z-]+)$#', $command, $match)) {
                $expect("$document: there is no suite $match[1]", glob("bin/suites/[0-9][0-9]-$match[1]") !== []);
            }
            // A filter that matches no test passes with nothing run.
            if (preg_match('#^cargo test .*--(?:test (\w+)|lib)(?: (?!--)(\S+))?#', $command, $match)) {
                $expect("$document: there is no test $match[1]", ($match[1] ?? '') === '' || is_file("tests/$match[1].rs"));
                $name = isset($match[2]) ? basename(str_replace('::', '/', $match[2])) : '';
                $expect("$document: no test matches $name", $name === '' || shell_exec('grep -rlE ' . escapeshellarg("(fn|mod) $name") . ' src tests') !== null);
            }
        }
    }
}
foreach (array_diff_key(COMMANDS, $used) as $pattern => $how) {
    $expect("no document holds $pattern any more: remove it from the table", false);
}
echo $failures === 0 ? "ok\n" : "$failures failed\n";
exit($failures === 0 ? 0 : 1);
