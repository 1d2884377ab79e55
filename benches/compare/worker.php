<?php

declare(strict_types=1);

namespace Bench;

// One variant in a separate process. Reads commands from standard input and answers each with one
// line of JSON; run.php sends the commands.
//   php worker.php doctrine|plain|module|ffi SOCKET USER PASSWORD DATABASE TABLE
//   renew N UID OWNER LEASE STEP     N renewals of one run, each lease STEP seconds after the last
//   mark N UID OWNER LEASE           N times mark or clear
//   claim N FIRST OWNER LEASE        claims N queued runs, uids from FIRST
//   recover N FIRST OWNER            a failure of N runs that the owner holds
//   reap LIMIT NOW | drain LIMIT NOW (again and again, until nothing is left)
//   classify N FAMILY                a family of failures.php, or `unloaded`: a plain exception
//                                    while none of the known classes is loaded
//   count-renew N UID OWNER LEASE, count-classify N FAMILY
//                                    the same without reading the clock, for counting instructions
//   keep N UID OWNER                 keeps the lease, and reads it N times
//   heartbeats N UID OWNER           keeps the lease until N heartbeats were sent
//   status N | list N LIMIT NOW      status(), and a dry run
//   boundary                         calls getppid(), which separates what counts.php counts
// The answer: operations done and measured, the median and the sum of their times in ns, CPU time
// in µs, peak memory over that before in KiB.

/** Where the runs are. */
final readonly class Target
{
    public function __construct(
        public string $socket,
        public string $user,
        public string $password,
        public string $database,
        public string $table,
        public int $timeoutMs = 120_000,
    ) {}
}

interface Variant
{
    public function __construct(Target $target);
    public function renew(int $uid, string $owner, int $lease): bool;
    public function mark(int $uid, string $owner, string $effect, int $lease): bool;
    public function claim(int $uid, string $owner, int $lease): bool;
    public function recover(int $uid, string $owner, \Throwable $error): string;
    /** @return array{int, int, int} requeued, dead-lettered, skipped */
    public function reap(int $limit, int $now): array;
    public function classify(\Throwable $error): object;
}

[, $name, $socket, $user, $password, $database, $table] = $argv;
require __DIR__ . '/ladder.php';
switch ($name) {
    case 'doctrine':
        require 'Doctrine/DBAL/autoload.php';
        require __DIR__ . '/doctrine.php';
        $class = DoctrineVariant::class;
        break;
    case 'plain':
        require __DIR__ . '/plain.php';
        $class = PlainVariant::class;
        break;
    case 'ffi':
        require dirname(__DIR__, 2) . '/php-ffi/autoload.php';
        require __DIR__ . '/native.php';
        $class = NativeVariant::class;
        break;
    case 'module':
        require __DIR__ . '/native.php';
        $class = NativeVariant::class;
        break;
    default:
        fwrite(STDERR, "worker.php: what is $name\n");
        exit(2);
}
$variant = new $class(new Target($socket, $user, $password, $database, $table));

function memory(string $name): int
{
    return preg_match("/^$name:\s+(\d+)/m", file_get_contents('/proc/self/status'), $match) ? (int) $match[1] : 0;
}

/**
 * Runs the operation n times and returns the times; the operation receives the number of the round
 * and returns whether it was done.
 */
function measure(int $n, callable $operation): array
{
    $times = array_fill(0, $n, 0);
    gc_collect_cycles();
    @file_put_contents('/proc/self/clear_refs', '5');
    $rss = memory('VmRSS');
    $before = getrusage();
    $done = 0;
    for ($i = 0; $i < $n; $i++) {
        $start = hrtime(true);
        $ok = $operation($i);
        $times[$i] = hrtime(true) - $start;
        $done += (int) $ok;
    }
    $after = getrusage();
    $peak = memory('VmHWM') - $rss;
    $total = array_sum($times);
    sort($times);
    $micro = static fn (string $kind): int
        => ($after["ru_$kind.tv_sec"] - $before["ru_$kind.tv_sec"]) * 1_000_000 + $after["ru_$kind.tv_usec"] - $before["ru_$kind.tv_usec"];

    return ['done' => $done, 'n' => $n, 'p50' => $times[intdiv($n, 2)], 'total' => $total, 'user' => $micro('utime'), 'system' => $micro('stime'), 'peak' => $peak];
}

/**
 * Times a loop as a whole, minus the same loop around nothing: for calls that are shorter than
 * reading the clock.
 */
function measure_loop(int $n, callable $loop, callable $empty): array
{
    $best = [];
    for ($round = 0; $round < 5; $round++) {
        $start = hrtime(true);
        $empty($n);
        $nothing = hrtime(true) - $start;
        $start = hrtime(true);
        $loop($n);
        $best[] = hrtime(true) - $start - $nothing;
    }
    sort($best);

    return ['done' => $n, 'n' => $n, 'p50' => $best[2] / $n, 'total' => $best[2], 'user' => 0, 'system' => 0, 'peak' => 0];
}

