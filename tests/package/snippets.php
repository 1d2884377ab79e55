<?php

/**
 * The README's first piece of PHP, executed on the server of the suite.
 *
 *   php -n -d extension=… tests/package/snippets.php
 *
 * NRLLM_TEST_SOCKET, NRLLM_TEST_USER and NRLLM_TEST_PASSWORD name the server.
 */

declare(strict_types=1);

$top = dirname(__DIR__, 2);
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
[$socket, $user, $password] = [getenv('NRLLM_TEST_SOCKET'), getenv('NRLLM_TEST_USER'), getenv('NRLLM_TEST_PASSWORD')];
$db = new mysqli('localhost', $user, $password, '', 0, $socket);
$name = 'snippets_' . bin2hex(random_bytes(4));
$db->query("CREATE DATABASE $name CHARACTER SET utf8mb4");
$db->select_db($name);
// The tables that the README names for programs without nr_llm.
$db->multi_query(file_get_contents("$top/examples/schema.sql"));
while ($db->more_results()) {
    $db->next_result();
}
$run = static function (string $uuid, array $columns) use ($db): void {
    $columns += ['uuid' => $uuid, 'queued_request' => '{}', 'crdate' => 1, 'tstamp' => 1];
    $db->execute_query('INSERT INTO tx_nrllm_agentrun (' . implode(', ', array_keys($columns)) . ') VALUES (' . implode(', ', array_fill(0, count($columns), '?')) . ')', array_values($columns));
};
$run('works', ['status' => 'queued']);
$run('fails', ['status' => 'queued']);
$run('dead', ['status' => 'running', 'claimed_by' => 'worker:gone', 'lease_expires' => time() - 60]);

$connection = ['driver' => 'mysqli', 'host' => 'localhost', 'unix_socket' => $socket, 'user' => $user, 'password' => $password, 'dbname' => $name];
function execute(string $uuid, NrLlmLease $lease): void
{
    global $db;
    $lease->step();
    if ($uuid === 'fails') {
        throw new Exception('the agent loop has failed');
    }
    $db->execute_query("UPDATE tx_nrllm_agentrun SET status = 'completed', claimed_by = '', lease_expires = 0 WHERE uuid = ?", [$uuid]);
}
preg_match('/^```php\n(.*?)^```$/ms', file_get_contents("$top/README.md"), $match);
ob_start();
try {
    eval($match[1]);
} finally {
    $output = ob_get_clean();
    $states = $db->query('SELECT uuid, status FROM tx_nrllm_agentrun')->fetch_all();
    $db->query("DROP DATABASE $name");
}
$states = array_column($states, 1, 0);
ksort($states);
if ($output !== "dead_lettered\n1 runs of dead workers are queued again\n" || $states !== ['dead' => 'queued', 'fails' => 'failed', 'works' => 'completed']) {
    echo "the README's example did something else:\n$output", json_encode($states), "\n";
    exit(1);
}
echo "ok\n";
