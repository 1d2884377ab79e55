--TEST--
Fork: a child that destroys or closes the inherited object does not close the parent's connection
--DESCRIPTION--
Dropping the driver's connection in the child deregisters its socket from the epoll instance that both share: the parent's next call
would hang for ever.
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
    'unsets' => static function () use (&$runtime): int {
        $runtime = null;
        gc_collect_cycles();
        return 0;
    },
    'closes' => static function () use (&$runtime): int {
        $runtime->close();
        return 0;
    },
    'closes and unsets' => static function () use (&$runtime): int {
        $runtime->close();
        $runtime = null;
        return 0;
    },
    'makes another and unsets both' => static function () use (&$runtime, $db, $uid): int {
        $own = $db->runtime();
        $renewed = $own->renewLease($uid, 'worker:a', 2000000009);
        $runtime = null;
        $own = null;
        return $renewed ? 0 : 1;
    },
];
foreach ($children as $label => $child) {
    $code = $db->fork($child);
    $start = hrtime(true);
    printf("%s: %d, parent %s", $label, $code, var_export($runtime->renewLease($uid, 'worker:a', 2000000002), true));
    printf(", %s\n", (hrtime(true) - $start) / 1e6 < 2000 * patience() ? 'at once' : 'late');
}
var_dump($sessions() === $before);
// Conversely, the parent's object is destroyed while a child still uses its copy.
$pipe = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
$db->closeLink();
$pid = pcntl_fork();
if ($pid === 0) {
    $ok = $runtime->renewLease($uid, 'worker:a', 2000000003);
    fgets($pipe[1]);
    exit($ok && $runtime->renewLease($uid, 'worker:a', 2000000004) ? 0 : 1);
}
$runtime->close();
$runtime = null;
fwrite($pipe[0], "go on\n");
pcntl_waitpid($pid, $status);
var_dump(pcntl_wexitstatus($status));
?>
--EXPECT--
unsets: 0, parent true, at once
closes: 0, parent true, at once
closes and unsets: 0, parent true, at once
makes another and unsets both: 0, parent true, at once
bool(true)
int(0)
