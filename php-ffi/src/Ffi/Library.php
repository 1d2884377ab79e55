<?php

declare(strict_types=1);

namespace NrLlmRuntime\Ffi;

use FFI;
use NrLlmConfigurationException;

/**
 * Finds the C library, checks whether it may be trusted, and loads it once per request.
 *
 * @internal but for path() and problem()
 */
final class Library
{
    /** The version of the C library's binary interface that this package is written for. */
    public const ABI_VERSION = 1;

    /** The constant that a program may define: the library's absolute path. */
    public const CONSTANT = 'NRLLM_RUNTIME_LIBRARY';

    private const NAME = 'libnrllm_runtime_ffi.so';

    private static ?FFI $ffi = null;
    private static ?string $path = null;

    /**
     * Returns the loaded library, and loads it if necessary.
     *
     * @throws NrLlmConfigurationException
     */
    public static function path(): string
    {
        self::ffi();

        return (string)self::$path;
    }

    /** Returns why the library cannot be used here, or null when it can. */
    public static function problem(): ?string
    {
        try {
            self::ffi();

            return null;
        } catch (NrLlmConfigurationException $error) {
            return $error->getMessage();
        }
    }

    /**
     * @throws NrLlmConfigurationException
     */
    public static function ffi(): FFI
    {
        return self::$ffi ??= self::load();
    }

    public static function isLoaded(): bool
    {
        return self::$ffi !== null;
    }

    private static function load(): FFI
    {
        self::checkPhp();
        $path = self::find();
        self::checkFile($path);
        self::checkWhole($path);
        // The version is queried through a separate declaration: in a library of another version
        // the functions of the whole header may be missing, or take other arguments.
        try {
            $version = FFI::cdef('uint32_t nrllm_abi_version(void);', $path)->nrllm_abi_version();
        } catch (FFI\Exception $error) {
            throw self::problemOf("$path cannot be loaded as the library of nrllm_runtime ({$error->getMessage()}); it must be built for this"
                . ' machine (' . self::target() . '), by bin/build-ffi');
        }
        if ($version !== self::ABI_VERSION) {
            throw self::problemOf(sprintf(
                '%s has the binary interface %d, and this package (nrllm-runtime/ffi %s) is written for %d; take both from one release',
                $path,
                $version,
                \NrLlmRuntime::VERSION,
                self::ABI_VERSION,
            ));
        }
        try {
            $ffi = FFI::cdef((string)file_get_contents(dirname(__DIR__, 2) . '/nrllm_runtime.h'), $path);
        } catch (FFI\Exception $error) {
            throw self::problemOf("$path is not of the release of this package: {$error->getMessage()}");
        }
        self::$path = $path;
        Ending::begin($ffi);

        return $ffi;
    }

    private static function checkPhp(): void
    {
        if (!class_exists(FFI::class, false)) {
            throw self::problemOf('PHP\'s extension ffi is not loaded: enable it (extension=ffi in php.ini; on Debian: phpenmod ffi)');
        }
        if (PHP_INT_SIZE !== 8) {
            throw self::problemOf('this PHP has 32-bit integers, and the library needs 64');
        }
        try {
            FFI::cdef('typedef int nrllm_probe;');
        } catch (FFI\Exception $error) {
            $setting = strtolower(trim((string)ini_get('ffi.enable')));
            throw self::problemOf(match (true) {
                $setting === 'preload' => 'FFI is not allowed here: ffi.enable=preload opens it to the command line and to preloaded code only. Set ffi.enable=true'
                    . ' in php.ini for ' . PHP_SAPI . ', or preload this package (opcache.preload=' . dirname(__DIR__, 2) . '/preload.php)',
                in_array($setting, ['', '0', 'false', 'off', 'no'], true) => 'FFI is switched off: ffi.enable=false. Set ffi.enable=preload in php.ini for the command line, or'
                    . ' ffi.enable=true for ' . PHP_SAPI . ' too',
                default => "FFI cannot be used: {$error->getMessage()}",
            });
        }
    }

    /** Returns `<arch>-<libc>`, as bin/build-ffi names the folder. */
    private static function target(): string
    {
        $machine = strtolower(php_uname('m'));
        $architecture = ['amd64' => 'x86_64', 'arm64' => 'aarch64'][$machine] ?? $machine;
        try {
            // Only glibc has this function, and PHP's own libc is queried, whatever else is
            // installed.
            FFI::cdef('const char *gnu_get_libc_version(void);');

            return "$architecture-glibc";
        } catch (FFI\Exception) {
            return "$architecture-musl";
        }
    }

    private static function find(): string
    {
        if (!defined(self::CONSTANT)) {
            $path = dirname(__DIR__, 2) . '/lib/' . self::target() . '/' . self::NAME;
            if (!is_file($path)) {
                throw self::problemOf("there is no library for this machine: $path does not exist. Build it with bin/build-ffi, or define the constant "
                    . self::CONSTANT . ' with the absolute path of one');
            }
        } else {
            $path = constant(self::CONSTANT);
            // Refuses a path that depends on the working directory, and a name that the dynamic
            // linker would search for.
            if (!is_string($path) || !str_starts_with($path, '/') || str_contains($path, "\0")) {
                throw self::problemOf('the constant ' . self::CONSTANT . ' must be the absolute path of the library'
                    . (is_string($path) ? ", and is '" . addcslashes($path, "\0..\37\177'\\") . "'" : ', ' . get_debug_type($path) . ' given'));
            }
            if (!is_file($path)) {
                throw self::problemOf("there is no file $path, which the constant " . self::CONSTANT . ' names');
            }
        }
        $real = realpath($path);
        if ($real === false) {
            throw self::problemOf("the path $path cannot be followed to its end");
        }

        return $real;
    }

