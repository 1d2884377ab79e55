<?php

declare(strict_types=1);

// No output of the tests may contain one of their passwords (rule 22). bin/test runs this after
// each suite.
//   php tests/secrets.php PATH...      searches files and folders: one line per find, exit code 1
//                                      if there is one
//   php tests/secrets.php --self-test  checks that the search finds planted passwords, and that the
//                                      list below is complete

/**
 * Passwords that tests connect with or refuse, and that occur in no other sense. `p@ss:w/o#rd`
 * begins the awkward ones.
 */
const PASSWORDS = ['nrllm-test-secret', 'correct horse:b@ttery/staple', 'p@ss:w/o#rd', 'p@ss-that-is-wrong', 'SwordFish-9', 'hidden-Passw0rd', 'only-for-this-test',
    'site-Passw0rd', 'secret-word'];
/** Settings that suites pass to their processes, and sources that they copy, are no output. */
const SETTINGS = ['round.json'];
const SOURCES = ['php', 'phps', 'phpt', 'inc', 'rs', 'c', 'py', 'sh', 'md'];
/**
 * Bytes per piece; a secret on the border of two pieces is found in the second, which begins with
 * the end of the first.
 */
const PIECE = 1 << 20;
const OVERLAP = 400;

/** @return array<string, string> by description: the forms in which a password may be written */
function forms(): array
{
    $forms = [];
    foreach (PASSWORDS as $password) {
        // The description in the report must not be found by the next search.
        $name = substr($password, 0, 3) . '…';
        $mysql = sha1(sha1($password, true));
        $base64 = array_map(fn(int $shift): string => substr(base64_encode(str_repeat('x', $shift) . $password), [0, 2, 3][$shift], -4), [0, 1, 2]);
        $forms += [urlencode($password) => "$name in a URL", rawurlencode($password) => "$name in a URL", trim((string) json_encode($password), '"') => "$name in JSON",
            bin2hex($password) => "$name in hex", strtoupper(bin2hex($password)) => "$name in hex", $mysql => "the hash of $name", strtoupper($mysql) => "the hash of $name",
            addslashes($password) => "$name, quoted", $password => $name] + array_fill_keys($base64, "$name in base64");
    }

    return $forms;
}

/** @return array<string, true> the hashes of what is in bin/ */
function scripts(): array
{
    static $scripts = null;
    foreach ($scripts === null ? new RecursiveIteratorIterator(new RecursiveDirectoryIterator(dirname(__DIR__) . '/bin', FilesystemIterator::SKIP_DOTS)) : [] as $file) {
        $scripts[sha1_file($file->getPathname())] = true;
    }

    return $scripts;
}

/**
 * @param list<string> $paths
 *
 * @return list<string>
 */
function finds(array $paths): array
{
    $finds = [];
    $forms = forms();
    foreach ($paths as $path) {
        $files = is_dir($path) ? new RecursiveIteratorIterator(new RecursiveDirectoryIterator($path, FilesystemIterator::SKIP_DOTS)) : [new SplFileInfo($path)];
        foreach ($files as $file) {
            // Links lead to the sources, which hold the passwords; sockets and pipes hold nothing.
            if ($file->isLink() || !$file->isFile() || in_array($file->getFilename(), SETTINGS, true) || in_array($file->getExtension(), SOURCES, true)) {
                continue;
            }
            $handle = fopen($file->getPathname(), 'rb');
            $found = [];
            for ($piece = ''; !feof($handle);) {
                $piece = substr($piece, -OVERLAP) . fread($handle, PIECE);
                foreach ($forms as $form => $name) {
                    str_contains($piece, (string) $form) && $found[$name] = true;
                }
            }
            fclose($handle);
            // An exact copy of a script, which has no ending to be known by.
            if ($found !== [] && isset(scripts()[sha1_file($file->getPathname())])) {
                continue;
            }
            foreach (array_keys($found) as $name) {
                $finds[] = "{$file->getPathname()}: $name";
            }
        }
    }

    return $finds;
}

function selfTest(): string
{
    $folder = sys_get_temp_dir() . '/nrllm-secrets.' . bin2hex(random_bytes(4));
    mkdir("$folder/below", recursive: true);
    try {
        foreach (array_keys(forms()) as $index => $form) {
            // Behind a border of pieces as well, and not only text.
            file_put_contents("$folder/below/$index", str_repeat("\0", PIECE - 5 * ($index % 2)) . $form . "\n");
            file_put_contents("$folder/clean", strrev((string) $form) . "\n", FILE_APPEND);
        }
        $planted = count(forms());
        $found = count(array_unique(array_map(fn(string $find): string => explode(': ', $find)[0], finds([$folder]))));
        if ($found !== $planted) {
            return "of $planted planted ones $found were found";
        }
        if (finds(["$folder/clean"]) !== []) {
            return 'what is none was found';
        }
    } finally {
        array_map(unlink(...), [...glob("$folder/below/*"), "$folder/clean"]);
        rmdir("$folder/below");
        rmdir($folder);
    }
    $sources = '';
    foreach (['tests', 'phpt', 'bin', 'typo3/Tests'] as $part) {
        foreach (new RecursiveIteratorIterator(new RecursiveDirectoryIterator(dirname(__DIR__) . "/$part", FilesystemIterator::SKIP_DOTS)) as $file) {
            $file->isFile() && $file->getFilename() !== basename(__FILE__) && $sources .= file_get_contents($file->getPathname());
        }
    }
    $gone = array_filter(PASSWORDS, fn(string $password): bool => !str_contains($sources, $password));

    return $gone === [] ? '' : 'no test has these any more: ' . implode(', ', $gone);
}

$paths = array_slice($argv, 1);
if ($paths === ['--self-test']) {
    $wrong = selfTest();
    echo $wrong === '' ? '' : "$wrong\n";
    exit($wrong === '' ? 0 : 1);
}
$finds = finds($paths);
echo $finds === [] ? '' : implode("\n", $finds) . "\n";
exit($finds === [] ? 0 : 1);
