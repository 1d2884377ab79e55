--TEST--
Fork: a child that only exits, by its end, exit() or a signal, leaves the parent's connection usable
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
$runtime = $db->runtime();
$uid = $db->running(2000000000);
$runtime->renewLease($uid, 'worker:a', 2000000001);
$sessions = static fn (): string => (string) $db->value('SELECT GROUP_CONCAT(id ORDER BY id) FROM information_schema.processlist WHERE db = ? AND id <> CONNECTION_ID()', [$db->name]);
$before = $sessions();
$children = [
    'returns' => static fn (): int => 0,
    'exits' => static function (): never { exit(3); },
    'is killed' => static function (): int { posix_kill(getmypid(), SIGKILL); return 1; },
    'dies of a fatal error' => static function (): int {
        ini_set('display_errors', '0');
        ini_set('log_errors', '0');
        undefined_function_of_the_child();
    },
];
foreach ($children as $label => $child) {
    $start = hrtime(true);
    $code = $db->fork($child);
    check((hrtime(true) - $start) / 1e6 < 3000 * patience(), "the child that $label ends at once");
    printf("%s: %d, parent %s\n", $label, $code, var_export($runtime->renewLease($uid, 'worker:a', 2000000002), true));
}
// An object without a call before the fork.
$unused = $db->runtime();
echo 'unused: ', $db->fork(static fn (): int => 0), ' ', var_export($unused->renewLease($uid, 'worker:a', 2000000003), true), "\n";
var_dump($sessions() === $before);
?>
--EXPECT--
returns: 0, parent true
exits: 3, parent true
is killed: 137, parent true
dies of a fatal error: 255, parent true
unused: 0 true
bool(true)
