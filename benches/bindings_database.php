<?php

/**
 * Creates the database of benches/bindings.php on the private server, and prints its name: run 1 is
 * held by `worker:a`, 50 more are stale.
 */

declare(strict_types=1);

require __DIR__ . '/../phpt/inc/schema.inc';

mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$link = new mysqli('localhost', getenv('NRLLM_TEST_USER'), getenv('NRLLM_TEST_PASSWORD'), null, 0, getenv('NRLLM_TEST_SOCKET'));
$link->query('CREATE DATABASE bench_bindings');
$link->select_db('bench_bindings');
$link->query(run_table_sql());
$row = $link->prepare("INSERT INTO tx_nrllm_agentrun (uuid, status, claimed_by, lease_expires, queued_request, tstamp, crdate) VALUES (UUID(), 'running', 'worker:a', ?, '{}', 1000, 1000)");
foreach ([2000000000, ...range(1001, 1050)] as $lease) {
    $row->execute([$lease]);
}
echo 'bench_bindings';
