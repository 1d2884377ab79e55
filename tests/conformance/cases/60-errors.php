<?php

declare(strict_types=1);

// Errors of the server and of the table: class, number and message of the exceptions.
$db = database();
$uid = $db->running(2000000000);
show('wrong password', static fn () => $db->runtime([], ['password' => 'wrong'])->renewLease($uid, 'worker:a', 5));
show('no such database', static fn () => $db->runtime([], ['dbname' => 'no_such_database'])->renewLease($uid, 'worker:a', 5));
show('no database', static fn () => $db->runtime([], ['dbname' => null])->renewLease($uid, 'worker:a', 5));
show('no table', static fn () => $db->runtime(['table' => 'nowhere'])->reap());
show('no such socket', static fn () => $db->runtime([], ['unix_socket' => '/nonexistent/mysqld.sock'])->status());
show('no server listens', static fn () => (new NrLlmRuntime($db->connection(['port' => 1], 'tcp'), ['connectTimeoutMs' => 500]))->status());
$db->query('ALTER TABLE tx_nrllm_agentrun DROP COLUMN requeue_count, DROP COLUMN pending_effect');
foreach (['reap' => [], 'requeue' => [$uid, 'worker:a'], 'markPendingEffect' => [$uid, 'worker:a', '', 5], 'recoverFailure' => [$uid, 'worker:a', new Exception()], 'renewLease' => [$uid, 'worker:a', 2000000000]] as $method => $arguments) {
    show("columns missing, $method", static fn () => $db->runtime()->$method(...$arguments));
}
$latin = database(['charset' => 'latin1', 'collation' => 'latin1_swedish_ci']);
show('owner that latin1 cannot hold', static fn () => $latin->runtime()->claimQueued($latin->insert(), "\u{1f600}", 5));
$user = 'c' . substr($db->name, -10);
$GLOBALS['replacements'][$user] = '<account>';
$db->link()->query("CREATE USER '$user'@'localhost' IDENTIFIED BY 'x'");
$db->link()->query("GRANT SELECT ON `$db->name`.* TO '$user'@'localhost'");
$weak = $db->runtime([], ['user' => $user, 'password' => 'x']);
show('no privilege', static fn () => $weak->renewLease($uid, 'worker:a', 5));
show('no privilege to keep', static fn () => $weak->keepLease($uid, 'worker:a', 5));
$weak->close();
$db->link()->query("DROP USER '$user'@'localhost'");