echo "ready\n";
while (($line = fgets(STDIN)) !== false) {
    $word = explode(' ', trim($line));
    $number = static fn (int $index): int => (int) $word[$index];
    switch ($word[0]) {
        case 'renew':
            [$uid, $owner, $lease, $step] = [$number(2), $word[3], $number(4), $number(5)];
            $answer = measure($number(1), static fn (int $i): bool => $variant->renew($uid, $owner, $lease + $i * $step));
            break;
        case 'mark':
            [$uid, $owner, $lease] = [$number(2), $word[3], $number(4)];
            $answer = measure($number(1), static fn (int $i): bool => $variant->mark($uid, $owner, $i % 2 ? '' : 'idempotent_write', $lease + $i));
            break;
        case 'claim':
            [$first, $owner, $lease] = [$number(2), $word[3], $number(4)];
            $answer = measure($number(1), static fn (int $i): bool => $variant->claim($first + $i, $owner, $lease));
            break;
        case 'recover':
            require_once __DIR__ . '/failures.php';
            [$first, $owner] = [$number(2), $word[3]];
            $error = throwable('rateLimit');
            $answer = measure($number(1), static fn (int $i): bool => $variant->recover($first + $i, $owner, $error) === 'requeued');
            break;
        case 'reap':
            [$limit, $now] = [$number(1), $number(2)];
            $counts = [0, 0, 0];
            $answer = measure(1, static function () use ($variant, $limit, $now, &$counts): bool {
                $counts = $variant->reap($limit, $now);
                return true;
            });
            $answer['done'] = $counts[0] + $counts[1];
            break;
        case 'drain':
            // Several reapers share the work: each continues until it finds no run.
            [$limit, $now, $handled] = [$number(1), $number(2), 0];
            $answer = measure(1, static function () use ($variant, $limit, $now, &$handled): bool {
                do {
                    [$requeued, $deadLettered] = $variant->reap($limit, $now);
                    $handled += $requeued + $deadLettered;
                } while ($requeued + $deadLettered > 0);
                return true;
            });
            $answer['done'] = $handled;
            break;
        case 'classify':
            if ($word[2] !== 'unloaded') {
                require_once __DIR__ . '/failures.php';
            }
            $error = $word[2] === 'unloaded' ? new \RuntimeException('some error') : throwable($word[2]);
            // Called directly, as a program would, without a call through the interface.
            $loop = $variant instanceof NativeVariant
                ? static function (int $n) use ($error): void { for ($i = 0; $i < $n; $i++) { \NrLlmRuntime::classifyFailure($error); } }
                : static function (int $n) use ($error): void { for ($i = 0; $i < $n; $i++) { Ladder::classify($error); } };
            $answer = measure_loop($number(1), $loop, static function (int $n): void { for ($i = 0; $i < $n; $i++) { } });
            break;
        case 'count-renew':
        case 'count-classify':
            // For counting instructions: a bare loop around the call.
            [$n, $done] = [$number(1), 0];
            if ($word[0] === 'count-renew') {
                [$uid, $owner, $lease] = [$number(2), $word[3], $number(4)];
                if ($variant instanceof NativeVariant) {
                    $runtime = $variant->runtime();
                    for ($i = 0; $i < $n; $i++) {
                        $done += (int) $runtime->renewLease($uid, $owner, $lease + $i);
                    }
                } else {
                    for ($i = 0; $i < $n; $i++) {
                        $done += (int) $variant->renew($uid, $owner, $lease + $i);
                    }
                }
            } else {
                if ($word[2] !== 'unloaded') {
                    require_once __DIR__ . '/failures.php';
                }
                $error = $word[2] === 'unloaded' ? new \RuntimeException('some error') : throwable($word[2]);
                if ($variant instanceof NativeVariant) {
                    for (; $done < $n; $done++) {
                        \NrLlmRuntime::classifyFailure($error);
                    }
                } else {
                    for (; $done < $n; $done++) {
                        Ladder::classify($error);
                    }
                }
            }
            $answer = ['done' => $done, 'n' => $n];
            break;
        case 'keep':
            $lease = $variant->runtime()->keepLease($number(2), $word[3]);
            $answer = measure_loop($number(1),
                static function (int $n) use ($lease): void { for ($i = 0; $i < $n; $i++) { $lease->isHeld(); } },
                static function (int $n): void { for ($i = 0; $i < $n; $i++) { } });
            $lease->release();
            break;
        case 'heartbeats':
            // Sent by the heartbeat thread, each in another second, since a heartbeat that changes
            // no value is not logged everywhere. Their time is not measured.
            $lease = $variant->runtime()->keepLease($number(2), $word[3], 60, ['everyMs' => 1_100]);
            while ($lease->beats() < 1 + $number(1)) {
                usleep(10_000);
            }
            $lease->release();
            $answer = ['done' => $lease->beats() - 1, 'n' => $lease->beats(), 'p50' => 0, 'total' => 0, 'user' => 0, 'system' => 0, 'peak' => 0];
            break;
        case 'status':
            $answer = measure($number(1), static fn (): bool => $variant->runtime()->status() !== []);
            break;
        case 'list':
            [$limit, $now] = [$number(2), $number(3)];
            $answer = measure($number(1), static fn (): bool => count($variant->runtime()->reap($limit, $now, ['dryRun' => true])) === $limit);
            break;
        case 'boundary':
            posix_getppid();
            $answer = ['done' => 1, 'n' => 1];
            break;
        case 'close':
            exit(0);
        default:
            fwrite(STDERR, "worker.php: what is {$word[0]}\n");
            exit(2);
    }
    echo json_encode($answer), "\n";
}