    /**
     * A user who can write the library can run code in this process: its permissions must be as
     * strict as those of this package's PHP files.
     */
    private static function checkFile(string $path): void
    {
        clearstatcache(true, $path);
        $mode = fileperms($path);
        $owner = fileowner($path);
        if ($mode === false || $owner === false) {
            throw self::problemOf("the permissions of $path cannot be read");
        }
        if (($mode & 0022) !== 0) {
            throw self::problemOf(sprintf('%s is refused, because others than its owner may write it (mode %04o): chmod go-w', $path, $mode & 07777));
        }
        $user = function_exists('posix_geteuid') ? posix_geteuid() : null;
        if (!in_array($owner, [0, $user, fileowner(__FILE__)], true)) {
            throw self::problemOf("$path is refused, because it belongs to the user $owner, who is neither root, nor the user of this process, nor the owner of this package");
        }
        self::checkFolders($path);
    }

    /**
     * A truncated library (an interrupted upload, a full disk) is mapped nevertheless, and the
     * first access beyond its end terminates the process by SIGBUS. Its own headers contain the
     * required length of the file.
     */
    private static function checkWhole(string $path): void
    {
        $size = (int)filesize($path);
        $bytes = static fn(int $offset, int $length): string => (string)file_get_contents($path, false, null, $offset, $length);
        $header = $bytes(0, 64);
        if (strlen($header) < 64 || !str_starts_with($header, "\x7fELF\x02\x01")) {
            // The file is not a 64-bit little-endian ELF file: the dynamic linker refuses it with
            // its own message.
            return;
        }
        ['program' => $program, 'section' => $section] = (array)unpack('Pprogram/Psection', $header, 32);
        ['programs' => $programs, 'length' => $length, 'sections' => $sections] = (array)unpack('vsize/vprograms/vlength/vsections', $header, 54);
        $needed = max($section + $length * $sections, $program + 56 * $programs);
        for ($i = 0; $i < $programs && $needed <= $size; $i++) {
            $segment = $bytes($program + 56 * $i, 56);
            if (strlen($segment) === 56) {
                ['offset' => $offset, 'filesize' => $filesize] = (array)unpack('Poffset/Pvirtual/Pphysical/Pfilesize', $segment, 8);
                $needed = max($needed, $offset + $filesize);
            }
        }
        if ($needed > $size) {
            throw self::problemOf("$path is refused, because it is not whole ($size bytes, and its headers need $needed): copy it again");
        }
    }

    /**
     * A user who can replace the library, or a folder on its path, need not write it. Only users
     * who can replace this package's PHP files as well are allowed to: they can run code in this
     * process anyway. A site whose folders a deploy group may write therefore works unchanged.
     */
    private static function checkFolders(string $path): void
    {
        [$users, $groups] = self::whoMayExchangeThisPackage();
        for ($folder = dirname($path); ; $folder = dirname($folder)) {
            $mode = fileperms($folder);
            [$owner, $group] = [fileowner($folder), filegroup($folder)];
            if ($mode === false || $owner === false || $group === false) {
                throw self::problemOf("$path is refused, because the permissions of the folder $folder cannot be read");
            }
            // In a folder with the sticky bit only the owner of the folder can replace the files of
            // other users.
            $write = ($mode & 01000) === 0 ? $mode : 0;
            [$who, $remedy] = match (true) {
                ($write & 0002) !== 0 => ['every user', "chmod o-w $folder"],
                ($write & 0020) !== 0 && !in_array($group, $groups, true) => ["the group $group", "chmod g-w $folder"],
                !in_array($owner, $users, true) => ["the user $owner", "chown root $folder"],
                default => [null, ''],
            };
            if ($who !== null) {
                throw self::problemOf("$path is refused, because $who may replace it" . ($who === 'every user' ? '' : ', who may not change this package') . ": $remedy");
            }
            if ($folder === dirname($folder)) {
                return;
            }
        }
    }

    /** @return array{list<int|false|null>, list<int|false>} users and groups */
    private static function whoMayExchangeThisPackage(): array
    {
        $users = [0, function_exists('posix_geteuid') ? posix_geteuid() : null];
        $groups = [];
        for ($path = __FILE__; str_starts_with($path, '/'); $path = dirname($path)) {
            // Warnings are suppressed: open_basedir may hide folders above the package.
            $mode = @fileperms($path);
            $users[] = @fileowner($path);
            if ($mode !== false && ($mode & 01020) === 0020) {
                $groups[] = @filegroup($path);
            }
            if ($path === dirname($path)) {
                break;
            }
        }

        return [$users, $groups];
    }

    private static function problemOf(string $message): NrLlmConfigurationException
    {
        $error = new NrLlmConfigurationException("The C library of nrllm_runtime cannot be used: $message. The PHP extension nrllm_runtime needs no FFI.");

        return Caller::blame($error);
    }
}
