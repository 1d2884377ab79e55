--TEST--
reap(): a dry run reports what a reap would do, and writes nothing
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
$runtime = $db->runtime();
$now = 1800000000;
$all = [];
for ($i = 0; $i < 10; $i++) {
    // The oldest lease has the highest uid; two share one.
    $all[] = $db->running($now - 1 - $i + ($i === 5 ? 1 : 0), ['requeue_count' => $i === 3 ? 3 : 0]);
}
$rows = static fn (): array => array_map($db->row(...), $all);
$print = static function (string $label, NrLlmReapReport $report) use ($all): void {
    $numbers = static fn (array $entries): string => implode(' ', array_map(
        static fn (array $e): string => array_search($e['uid'], $all, true) . ($e['reason'] === null ? '' : "({$e['reason']})") . "/{$e['requeueCount']}", $entries)) ?: '-';
    printf("%s: requeued %s; dead-lettered %s; skipped %s; more %s%s\n", $label, $numbers($report->requeued()), $numbers($report->deadLettered()),
        $numbers($report->skipped()), $report->hasMore() ? 'yes' : 'no', $report->isDryRun() ? '; dry run' : '');
};
$before = $rows();
$print('dry run', $runtime->reap(50, $now, ['dryRun' => true]));
$print('dry run of 3', $runtime->reap(3, $now, ['dryRun' => true]));
$print('dry run, except 9 and 8', $runtime->reap(2, $now, ['dryRun' => true, 'except' => [$all[9], $all[8]]]));
$print('dry run, only 3 and 0', $runtime->reap(50, $now, ['dryRun' => true, 'only' => [$all[0], $all[3], $all[3], 4000000000]]));
var_dump($rows() === $before);
?>
--EXPECT--
dry run: requeued 9/1 8/1 7/1 6/1 4/1 5/1 2/1 1/1 0/1; dead-lettered 3(retries_exhausted)/3; skipped -; more no; dry run
dry run of 3: requeued 9/1 8/1 7/1; dead-lettered -; skipped -; more yes; dry run
dry run, except 9 and 8: requeued 7/1 6/1; dead-lettered -; skipped 9(excepted)/0 8(excepted)/0; more yes; dry run
dry run, only 3 and 0: requeued 0/1; dead-lettered 3(retries_exhausted)/3; skipped -; more no; dry run
bool(true)
