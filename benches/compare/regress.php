<?php

declare(strict_types=1);

namespace Bench;

// A regression check that other load does not affect: user instructions, system calls and round
// trips of a call, against stated bounds.
//   php regress.php
// The bounds of the instructions are callgrind's counts (PHP 8.2, glibc 2.36) and ten per cent for
// other versions of PHP, libc and the compiler. A change that makes a call cheaper lowers them
// here; a change that makes it more expensive has to state why. A classification was 1 300, 1 260,
// 1 650 and 2 490 before it read `retryAfterSeconds` (rule 36), checked the types of its arguments
// in PHP's words (rule 35) and kept the classes that it found per thread.

require_once __DIR__ . '/counts.php';

const HEADROOM = 1.1;
/** Instructions counted, and the most system calls. */
const BOUNDS = [
    'renew' => ['count-renew %d UID OWNER 1900000000', 11_850, 5],
    'mark' => ['mark %d UID OWNER 1900000000', 14_850, 5],
    'classify unloaded' => ['count-classify %d unloaded', 1_490, 0],
    'classify plain' => ['count-classify %d plain', 1_436, 0],
    'classify serverError' => ['count-classify %d serverError', 1_815, 0],
    'classify chain' => ['count-classify %d chain', 2_761, 0],
];

$server = new Server();
$database = $server->database('regress');
$uid = held_run($server);
$passed = $failed = 0;
$report = static function (string $what, bool $holds) use (&$passed, &$failed): void {
    printf("%s  %s\n", $holds ? 'ok    ' : 'FAILED', $what);
    $holds ? $passed++ : $failed++;
};
slow_writes($server);
$operations = [];
foreach (BOUNDS as $name => [$command, , $calls]) {
    $operations[$name] = [strtr($command, ['UID' => (string) $uid, 'OWNER' => OWNER]), ...($calls === 0 ? [100, 1_100] : [50, 350])];
}
foreach (count_operations($server, $database, 'module', $operations) as $name => $measured) {
    [, $counted, $calls] = BOUNDS[$name];
    $most = (int) ($counted * HEADROOM);
    $report(sprintf('%s: %s instructions (at most %s)', $name, number_format($measured['instructions']), number_format($most)), $measured['instructions'] > 0 && $measured['instructions'] <= $most);
    // Rounded to a tenth: refilling a buffer every hundred replies is not counted for a call.
    $report(sprintf('%s: %s system calls (at most %d) %s', $name, $measured['syscalls'], $calls, json_encode($measured['kinds'])), round($measured['syscalls'], 1) <= $calls);
}
fast_writes($server);
// One statement, prepared once: the server's counters between few and many renewals.
$worker = new Worker('module', $server, $database);
$worker->ask("renew 3 $uid " . OWNER . ' 1800000000 1');
$own = $server->counters();
$own = counters_between($own, $server->counters(), []);
foreach (['renew changed' => "renew 50 $uid " . OWNER . ' 1800000100 1', 'renew unchanged' => "renew 50 $uid " . OWNER . ' 1800000200 0', 'renew lost' => "renew 50 $uid worker:other 1800000300 1"] as $name => $command) {
    $before = $server->counters();
    $worker->ask($command);
    $between = counters_between($before, $server->counters(), $own);
    $trips = ($between['Questions'] + $between['Com_stmt_prepare']) / 50;
    $report(sprintf('%s: %s round trips', $name, $trips), $trips == 1);
}
$worker->close();
$server->run("DROP DATABASE `$database`");
echo "$passed passed, $failed failed\n";
exit($failed === 0 && $passed > 0 ? 0 : 1);
