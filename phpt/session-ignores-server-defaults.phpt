--TEST--
Server defaults change no answer, and each answered write is committed, in calls and in heartbeats (rule 28)
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$server = new OwnServer();
$db = new TestDb();
// Defaults apply to sessions that begin later: this connection has the usual ones, and sees what
// others have committed.
$db->link()->query('SET SESSION innodb_lock_wait_timeout = 2');
$site = OwnServer::siteAccount($db);
$readOnly = getenv('NRLLM_TEST_SERVER') === 'mysql' ? 'transaction_read_only' : 'tx_read_only';
$defaults = [
    'as they are' => [],
    'completion_type=CHAIN' => ['completion_type' => "'CHAIN'"],
    'completion_type=RELEASE' => ['completion_type' => "'RELEASE'"],
    'sql_select_limit' => ['sql_select_limit' => '3'],
    'max_join_size' => ['max_join_size' => '2', 'sql_big_selects' => '0'],
    'init_connect=BEGIN' => ['init_connect' => "'BEGIN'"],
    'init_connect sets autocommit' => ['init_connect' => "'SET autocommit = 0'"],
    'autocommit' => ['autocommit' => '0'],
    'read only' => [$readOnly => '1'],
];
/** What the calls answer, and what others see of the rows right after each. */
$calls = static function () use ($db, $site): string {
    $db->link()->query('DELETE FROM tx_nrllm_agentrun');
    $status = static fn (int $uid): string => $db->row($uid)['status'];
    $opened = static fn (): int => (int) $db->link()->query("SHOW GLOBAL STATUS LIKE 'Connections'")->fetch_column(1);
    $before = $opened();
    $uid = $db->insert();
    $runtime = $db->runtime([], $site);
    $answers[] = [$runtime->claimQueued($uid, 'worker:a', time() + 100), $status($uid)];
    $answers[] = [$runtime->requeue($uid, 'worker:a'), $status($uid)];
    $answers[] = [$runtime->cancelRun($db->row($uid)['uuid']), $status($uid)];
    $uid = $db->running(time() + 100);
    $answers[] = [$runtime->recoverFailure($uid, 'worker:a', new RuntimeException('x'))->outcome(), $status($uid)];
    $stale = array_map(static fn (): int => $db->running(5), range(1, 12));
    $report = $runtime->reap(50);
    $answers[] = [count($report->requeued()), count($report->skipped()), array_count_values(array_map($status, $stale))];
    array_push($answers, count($runtime->dueRuns(50, time() + 1000)), array_sum($runtime->status()['counts']));
    // A heartbeat: the lease that was cut short is whole again, as others see it.
    $uid = $db->running(time() + 100);
    $lease = $runtime->keepLease($uid, 'worker:a', 60, ['everyMs' => 100]);
    $db->query('UPDATE tx_nrllm_agentrun SET lease_expires = ? WHERE uid = ?', [time() + 5, $uid]);
    $answers[] = until(static fn (): bool => (int) $db->row($uid)['lease_expires'] > time() + 30, 5000) ? 'renewed' : 'NOT RENEWED';
    $lease->release();
    return json_encode($answers) . ', ' . $opened() - $before . ' connection';
};
foreach ($defaults as $label => $values) {
    foreach ($values as $name => $value) {
        $db->link()->query("SET GLOBAL $name = $value");
    }
    echo "$label: ";
    try {
        echo $calls(), "\n";
    } catch (Throwable $error) {
        printf("%s (%d): %s\n", $error::class, $error->getCode(), $error->getMessage());
    }
    foreach (array_keys($values) as $name) {
        $db->link()->query("SET GLOBAL $name = " . ($name === 'init_connect' ? "''" : 'DEFAULT'));
    }
}
?>
--EXPECT--
as they are: [[true,"running"],[true,"queued"],[true,"cancelled"],["dead_lettered","failed"],[12,0,{"queued":12}],12,14,"renewed"], 1 connection
completion_type=CHAIN: [[true,"running"],[true,"queued"],[true,"cancelled"],["dead_lettered","failed"],[12,0,{"queued":12}],12,14,"renewed"], 1 connection
completion_type=RELEASE: [[true,"running"],[true,"queued"],[true,"cancelled"],["dead_lettered","failed"],[12,0,{"queued":12}],12,14,"renewed"], 1 connection
sql_select_limit: [[true,"running"],[true,"queued"],[true,"cancelled"],["dead_lettered","failed"],[12,0,{"queued":12}],12,14,"renewed"], 1 connection
max_join_size: [[true,"running"],[true,"queued"],[true,"cancelled"],["dead_lettered","failed"],[12,0,{"queued":12}],12,14,"renewed"], 1 connection
init_connect=BEGIN: [[true,"running"],[true,"queued"],[true,"cancelled"],["dead_lettered","failed"],[12,0,{"queued":12}],12,14,"renewed"], 1 connection
init_connect sets autocommit: [[true,"running"],[true,"queued"],[true,"cancelled"],["dead_lettered","failed"],[12,0,{"queued":12}],12,14,"renewed"], 1 connection
autocommit: [[true,"running"],[true,"queued"],[true,"cancelled"],["dead_lettered","failed"],[12,0,{"queued":12}],12,14,"renewed"], 1 connection
read only: [[true,"running"],[true,"queued"],[true,"cancelled"],["dead_lettered","failed"],[12,0,{"queued":12}],12,14,"renewed"], 1 connection
