<?php

declare(strict_types=1);

// What the server or the table has to say: class, number and words of the exceptions.
$db = database();
$uid = $db->running(2000000000);
told('wrong password', static fn () => $db->runtime([], ['password' => 'wrong'])->renewLease($uid, 'worker:a', 5));
told('no such database', static fn () => $db->runtime([], ['dbname' => 'no_such_database'])->renewLease($uid, 'worker:a', 5));
told('no database', static fn () => $db->runtime([], ['dbname' => null])->renewLease($uid, 'worker:a', 5));
told('no table', static fn () => $db->runtime(['table' => 'nowhere'])->reap());
told('no such socket', static fn () => $db->runtime([], ['unix_socket' => '/nonexistent/mysqld.sock'])->status());
told('nobody listens', static fn () => (new NrLlmRuntime($db->connection(['port' => 1], 'tcp'), ['connectTimeoutMs' => 500]))->status());
$db->query('ALTER TABLE tx_nrllm_agentrun DROP COLUMN requeue_count, DROP COLUMN pending_effect');
foreach (['reap' => [], 'requeue' => [$uid, 'worker:a'], 'markPendingEffect' => [$uid, 'worker:a', '', 5], 'recoverFailure' => [$uid, 'worker:a', new Exception()], 'renewLease' => [$uid, 'worker:a', 2000000000]] as $method => $arguments) {
    told("columns missing, $method", static fn () => $db->runtime()->$method(...$arguments));
}
$latin = database(['charset' => 'latin1', 'collation' => 'latin1_swedish_ci']);
told('owner that latin1 cannot hold', static fn () => $latin->runtime()->claimQueued($latin->insert(), "\u{1f600}", 5));
$user = 'c' . substr($db->name, -10);
$GLOBALS['replacements'][$user] = '<account>';
$db->link()->query("CREATE USER '$user'@'localhost' IDENTIFIED BY 'x'");
$db->link()->query("GRANT SELECT ON `$db->name`.* TO '$user'@'localhost'");
$weak = $db->runtime([], ['user' => $user, 'password' => 'x']);
told('no privilege', static fn () => $weak->renewLease($uid, 'worker:a', 5));
told('no privilege to keep', static fn () => $weak->keepLease($uid, 'worker:a', 5));
$weak->close();
$db->link()->query("DROP USER '$user'@'localhost'");
