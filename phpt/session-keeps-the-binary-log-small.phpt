--TEST--
A heartbeat is logged as a statement or with the smallest row image; where the account may not set that, status() reports cost and remedy (rule 33)
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
foreach (['STATEMENT', 'MIXED', 'ROW'] as $format) {
    // The tests' port and account are those of the last server.
    $server = null;
    $server = new OwnServer('--log-bin=binlog', '--server-id=1', "--binlog-format=$format");
    $db = new TestDb();
    $site = OwnServer::siteAccount($db);
    /** Where the binary log ends: MySQL's statement for it has a new name. */
    $end = static function () use ($db): int {
        foreach (['SHOW BINARY LOG STATUS', 'SHOW MASTER STATUS'] as $statement) {
            try {
                return (int) $db->link()->query($statement)->fetch_assoc()['Position'];
            } catch (mysqli_sql_exception) {
            }
        }
        throw new LogicException('the server has no binary log');
    };
    $uid = $db->running(time() + 100, ['queued_request' => str_repeat('x', 20480)]);
    foreach (['administrator' => [], 'site' => $site] as $account => $settings) {
        $runtime = $db->runtime([], $settings);
        $runtime->renewLease($uid, 'worker:a', time() + 100);
        $before = $end();
        $runtime->renewLease($uid, 'worker:a', time() + 200);
        $bytes = $end() - $before;
        ['isolation' => $isolation, 'binlog' => $binlog] = $runtime->status();
        printf("%s, %s: %s, %s, %s, status() says %s%s\n", $format, $account, $isolation, $binlog['rowImage'] ?? 'no image', $bytes < 1000 ? 'small' : ($bytes > 40000 ? 'both images' : $bytes),
            // An estimate: within a factor of two.
            $binlog['bytesPerHeartbeat'] > $bytes / 2 && $binlog['bytesPerHeartbeat'] < $bytes * 2 ? 'as much' : "$binlog[bytesPerHeartbeat] of $bytes",
            $binlog['remedy'] === null ? '' : ', and a remedy');
        unset($runtime);
    }
}
?>
--EXPECT--
STATEMENT, administrator: REPEATABLE-READ, no image, small, status() says as much
STATEMENT, site: REPEATABLE-READ, no image, small, status() says as much
MIXED, administrator: REPEATABLE-READ, no image, small, status() says as much
MIXED, site: REPEATABLE-READ, no image, small, status() says as much
ROW, administrator: READ-COMMITTED, MINIMAL, small, status() says as much
ROW, site: READ-COMMITTED, FULL, both images, status() says as much, and a remedy
