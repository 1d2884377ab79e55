<?php

declare(strict_types=1);

// Tests the stepped clock: PHP, the module and a forked child see each step at once, and the
// monotonic clock is unchanged. Arguments: the preloaded library, the module or the bridge's
// library.
require __DIR__ . '/clock.inc';

if (getenv('NRLLM_CLOCK') === false) {
    [, $library, $module] = $argv;
    $clock = new WallClock($library, tempnam(sys_get_temp_dir(), 'nrllm-clock.'));
    $load = [];
    foreach (explode(' ', trim((string) getenv('NRLLM_CHAOS_EXTENSIONS'))) as $name) {
        $name === '' || array_push($load, '-d', "extension=$name");
    }
    $process = proc_open([PHP_BINARY, '-n', ...$load, '-d', 'ffi.enable=1', ...str_contains($module, 'libnrllm_runtime.so') ? ['-d', "extension=$module"] : [], __FILE__, $library, $module],
        [['pipe', 'r'], ['pipe', 'w'], STDERR], $pipes, null, $clock->environment());
    $monotonic = 0;
    foreach ([0, 1, -1, 3600, -86_400 * 365 * 20, 0, 7] as $step) {
        $clock->set($step);
        fwrite($pipes[0], "?\n");
        $seen = json_decode((string) fgets($pipes[1]), true);
        $right = is_array($seen) && $seen['monotonic'] >= $monotonic && $seen['monotonic'] <= hrtime(true);
        foreach (['time', 'microtime', 'module', 'child'] as $reader) {
            // Between the child's reading and this one the second may have changed; on a busy
            // machine by a few.
            $right = $right && abs(time() + $step - $seen[$reader]) <= 10 && ($step === 0 || abs($step) < 10 || abs(time() - $seen[$reader]) > 10);
        }
        // The distance of the two clocks has changed by the step, exactly.
        $offset = $right ? $seen['microtime'] - $seen['monotonic'] / 1e9 : 0.0;
        $right = $right && (!isset($first) || abs($offset - $first - $step) < 0.2);
        $first ??= $offset;
        $monotonic = $seen['monotonic'] ?? 0;
        echo $right ? 'ok      ' : 'FAILED  ', "the stepped clock: $step s", $right ? '' : ': ' . json_encode($seen), "\n";
    }
    fclose($pipes[0]);
    proc_close($process);
    unlink($clock->file);
    exit;
}
if (!extension_loaded('nrllm_runtime')) {
    define('NRLLM_RUNTIME_LIBRARY', $argv[2]);
    require dirname(__DIR__, 2) . '/php-ffi/autoload.php';
}
$runtime = new NrLlmRuntime(['driver' => 'mysqli', 'host' => '127.0.0.1', 'port' => 1, 'user' => 'none', 'password' => '', 'dbname' => 'none']);
while (fgets(STDIN) !== false) {
    // The module does not report its time, but the longest lease that fits into the column, from
    // which the time follows.
    try {
        $runtime->keepLease(1, 'worker', PHP_INT_MAX);
    } catch (ValueError | NrLlmException $error) {
        preg_match('/from 2 to (\d+)/', $error->getMessage(), $longest);
    }
    // Reads the two clocks at the same moment: again where the process had to wait in between.
    do {
        $before = hrtime(true);
        $micro = microtime(true);
        $monotonic = hrtime(true);
    } while ($monotonic - $before > 20_000_000);
    $seen = ['time' => time(), 'microtime' => $micro, 'monotonic' => $monotonic, 'module' => 4_294_967_295 - (int) $longest[1]];
    $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    if (pcntl_fork() === 0) {
        fwrite($pair[1], (string) time());
        posix_kill(getmypid(), SIGKILL);
    }
    pcntl_wait($status);
    echo json_encode($seen + ['child' => (int) fread($pair[0], 20)]), "\n";
}
