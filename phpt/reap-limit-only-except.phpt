--TEST--
reap(): `limit` bounds the runs handled, oldest lease first; `only` and `except` choose among them
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
$print('only nothing', $runtime->reap(50, $now, ['only' => []]));
var_dump($rows() === $before);
$print('limit 2', $runtime->reap(2, $now));
$print('except 7, limit 2', $runtime->reap(2, $now, ['except' => [$all[7]]]));
$print('only 7 and 0', $runtime->reap(50, $now, ['only' => [$all[7], $all[0]], 'dryRun' => false]));
$print('only and except', $runtime->reap(50, $now, ['only' => [$all[3], $all[2]], 'except' => [$all[2]]]));
$print('exactly the rest', $runtime->reap(3, $now));
$print('nothing left', $runtime->reap(1, $now));
?>
--EXPECT--
only nothing: requeued -; dead-lettered -; skipped -; more no
bool(true)
limit 2: requeued 9/1 8/1; dead-lettered -; skipped -; more yes
except 7, limit 2: requeued 6/1 4/1; dead-lettered -; skipped 7(excepted)/0; more yes
only 7 and 0: requeued 7/1 0/1; dead-lettered -; skipped -; more no
only and except: requeued -; dead-lettered 3(retries_exhausted)/3; skipped 2(excepted)/0; more no
exactly the rest: requeued 5/1 2/1 1/1; dead-lettered -; skipped -; more no
nothing left: requeued -; dead-lettered -; skipped -; more no
