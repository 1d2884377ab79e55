--TEST--
The example reaper: requeues stale runs, reports stranded ones, and leaves live ones unchanged
--EXTENSIONS--
nrllm_runtime
mysqli
--FILE--
<?php
$top = getenv('NRLLM_TOP') ?: dirname(__DIR__);
require "$top/phpt/inc/db.inc";
require "$top/phpt/inc/example.inc";
$db = new TestDb();
$now = time();
$dead = $db->running($now - 300, ['requeue_count' => 1]);
$tooOften = $db->running($now - 200, ['requeue_count' => 3]);
$live = $db->running($now + 600);
$stranded = $db->insert(['tstamp' => $now - 3600]);
[$output, $code] = run_example('reaper.php', $db);
$uuid = static fn (int $uid): string => $db->row($uid)['uuid'];
$expected = "requeued {$uuid($dead)} of worker:a for attempt 3\ndead-lettered {$uuid($tooOften)} of worker:a: retries_exhausted\n";
var_dump(str_starts_with($output, $expected) ?: $output);
var_dump(preg_match("/^stranded {$uuid($stranded)} for 36\\d\\d s\n\$/", substr($output, strlen($expected))) === 1 ?: $output, $code);
foreach ([$dead, $tooOften, $live, $stranded] as $uid) {
    echo $db->line($uid, 'status', 'termination_reason', 'requeue_count'), "\n";
}
// A second one within the time handles no run.
var_dump(run_example('reaper.php', $db));
?>
--EXPECT--
bool(true)
bool(true)
int(0)
status='queued' termination_reason='' requeue_count='2'
status='failed' termination_reason='retries_exhausted' requeue_count='3'
status='running' termination_reason='' requeue_count='0'
status='queued' termination_reason='' requeue_count='0'
array(2) {
  [0]=>
  string(0) ""
  [1]=>
  int(0)
}
