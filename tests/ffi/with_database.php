<?php

/**
 * Runs a program on a database of its own: NRLLM_TEST_DATABASE names it. Runs 1 to 20: 1 to 10 are
 * queued, 11 to 20 run under `worker:a` with an expired lease. Exits with the program's exit code.
 */

declare(strict_types=1);

require __DIR__ . '/../../phpt/inc/db.inc';

$db = new TestDb(['messages' => true]);
for ($i = 0; $i < 20; $i++) {
    $i < 10 ? $db->insert(['uuid' => sprintf('%036d', $i + 1)]) : $db->running(1000 + $i, ['uuid' => sprintf('%036d', $i + 1)]);
}
$db->closeLink();
$process = proc_open(array_slice($argv, 1), [STDIN, STDOUT, STDERR], $pipes, null, ['NRLLM_TEST_DATABASE' => $db->name] + getenv());
exit(proc_close($process));
