--TEST--
The worker of the README: takes the runs that it is told, settles each, and leaves what is not queued
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
$taken = $db->running(time() + 600);
[$output, $code] = run_example('worker.php', $db, ...$due, ...[$taken]);
var_dump($output === "completed $due[0]\ncompleted $due[1]\nleft $taken: taken\n" ?: $output, $code);
foreach ([...$due, $taken] as $uid) {
    echo $db->line($uid, 'status', 'claimed_by', 'queued_request'), "\n";
}
?>
--EXPECT--
bool(true)
int(0)
status='completed' claimed_by='' queued_request=''
status='completed' claimed_by='' queued_request=''
status='running' claimed_by='worker:a' queued_request='{"prompt":"hello"}'
