--TEST--
The example worker: executes due runs, ends each, and stops when no run is due
--EXTENSIONS--
nrllm_runtime
mysqli
--FILE--
<?php
$top = getenv('NRLLM_TOP') ?: dirname(__DIR__);
require "$top/phpt/inc/db.inc";
require "$top/phpt/inc/example.inc";
$db = new TestDb();
$due = [$db->insert(['crdate' => 1]), $db->insert(['crdate' => 2])];
$notYet = $db->insert(['crdate' => 3, 'requeue_count' => 3, 'tstamp' => time()]);
$taken = $db->running(time() + 600);
[$output, $code] = run_example('worker.php', $db);
$uuids = array_map(static fn (int $uid): string => $db->row($uid)['uuid'], $due);
var_dump($output === "completed $uuids[0]\ncompleted $uuids[1]\n" ?: $output, $code);
foreach ([...$due, $notYet, $taken] as $uid) {
    echo $db->line($uid, 'status', 'claimed_by', 'queued_request'), "\n";
}
// A database error does not end the run: it stays running, and the write fence is cleared.
$db->query('ALTER TABLE tx_nrllm_agentrun DROP COLUMN finished_at');
$uid = $db->insert();
[$output, $code] = run_example('worker.php', $db);
var_dump(str_starts_with($output, 'left ' . $db->row($uid)['uuid'] . ': Unknown column') ?: $output, $code);
echo $db->line($uid, 'status', 'pending_effect', 'queued_request'), "\n";
?>
--EXPECT--
bool(true)
int(0)
status='completed' claimed_by='' queued_request=''
status='completed' claimed_by='' queued_request=''
status='queued' claimed_by='' queued_request='{"prompt":"hello"}'
status='running' claimed_by='worker:a' queued_request='{"prompt":"hello"}'
bool(true)
int(0)
status='running' pending_effect='' queued_request='{"prompt":"hello"}'
