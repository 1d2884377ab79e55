<?php

/**
 * Behaviour of the FFI bridge alone: finding and refusing the library, where FFI is not allowed,
 * the end of a request, and the extension beside it. The behaviour of both bindings is in
 * tests/conformance and phpt/.
 *
 *   php bridge.php --list      the cases
 *   php bridge.php CASE        runs one; prints why it fails and exits with 1
 *
 * NRLLM_FFI_LIBRARY is a library, NRLLM_FFI_PACKAGE a copy of php-ffi/ that has it in its place,
 * NRLLM_MODULE the extension. bin/suites/52-ffi sets them.
 */

declare(strict_types=1);

require __DIR__ . '/fpm.php';
require __DIR__ . '/../../phpt/inc/db.inc';

const TOP = __DIR__ . '/../..';

function library(): string
{
    return (string) getenv('NRLLM_FFI_LIBRARY');
}

function package(): string
{
    return (string) getenv('NRLLM_FFI_PACKAGE');
}

function temporary(): string
{
    static $folder = null;
    if ($folder === null) {
        $folder = getenv('NRLLM_TEST_TMP') . '/case-' . bin2hex(random_bytes(4));
        mkdir($folder, 0755);
    }

    return $folder;
}

/** @return list<string> `-d extension=…` for those that PHP has not built in */
function extensions(string ...$names): array
{
    $arguments = [];
    foreach ($names as $name) {
        if (is_file(ini_get('extension_dir') . "/$name.so")) {
            array_push($arguments, '-d', "extension=$name");
        }
    }

    return $arguments;
}

/**
 * Runs code in a separate PHP process and returns its output; checks the exit code.
 *
 * @param list<string> $arguments
 */
function php(string $code, array $arguments = [], int $exit = 0, string $folder = '/', array $environment = []): string
{
    $process = proc_open([PHP_BINARY, '-n', '-d', 'display_errors=1', '-d', 'error_reporting=-1', ...$arguments, '-r', $code], [1 => ['pipe', 'w'], 2 => ['redirect', 1]], $pipes, $folder,
        $environment + getenv());
    $output = stream_get_contents($pipes[1]);
    $code = proc_close($process);
    same($exit, $code, "exit code; output: $output");

    return $output;
}

/**
 * Runs code with the bridge of the package, over the library that is given, or the package's own.
 */
function bridge(string $code, ?string $library = null, array $arguments = [], int $exit = 0, string $folder = '/', array $environment = []): string
{
    $constant = $library === null ? '' : 'const NRLLM_RUNTIME_LIBRARY = ' . var_export($library, true) . ';';

    return php($constant . 'require ' . var_export(package() . '/autoload.php', true) . ";$code", [...extensions('ffi'), ...$arguments], $exit, $folder, $environment);
}

/** Returns the message of a first call where the library is refused: the same for every entry. */
function refusal(string $define, array $arguments = [], string $folder = '/', array $environment = []): string
{
    $code = $define . 'require ' . var_export(package() . '/autoload.php', true) . ';'
        . '$said = []; foreach ([fn () => new NrLlmRuntime(["driver" => "mysqli"]), fn () => NrLlmRuntime::backoffMs(0), fn () => NrLlmRuntime::identity("w"), fn () => NrLlmRuntime::classifyFailure(new Exception())] as $call) {'
        . 'try { $call(); $said[] = "nothing thrown"; } catch (Throwable $e) { $said[] = $e::class . ": " . $e->getMessage(); } }'
        . 'echo implode("\n", array_unique($said)); if (NrLlmRuntime\Ffi\Library::problem() !== $e->getMessage()) { echo "problem() says otherwise"; }';
    $said = php($code, [...extensions('ffi'), ...$arguments], 0, $folder, $environment);
    starts('NrLlmConfigurationException: The C library of nrllm_runtime cannot be used: ', $said);
    if (str_contains($said, "\n")) {
        throw new LogicException("more than one message:\n$said");
    }

    return $said;
}

function same(mixed $expected, mixed $actual, string $what = ''): void
{
    if ($expected !== $actual) {
        throw new LogicException(($what === '' ? '' : "$what: ") . 'expected ' . var_export($expected, true) . ', got ' . var_export($actual, true));
    }
}

function has(string $part, string $text): void
{
    if (!str_contains($text, $part)) {
        throw new LogicException("'$part' is not in: $text");
    }
}

function starts(string $part, string $text): void
{
    if (!str_starts_with($text, $part)) {
        throw new LogicException("does not begin with '$part': $text");
    }
}

/**
 * Waits until a condition holds: the server notices a closed connection a moment later.
 */
