--TEST--
Failed connects and calls that time out leave neither a connection nor a descriptor open, without close() (rule 29)
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/stalling.inc';
$db = new TestDb();
$uid = $db->running(2000000000);
$stalled = [
    'no greeting' => new StallingProxy($db, '', 0),
    'half a greeting' => new StallingProxy($db, '', 40),
    'no settings' => new StallingProxy($db, 'SET NAMES', 0),
    'half an answer' => new StallingProxy($db, 'SHOW VARIABLES', 300),
];
$calls = ['no reply' => new StallingProxy($db, 'UPDATE ', 0), 'half a reply' => new StallingProxy($db, 'SELECT ', 40)];
$descriptors = static fn (): int => count(scandir('/proc/self/fd'));
/** The server notices the end of a connection a moment later. */
$open = static function (int $wanted) use ($db): int {
    until(static fn (): bool => count(connections($db)) === $wanted, 5000);
    return count(connections($db));
};
/** How many of the calls throw that the connection failed, with this number of the server's. */
$fails = static function (NrLlmRuntime $runtime, int $calls, int $code) use ($uid): int {
    $failed = 0;
    for ($i = 0; $i < $calls; $i++) {
        try {
            $runtime->renewLease($uid, 'worker:a', 2000000000 + $i);
        } catch (NrLlmConnectionException $error) {
            $failed += (int) ($error->getCode() === $code);
        }
    }
    return $failed;
};
/**
 * Lets calls fail; prints how many do, and what stays open. The first call of an object opens the
 * event loop that the object keeps.
 */
$report = static function (string $label, int $calls, NrLlmRuntime $runtime, int $code) use ($fails, $open, $descriptors): void {
    $failed = $fails($runtime, 1, $code);
    $before = $descriptors();
    $failed += $fails($runtime, $calls - 1, $code);
    printf("%s: %d of %d fail, %d connections, %d descriptors more\n", $label, $failed, $calls, $open(0), $descriptors() - $before);
};
// The first connection of a process opens what the process keeps.
$runtime = $db->runtime();
$runtime->renewLease($uid, 'worker:a', 2000000000);
unset($runtime);
$db->link();
$open(0);
$before = $descriptors();
foreach ($stalled as $label => $proxy) {
    $report("connecting, $label", 20, $db->runtime(['connectTimeoutMs' => 100], ['unix_socket' => $proxy->socket]), 0);
}
$report('a refused login', 20, $db->runtime([], ['password' => 'p@ss-that-is-wrong']), 1045);
// The client's limit: the reply never comes, and the connection is given up.
foreach ($calls as $label => $proxy) {
    $report($label, 10, $db->runtime(['queryTimeoutMs' => 100], ['unix_socket' => $proxy->socket]), 0);
}
// The server's limit: the row is locked, the statement ends, and the connection stays. MySQL ends a
// write by the limit of the lock alone, which is a second.
$mysql = getenv('NRLLM_TEST_SERVER') === 'mysql';
$count = match (true) {
    $mysql => 10,
    patience() > 1 => 50,
    default => 1000,
};
$runtime = $db->runtime(['queryTimeoutMs' => 5]);
$db->link()->begin_transaction();
$db->query('SELECT uid FROM tx_nrllm_agentrun WHERE uid = ? FOR UPDATE', [$uid]);
$failed = $fails($runtime, $count, $mysql ? 1205 : 1969);
$db->link()->rollback();
echo 'a locked row: ', $failed === $count ? 'all' : "only $failed", ' fail, ', $open(1), " connection\n";
unset($runtime);
printf("without an object: %d connections, %d descriptors more\n", $open(0), $descriptors() - $before);
?>
--EXPECT--
connecting, no greeting: 20 of 20 fail, 0 connections, 0 descriptors more
connecting, half a greeting: 20 of 20 fail, 0 connections, 0 descriptors more
connecting, no settings: 20 of 20 fail, 0 connections, 0 descriptors more
connecting, half an answer: 20 of 20 fail, 0 connections, 0 descriptors more
a refused login: 20 of 20 fail, 0 connections, 0 descriptors more
no reply: 10 of 10 fail, 0 connections, 0 descriptors more
half a reply: 10 of 10 fail, 0 connections, 0 descriptors more
a locked row: all fail, 1 connection
without an object: 0 connections, 0 descriptors more
