<?php

declare(strict_types=1);

// One renewal in a process that has no connection yet, as a cron process or as a request to
// PHP-FPM; cold.php runs it. Prints the time from the connection's settings to the answer.
// `connect`: a connection and no renewal.
//   php cold_call.php connect|plain|module|ffi SOCKET USER PASSWORD DATABASE UID OWNER LEASE

[$variant, $socket, $user, $password, $database, $uid, $owner, $lease] = $_GET['arguments'] ?? array_slice($argv, 1);
if ($variant === 'ffi') {
    require dirname(__DIR__, 2) . '/php-ffi/autoload.php';
}
$start = hrtime(true);
if ($variant === 'plain' || $variant === 'connect') {
    $pdo = new PDO("mysql:unix_socket=$socket;dbname=$database;charset=utf8mb4", $user, $password, [PDO::ATTR_EMULATE_PREPARES => false, PDO::MYSQL_ATTR_FOUND_ROWS => true]);
    if ($variant === 'connect') {
        exit;
    }
    $statement = $pdo->prepare("UPDATE tx_nrllm_agentrun SET lease_expires = ?, tstamp = ? WHERE uid = ? AND status = 'running' AND claimed_by = ?");
    $statement->execute([$lease, time(), $uid, $owner]);
    $done = $statement->rowCount() > 0;
} else {
    $runtime = new NrLlmRuntime(['driver' => 'mysqli', 'unix_socket' => $socket, 'user' => $user, 'password' => $password, 'dbname' => $database]);
    $done = $runtime->renewLease((int) $uid, $owner, (int) $lease);
}
echo json_encode(['ns' => hrtime(true) - $start, 'done' => $done]), "\n";