function until(callable $holds, string $what): void
{
    for ($i = 0; $i < 4000; $i++) {
        if ($holds()) {
            return;
        }
        usleep(5000);
    }
    throw new LogicException("did not come: $what");
}

/** The server's connections to a database, except the one of this query. */
function connections(TestDb $db): int
{
    return (int) $db->value('SELECT COUNT(*) FROM information_schema.processlist WHERE db = ? AND id <> CONNECTION_ID()', [$db->name]);
}

function compiled(string $name, string ...$flags): string
{
    $out = temporary() . "/$name.so";
    $process = proc_open(['cc', '-shared', '-fPIC', ...$flags, '-o', $out, __DIR__ . '/other_abi.c'], [1 => STDERR, 2 => STDERR], $pipes);
    same(0, proc_close($process), 'cc');
    chmod($out, 0755);

    return $out;
}

/** A copy of the library with other permissions. */
function copied(int $mode, string $folder = ''): string
{
    $path = ($folder ?: temporary()) . '/libnrllm_runtime_ffi.so';
    copy(library(), $path);
    chmod($path, $mode);

    return $path;
}

/** A script for FPM that runs code with the bridge. */
function script(string $code): string
{
    $file = temporary() . '/script-' . bin2hex(random_bytes(4)) . '.php';
    file_put_contents($file, "<?php\nini_set('display_errors', '1');\nerror_reporting(-1);\nrequire " . var_export(package() . '/autoload.php', true) . ";\n$code");

    return $file;
}

const FIRST_CALL = 'try { echo NrLlmRuntime::backoffMs(1); } catch (Throwable $e) { echo $e::class, ": ", $e->getMessage(); }';
/** Code that reads every file of the package, as an autoloader would, and uses none. */
const INCLUDE_ALL = 'foreach ([...glob(dirname((new ReflectionClass("NrLlmRuntime\Ffi\Library"))->getFileName(), 2) . "/*.php"), ...glob(dirname((new ReflectionClass("NrLlmRuntime\Ffi\Library"))->getFileName()) . "/*.php")] as $f) {'
    . ' require_once $f; } echo "included ";';

$cases = [
    'the library of the package is found by machine and libc, and it says which it took' => static function (): void {
        $found = glob(package() . '/lib/*/libnrllm_runtime_ffi.so');
        same(1, count($found), 'libraries');
        same($found[0] . ' 60000', bridge('echo NrLlmRuntime\Ffi\Library::path(), " ", NrLlmRuntime::backoffMs(1);'));
    },
    'Composer installs it, and its autoloader finds the classes' => static function (): void {
        $site = temporary() . '/site';
        mkdir($site);
        file_put_contents("$site/composer.json", json_encode([
            'repositories' => [['type' => 'path', 'url' => package(), 'options' => ['symlink' => false, 'versions' => ['nrllm-runtime/ffi' => '0.1.0']]], ['packagist.org' => false]],
            'require' => ['nrllm-runtime/ffi' => '*'],
        ]));
        $process = proc_open(['composer', 'install', '--no-interaction', '--no-plugins', '--ignore-platform-req=ext-ffi', '--quiet'], [1 => ['pipe', 'w'], 2 => ['redirect', 1]], $pipes, $site,
            ['COMPOSER_ALLOW_SUPERUSER' => '1', 'COMPOSER_HOME' => temporary()] + getenv());
        $output = stream_get_contents($pipes[1]);
        same(0, proc_close($process), "composer: $output");
        $said = php('require "vendor/autoload.php"; var_dump(class_exists("NrLlmReapReport"), NrLlmRuntime::backoffMs(1)); echo NrLlmRuntime\Ffi\Library::path();', extensions('ffi'), 0, $site);
        starts("bool(true)\nint(60000)\n$site/vendor/nrllm-runtime/ffi/lib/", $said);
    },
    'the constant names another library' => static function (): void {
        $path = copied(0755);
        same($path, bridge('echo NrLlmRuntime\Ffi\Library::path();', $path));
        $link = temporary() . '/link.so';
        symlink($path, $link);
        same($path, bridge('echo NrLlmRuntime\Ffi\Library::path();', $link), 'a link is followed, and what it leads to is checked');
    },
    'a path that is not absolute is refused' => static function (): void {
        copied(0755);
        foreach (['libnrllm_runtime_ffi.so', './libnrllm_runtime_ffi.so', '', '~/x.so', 'file:///x.so'] as $path) {
            has('must be the absolute path', refusal('const NRLLM_RUNTIME_LIBRARY = ' . var_export($path, true) . ';', [], temporary()));
        }
        foreach (['5', 'null', 'true', '["/x"]', '"/x\0y"'] as $value) {
            has('must be the absolute path', refusal("const NRLLM_RUNTIME_LIBRARY = $value;"));
        }
    },
    'no environment, no working directory and no search path leads to a library' => static function (): void {
        $path = copied(0755);
        $empty = temporary() . '/empty';
        proc_close(proc_open(['cp', '-R', package(), $empty], [], $pipes));
        array_map(unlink(...), glob("$empty/lib/*/*.so"));
        $code = 'require ' . var_export("$empty/autoload.php", true) . '; try { NrLlmRuntime::backoffMs(0); echo "loaded"; } catch (NrLlmConfigurationException $e) { echo $e->getMessage(); }';
        $folder = dirname($path);
        $said = php($code, [...extensions('ffi'), '-d', "include_path=$folder", '-d', "extension_dir=" . ini_get('extension_dir')], 0, $folder,
            ['LD_LIBRARY_PATH' => $folder, 'NRLLM_RUNTIME_LIBRARY' => $path, 'NRLLM_LIBRARY' => $path, 'PATH' => $folder]);
        has('does not exist', $said);
        has('bin/build-ffi', $said);
        has('NRLLM_RUNTIME_LIBRARY', $said);
    },
    'a library that others may write is refused' => static function (): void {
        foreach ([0775, 0757, 0777, 0666, 0664] as $mode) {
            $said = refusal('const NRLLM_RUNTIME_LIBRARY = ' . var_export(copied($mode), true) . ';');
            has('others than its owner may write it', $said);
            has('chmod go-w', $said);
        }
        $link = temporary() . '/link.so';
        symlink(copied(0777), $link);
        has('may write it', refusal('const NRLLM_RUNTIME_LIBRARY = ' . var_export($link, true) . ';'));
    },
    'a library of another user is refused' => static function (): void {
        $path = copied(0755);
        if (posix_geteuid() === 0) {
            chown($path, 65534);
            has('belongs to the user 65534', refusal('const NRLLM_RUNTIME_LIBRARY = ' . var_export($path, true) . ';'));
            // The owner of the package may own it too: deployments often have another owner than
            // the web server.
            $own = temporary() . '/package';
            proc_close(proc_open(['cp', '-R', package(), $own], [], $pipes));
            proc_close(proc_open(['chown', '-R', '65534', $own], [], $pipes));
            same('60000', php('require ' . var_export("$own/autoload.php", true) . '; echo NrLlmRuntime::backoffMs(1);', extensions('ffi')));
        } else {
            same('60000', bridge('echo NrLlmRuntime::backoffMs(1);', $path));
        }
    },
    'a library in a folder that every user may write is refused' => static function (): void {
        $folder = temporary() . '/open';
        mkdir($folder);
        $path = copied(0755, $folder);
        chmod($folder, 0777);
        has('every user may replace it', refusal('const NRLLM_RUNTIME_LIBRARY = ' . var_export($path, true) . ';'));
        chmod($folder, 01777);
        same('60000', bridge('echo NrLlmRuntime::backoffMs(1);', $path));
        chmod($folder, 0755);
        mkdir("$folder/below");
        $below = copied(0755, "$folder/below");
        chmod($folder, 0777);
        has('every user may replace it', refusal('const NRLLM_RUNTIME_LIBRARY = ' . var_export($below, true) . ';'));
        chmod($folder, 0755);
    },
    'a library in a folder where a group may replace it is refused, but where that group may exchange the package too' => static function (): void {
        $define = static fn (string $path): string => 'const NRLLM_RUNTIME_LIBRARY = ' . var_export($path, true) . ';';
        $folder = temporary() . '/shared';
        mkdir("$folder/below", 0755, true);
        $path = copied(0755, "$folder/below");
        chmod($folder, 0775);
        $group = filegroup($folder);
        $said = refusal($define($path));
        has("the group $group may replace it", $said);
        has("chmod g-w $folder", $said);
        // In a folder with the sticky bit only its owner and the file's owner may replace the file.
        chmod($folder, 01775);
        same('60000', bridge('echo NrLlmRuntime::backoffMs(1);', $path));
        chmod($folder, 0775);

        // A deployment with a umask of 002: the folders of the site, and of the package in it,
        // belong to a group that may write them.
        $site = temporary() . '/site';
        mkdir($site);
        proc_close(proc_open(['cp', '-R', package(), "$site/ffi"], [], $pipes));
        $deployed = static fn (string $define): string => php($define . 'require ' . var_export("$site/ffi/autoload.php", true) . '; try { echo NrLlmRuntime::backoffMs(1); } catch (NrLlmConfigurationException $e) {'
            . ' echo $e->getMessage(); }', extensions('ffi'));
        has("the group $group may replace it", $deployed($define($path)));
        chmod($site, 0775);
        foreach (['', '/src', '/src/Ffi', '/lib', ...array_map(static fn (string $place): string => '/lib/' . basename($place), glob(package() . '/lib/*'))] as $part) {
            chmod("$site/ffi$part", 0775);
        }
        same('60000', $deployed(''), 'the library of the package');
        same('60000', $deployed($define($path)), 'a library elsewhere, of the same group');
        if (posix_geteuid() === 0) {
            chgrp($folder, 65533);
            has('the group 65533 may replace it', $deployed($define($path)));
        }
        // Who may write the PHP file itself may run code as well.
        chgrp($folder, $group);
        foreach (['', '/ffi', '/ffi/src', '/ffi/src/Ffi'] as $part) {
            chmod("$site$part", 0755);
        }
        has("the group $group may replace it", $deployed($define($path)));
        chmod("$site/ffi/src/Ffi/Library.php", 0664);
        same('60000', $deployed($define($path)));
    },
    'a library in a folder of another user is refused, but where that user may exchange the package too' => static function (): void {
        $folder = temporary() . '/theirs';
        mkdir("$folder/below", 0755, true);
        $path = copied(0755, "$folder/below");
        if (posix_geteuid() !== 0) {
            same('60000', bridge('echo NrLlmRuntime::backoffMs(1);', $path));

            return;
        }
        chown($folder, 65534);
        foreach ([0755, 01777] as $mode) {
            chmod($folder, $mode);
            $said = refusal('const NRLLM_RUNTIME_LIBRARY = ' . var_export($path, true) . ';');
            has('the user 65534 may replace it', $said);
            has("chown root $folder", $said);
        }
        chmod($folder, 0755);
        proc_close(proc_open(['cp', '-R', package(), "$folder/ffi"], [], $pipes));
        same('60000', php('require ' . var_export("$folder/ffi/autoload.php", true) . '; echo NrLlmRuntime::backoffMs(1);', extensions('ffi')));
        same('60000', php('const NRLLM_RUNTIME_LIBRARY = ' . var_export($path, true) . '; require ' . var_export("$folder/ffi/autoload.php", true) . '; echo NrLlmRuntime::backoffMs(1);', extensions('ffi')));
    },
    'a library that was cut off is refused, and does not end the process by SIGBUS' => static function (): void {
        $whole = (string) file_get_contents((string) getenv('NRLLM_FFI_LIBRARY'));
        foreach ([0, 10, 63, 64, 100, 4096, intdiv(strlen($whole), 2), strlen($whole) - 4096, strlen($whole) - 1] as $bytes) {
            $path = copied(0755);
            file_put_contents($path, substr($whole, 0, $bytes));
            $said = refusal('const NRLLM_RUNTIME_LIBRARY = ' . var_export($path, true) . ';');
            has($bytes < 64 ? 'cannot be loaded' : "is not whole ($bytes bytes, and its headers need", $said);
        }
    },
    'what is no library, or another one, is refused' => static function (): void {
        $define = static fn (string $path): string => 'const NRLLM_RUNTIME_LIBRARY = ' . var_export($path, true) . ';';
        $text = temporary() . '/text.so';
        file_put_contents($text, 'no library');
        chmod($text, 0644);
        has('cannot be loaded', refusal($define($text)));
        has('there is no file', refusal($define('/nonexistent/libnrllm_runtime_ffi.so')));
        has('there is no file', refusal($define(temporary())));
        has('has the binary interface 2', refusal($define(compiled('other'))));
        has('is not of the release', refusal($define(compiled('less', '-DVERSION=1'))));
        has('cannot be loaded as the library', refusal($define(compiled('none', '-Dnrllm_abi_version=something_else'))));
        // The PHP module has undefined symbols of Zend and none of the functions.
        has('cannot be loaded', refusal($define((string) getenv('NRLLM_MODULE'))));
    },
    'the versions of package, library and crate are the same, and so is the version of the binary interface' => static function (): void {
        preg_match('/^version = "(.+)"$/m', file_get_contents(TOP . '/Cargo.toml'), $crate);
        preg_match('/pub const ABI_VERSION: u32 = (\d+);/', file_get_contents(TOP . '/src/ffi/library.rs'), $abi);
        same("$crate[1] $crate[1] $abi[1] $abi[1]",
            bridge('$f = NrLlmRuntime\Ffi\Library::ffi(); echo NrLlmRuntime::VERSION, " ", $f->nrllm_version(), " ", NrLlmRuntime\Ffi\Library::ABI_VERSION, " ", $f->nrllm_abi_version();'));
    },
    'what the bridge documents is what the stubs document, to the word' => static function (): void {
        $code = <<<'PHP'
            spl_autoload_register(static function (string $class) use ($folder): void {
                if (is_file("$folder/$class.php")) {
                    require_once "$folder/$class.php";
                }
            });
            $comments = [];
            foreach (glob("$folder/*.php") as $file) {
                $class = new ReflectionClass(basename($file, '.php'));
                foreach ([$class, ...$class->getMethods(), ...$class->getReflectionConstants()] as $part) {
                    $comment = $part->getDocComment();
                    if ($comment !== false && !str_contains($comment, '@internal')) {
                        $comments["{$class->getName()} {$part->getName()}"] = preg_replace('/[\s*]+/', ' ', $comment);
                    }
                }
            }
            echo json_encode($comments, JSON_THROW_ON_ERROR);
            PHP;
        $comments = static fn (string $folder): array => json_decode(php('$folder = ' . var_export(TOP . "/$folder", true) . ";$code"), true, 512, JSON_THROW_ON_ERROR);
        [$bridge, $stubs] = [$comments('php-ffi/src'), $comments('php-stubs')];
        // Objects of the value classes are made by the runtime: that `new` throws is documented in
        // the stubs alone.
        $ownToTheStubs = '/^(?!NrLlmRuntime ).* __construct$/';
        $stubs = array_filter($stubs, static fn (string $name): bool => preg_match($ownToTheStubs, $name) !== 1, ARRAY_FILTER_USE_KEY);
        same(true, isset($stubs['NrLlmRuntime reap'], $stubs['NrLlmRuntime LEASE_SECONDS'], $stubs['NrLlmLease NrLlmLease']), 'the comments are found');
        same([], array_keys(array_diff_assoc($stubs, $bridge)), 'other words than the stubs');
        same([], array_keys(array_diff_key($bridge, $stubs)), 'not in the stubs');
    },
    'on the command line ffi.enable=preload is enough' => static function (): void {
        same('60000', bridge('echo NrLlmRuntime::backoffMs(1);', null, ['-d', 'ffi.enable=preload']));
    },
    'with ffi.enable=false the message says what to change, and nothing happens before' => static function (): void {
        foreach (['false', '0', 'off'] as $value) {
            $said = bridge(INCLUDE_ALL . FIRST_CALL, null, ['-d', "ffi.enable=$value"]);
            starts('included NrLlmConfigurationException: ', $said);
            has('FFI is switched off: ffi.enable=false. Set ffi.enable=preload in php.ini', $said);
        }
    },
    'without the extension ffi the message says what to change, and nothing happens before' => static function (): void {
        if (extensions('ffi') === []) {
            // A built-in extension cannot be left out.
            return;
        }
        $said = php('require ' . var_export(package() . '/autoload.php', true) . ';' . INCLUDE_ALL . FIRST_CALL . ' echo NrLlmRuntime::MAX_REQUEUES;');
        starts('included NrLlmConfigurationException: ', $said);
        has('PHP\'s extension ffi is not loaded', $said);
    },
    'under FPM with the default setting the message says what to change, and nothing fatal happens' => static function (): void {
        $fpm = new Fpm(temporary(), extensions('ffi'));
        $said = $fpm->request(script(INCLUDE_ALL . FIRST_CALL . ' echo " the page goes on";'));
        has("\r\n\r\nincluded NrLlmConfigurationException: ", $said);
        has('ffi.enable=preload opens it to the command line and to preloaded code only. Set ffi.enable=true in php.ini for fpm-fcgi, or preload', $said);
        has(' the page goes on', $said);
        if (preg_match('/Status: 5|Fatal|Warning|Notice|Deprecated/', $said)) {
            throw new LogicException($said);
        }
    },
    'under FPM with false the message says what to change' => static function (): void {
        $fpm = new Fpm(temporary(), [...extensions('ffi'), '-d', 'ffi.enable=false']);
        $said = $fpm->request(script(INCLUDE_ALL . FIRST_CALL));
        has('included NrLlmConfigurationException: ', $said);
        has('ffi.enable=true for fpm-fcgi too', $said);
    },
    'under FPM with true it works' => static function (): void {
        $fpm = new Fpm(temporary(), [...extensions('ffi'), '-d', 'ffi.enable=true']);
        has("\r\n\r\nincluded 60000", $fpm->request(script(INCLUDE_ALL . FIRST_CALL)));
    },
    'under FPM a preloaded package works with the default setting' => static function (): void {
        $opcache = ['-d', 'zend_extension=opcache', '-d', 'opcache.enable=1', '-d', 'opcache.preload=' . package() . '/preload.php', ...posix_geteuid() === 0 ? ['-d', 'opcache.preload_user=root'] : []];
        $fpm = new Fpm(temporary(), [...extensions('ffi'), ...$opcache]);
        // The class that uses FFI is preloaded; the page's own code may not use FFI.
        $said = $fpm->request(script(FIRST_CALL . ' try { FFI::cdef("int abs(int);"); echo "allowed"; } catch (FFI\Exception $e) { echo " refused to the page"; }'));
        has("\r\n\r\n60000 refused to the page", $said);
        has("\r\n\r\n60000 refused to the page", $fpm->request(script(FIRST_CALL . ' try { FFI::cdef("int abs(int);"); echo "allowed"; } catch (FFI\Exception $e) { echo " refused to the page"; }')));
    },
    'at the end of a request its connections are closed, whichever code makes the last call' => static function (): void {
        $db = new TestDb();
        $uid = $db->running(2000000000);
        $fpm = new Fpm(temporary(), [...extensions('ffi'), '-d', 'ffi.enable=true']);
        $connection = '$r = new NrLlmRuntime(' . var_export($db->connection(), true) . ');';
        $renew = "\$r->renewLease($uid, 'worker:a', 2000000000)";
        $late = "class Late { function __construct(private \$r) {} function __destruct() { \$r = \$this->r; echo ' in a destructor ', (int) $renew; } }";
        $ways = [
            'a call' => "$connection echo (int) $renew;",
            'a shutdown function' => "$connection register_shutdown_function(function () use (\$r) { echo (int) $renew; });",
            'the last shutdown function' => "$connection $renew; register_shutdown_function(function () use (\$r) { register_shutdown_function(function () use (\$r) { register_shutdown_function(function () use (\$r) { echo (int) $renew; }); }); });",
            'a destructor' => "$late $connection $renew; \$GLOBALS['late'] = new Late(\$r); \$GLOBALS['late']->self = \$GLOBALS['late'];",
            'an uncaught exception' => "$late $connection $renew; new Late(\$r); \$late = new Late(\$r); throw new Exception('uncaught');",
            'an exception in a shutdown function' => "$connection $renew; register_shutdown_function(function () { throw new Exception('in shutdown'); });",
            'a fatal error' => "$connection $renew; ini_set('memory_limit', '8M'); str_repeat('x', 1 << 26);",
            'exit' => "$connection $renew; exit('left');",
        ];
        foreach ($ways as $label => $code) {
            $said = $fpm->request(script("ini_set('display_errors', '0'); #[AllowDynamicProperties] class Any {} " . str_replace('class Late', '#[AllowDynamicProperties] class Late', $code)));
            until(static fn (): bool => connections($db) === 0, "the end of the connections after $label ($said)");
            if (str_contains($label, 'function') && !str_contains($label, 'exception') || $label === 'a destructor') {
                has('1', substr($said, strpos($said, "\r\n\r\n") + 4));
            }
        }
    },
    'a lease ends with its request, and its thread with it, also after a fatal error' => static function (): void {
        $db = new TestDb();
        $fpm = new Fpm(temporary(), [...extensions('ffi'), '-d', 'ffi.enable=true']);
        $threads = script('echo "threads ", count(scandir("/proc/self/task")) - 2;');
        $connection = '$r = new NrLlmRuntime(' . var_export($db->connection(), true) . ');';
        foreach ([
            'the end' => '', 'exit' => 'exit();', 'an uncaught exception' => 'throw new Exception("x");', 'a fatal error' => "ini_set('memory_limit', '8M'); str_repeat('x', 1 << 26);",
            'a cycle' => '$a = new stdClass(); $a->a = $a; $a->l = $l; unset($l, $a);',
        ] as $label => $end) {
            $uid = $db->running(time() + 100);
            $said = $fpm->request(script("ini_set('display_errors', '0'); $connection \$l = \$r->keepLease($uid, 'worker:a', 10, ['everyMs' => 100]); echo \$l->state(); \$GLOBALS['kept'] = \$l; $end"));
            has('held', $said);
            has('threads 1', $fpm->request($threads));
            until(static fn (): bool => connections($db) === 0, "the end of the connections after $label");
        }
        // Where no destructors run, the next request that uses the bridge ends the leases and
        // connections of this one.
        $uid = $db->running(time() + 100);
        $said = $fpm->request(script("ini_set('display_errors', '0'); $connection \$l = \$r->keepLease($uid, 'worker:a', 10, ['everyMs' => 100]); echo \$l->state(); class Bad { function __destruct() { exit(); } } \$bad = new Bad();"
            . 'register_shutdown_function(function () { throw new Exception("in shutdown"); });'));
        has('held', $said);
        has('60000', $fpm->request(script(FIRST_CALL)));
        has('threads 1', $fpm->request($threads));
        until(static fn (): bool => connections($db) === 0, 'the end of the connections after all');
    },
    'on the command line a destructor may still end a kept run' => static function (): void {
        $db = new TestDb();
        $uid = $db->running(time() + 100);
        $code = '#[AllowDynamicProperties] class Worker { function __construct(public $r, public $l) { $this->self = $this; } function __destruct() { echo $this->l->state(), " ", (int) $this->r->requeue(' . $uid . ', "worker:a"); } }'
            . '$r = new NrLlmRuntime(' . var_export($db->connection(), true) . '); $w = new Worker($r, $r->keepLease(' . $uid . ', "worker:a", 10, ["everyMs" => 100])); unset($r);';
        same('held 1', bridge($code));
        until(static fn (): bool => connections($db) === 0, 'the end of the connections');
    },
    'the extension is loaded: the bridge declares nothing' => static function (): void {
        $said = php('require ' . var_export(package() . '/autoload.php', true) . ';' . INCLUDE_ALL . 'echo (new ReflectionClass("NrLlmRuntime"))->isInternal() ? "the extension\'s" : "the bridge\'s";',
            [...extensions('ffi'), '-d', 'extension=' . getenv('NRLLM_MODULE')]);
        same("included the extension's", $said);
        $twice = php('foreach (glob(' . var_export(package() . '/src/*.php', true) . ') as $f) { require $f; require $f; } echo "twice";', extensions('ffi'));
        same('twice', $twice, 'a file read twice');
    },
    'the extension and the library in one process do not disturb each other' => static function (): void {
        $db = new TestDb();
        $uid = $db->running(time() + 1000);
        $connection = var_export($db->connection(), true);
        $code = <<<'PHP'
            use NrLlmRuntime\Ffi\{Call, Json, Library};
            const MODULE_AND_LIBRARY = true;
            $extension = new NrLlmRuntime($connection);
            $json = Json::encode($connection);
            $handle = Call::handle('NrllmRuntime', 'nrllm_runtime_new', $json, strlen($json), null, 0, null, 0);
            $library = static fn (int $lease): bool => Call::flag('nrllm_renew_lease', $handle, $uid, 'worker:a', 8, $lease);
            $both = static function (string $label) use ($extension, $library, $uid): void {
                echo $label, ' ', (int) $extension->renewLease($uid, 'worker:a', 2000000000), (int) $library(2000000001), "\n";
            };
            $both('calls');
            $lease = $extension->keepLease($uid, 'worker:a', 60, ['everyMs' => 100]);
            $options = '{"everyMs":100}';
            $kept = Call::handle('NrllmKeptLease', 'nrllm_keep_lease', $handle, $uid, 'worker:a', 8, 60, $options, strlen($options));
            $both('with a heartbeat thread each');
            $pid = pcntl_fork();
            if ($pid === 0) {
                echo 'child ', (int) $extension->renewLease($uid, 'worker:a', 2000000002), (int) $library(2000000003), ' ', $lease->state(), ' ', Call::text('nrllm_kept_lease_state', $kept), "\n";
                exit(0);
            }
            pcntl_waitpid($pid, $status);
            echo 'child ended ', pcntl_wexitstatus($status), "\n";
            $heartbeats = [$lease->beats(), Call::integer('nrllm_kept_lease_beats', $kept)];
            for ($i = 0; $i < 4000 && ($lease->beats() <= $heartbeats[0] + 1 || Call::integer('nrllm_kept_lease_beats', $kept) <= $heartbeats[1] + 1); $i++) {
                usleep(5000);
            }
            echo 'both renewed: ', $lease->state(), ' ', Call::text('nrllm_kept_lease_state', $kept), "\n";
            $extension->close();
            $both('after close() of the extension');
            Call::action('nrllm_runtime_close', $handle);
            $both('after close of the library');
            Library::ffi()->nrllm_reset();
            echo 'after the library\'s reset: ', $lease->state(), ' ', (int) $extension->renewLease($uid, 'worker:a', 2000000000), "\n";
            try {
                $library(5);
            } catch (ValueError $error) {
                echo $error->getMessage(), "\n";
            }
            echo NrLlmRuntime::identity('w') === Call::text('nrllm_identity', 'w', 1) ? 'one identity' : 'two identities', "\n";
            PHP;
        $code = preg_replace('/^use .*;$/m', '', $code);
        $uses = 'use NrLlmRuntime\Ffi\Call; use NrLlmRuntime\Ffi\Json; use NrLlmRuntime\Ffi\Library; require ' . var_export(package() . '/autoload.php', true) . "; \$uid = $uid; \$connection = $connection;";
        $said = php($uses . $code, [...extensions('ffi', 'pcntl'), '-d', 'extension=' . getenv('NRLLM_MODULE')]);
        same("calls 11\nwith a heartbeat thread each 11\nchild 11 stopped stopped\nchild ended 0\nboth renewed: held held\nafter close() of the extension 11\nafter close of the library 11\n"
            . "after the library's reset: held 1\n\$runtime is not a handle of nrllm_runtime_new() (any more)\ntwo identities\n", $said);
    },
    'interruptOnLoss needs the extension' => static function (): void {
        $said = bridge('try { (new NrLlmRuntime("mysql://u:p@127.0.0.1:1/d"))->keepLease(1, "w", 60, ["interruptOnLoss" => true]); } catch (NrLlmConfigurationException $e) { echo $e->getMessage(); }');
        has('needs the extension', $said);
    },
    'the classes are those of php-ffi, of the interface that php-stubs promises' => static function (): void {
        require_once TOP . '/tests/package/interface.php';
        // What PHP's own code needs so that an object cannot be stored; the extension's classes
        // have flags for it.
        $own = '/::__(serialize|unserialize)\(/';
        $bridge = describe_stubs_apart(TOP . '/php-ffi/src');
        $stubs = describe_stubs_apart(TOP . '/php-stubs');
        $bridge = array_filter($bridge, static fn (string $fact): bool => preg_match($own, $fact) !== 1 && !str_contains($fact, 'NrLlmRuntime\Ffi'), ARRAY_FILTER_USE_KEY);
        // The one known difference: both bindings check the connection themselves, with the same
        // message.
        $known = KNOWN_DIFFERENCES['NrLlmRuntime::__construct($connection) type'];
        same(['NrLlmRuntime::__construct($connection) type' => $known['extension']], array_diff_assoc($bridge, $stubs), 'the bridge has');
        same(['NrLlmRuntime::__construct($connection) type' => $known['stubs']], array_diff_assoc($stubs, $bridge), 'the stubs have');
        same(array_map(basename(...), glob(TOP . '/php-stubs/*.php')), array_map(basename(...), glob(TOP . '/php-ffi/src/*.php')), 'a file a class');
    },
    'a signal handler that throws inside a call leaves a trace that can be printed' => static function (): void {
        $code = <<<'PHP'
            $armed = $end = false;
            pcntl_async_signals(true);
            pcntl_signal(SIGUSR1, static function () use (&$armed) {
                if ($armed) {
                    throw new LogicException('from the handler');
                }
            });
            pcntl_signal(SIGTERM, static function () use (&$end) { $end = true; });
            $parent = getmypid();
            $child = pcntl_fork();
            if ($child === 0) {
                for ($i = 0; posix_getppid() === $parent; $i++) {
                    posix_kill($parent, $i < 3000 ? SIGUSR1 : SIGTERM);
                    usleep(100);
                }
                posix_kill(getmypid(), SIGKILL);
            }
            $kept = [];
            while (!$end) {
                try {
                    $armed = true;
                    NrLlmRuntime::backoffMs(1);
                    NrLlmRuntime::classifyFailure(new Exception());
                    new NrLlmRuntime('mysql://u:hush@127.0.0.1:1/d', ['jitter' => 0.5]);
                    $armed = false;
                } catch (LogicException $error) {
                    $armed = false;
                    $kept[] = $error;
                }
            }
            posix_kill($child, SIGKILL);
            foreach ($kept as $error) {
                if (str_contains($error . print_r($error->getTrace(), true), 'hush')) {
                    echo 'the password';
                }
            }
            echo count($kept) > 50 ? 'ok' : count($kept) . ' traces';
            PHP;
        same('ok', bridge($code, null, [...extensions('pcntl', 'posix'), '-d', 'zend.exception_ignore_args=0', '-d', 'memory_limit=1G']));
    },
    'objects that are freed free their handles' => static function (): void {
        $code = 'for ($i = 0; $i < 2000; $i++) { $r = new NrLlmRuntime("mysql://u:p@127.0.0.1:1/d", ["maxRequeues" => $i]); } unset($r); $kb = fn () => (int) preg_replace("/.*VmRSS:\s+(\d+).*/s", "$1", file_get_contents("/proc/self/status"));'
            . '$before = $kb(); for ($i = 0; $i < 20000; $i++) { $r = new NrLlmRuntime("mysql://u:p@127.0.0.1:1/d", ["maxRequeues" => $i]); } echo $kb() - $before < 2000 ? "flat" : $kb() - $before;';
        same('flat', bridge($code));
    },
];

if (($argv[1] ?? '') === '--list') {
    echo implode("\n", array_keys($cases)), "\n";
    exit(0);
}
try {
    $cases[$argv[1]]();
    echo "ok\n";
} catch (Throwable $error) {
    echo $error->getMessage(), "\n", $error instanceof LogicException ? $error->getTraceAsString() : $error, "\n";
    exit(1);
}
