--TEST--
The constructor refuses what it does not know, names it and says what is supported, before any connection
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$good = ['driver' => 'mysqli', 'host' => '127.0.0.1', 'port' => 1, 'user' => 'u', 'password' => 'hush', 'dbname' => 'd'];
$connections = [
    'pdo_pgsql' => ['driver' => 'pdo_pgsql'] + $good,
    'pdo_sqlite' => ['driver' => 'pdo_sqlite', 'path' => '/tmp/x'],
    'sqlsrv' => ['driver' => 'sqlsrv'] + $good,
    'driver is a number' => ['driver' => 5] + $good,
    'host is an array' => ['host' => ['x']] + $good,
    'port 0' => ['port' => 0] + $good,
    'port 65536' => ['port' => 65536] + $good,
    'port words' => ['port' => 'many'] + $good,
    'password is an array' => ['password' => ['hush']] + $good,
    'no database' => ['dbname' => ''] + $good,
    'socket with a host' => ['unix_socket' => '/tmp/sock'] + $good,
    'empty array' => [],
    'empty URL' => '',
    'not a URL' => 'hush hush',
    'wrong scheme' => 'pgsql://u:hush@h/d',
    'URL without database' => 'mysql://u:hush@h/',
    'URL with a bad port' => 'mysql://u:hush@h:99999/d',
];
foreach ($connections as $label => $connection) {
    thrown($label, static fn () => new NrLlmRuntime($connection));
}
$options = [
    'unknown option' => ['tabel' => 'x'],
    'numeric key' => ['x'],
    'table with a quote' => ['table' => 'a`b'],
    'table empty' => ['table' => ''],
    'table too long' => ['table' => str_repeat('t', 65)],
    'table with two dots' => ['table' => 'a.b.c'],
    'table is a number' => ['table' => 5],
    'clock' => ['clock' => 'server'],
    'connectTimeoutMs 0' => ['connectTimeoutMs' => 0],
    'queryTimeoutMs negative' => ['queryTimeoutMs' => -1],
    'queryTimeoutMs a string' => ['queryTimeoutMs' => '5000'],
    'maxRequeues negative' => ['maxRequeues' => -1],
    'jitter 1.5' => ['jitter' => 1.5],
    'jitter NAN' => ['jitter' => NAN],
    'backoffBaseMs negative' => ['backoffBaseMs' => -1],
];
foreach ($options as $label => $value) {
    thrown($label, static fn () => new NrLlmRuntime($good, $value));
}
thrown_class('connection is an int', static fn () => new NrLlmRuntime(5));
thrown_class('connection is null', static fn () => new NrLlmRuntime(null));
thrown_class('connection is an object', static fn () => new NrLlmRuntime(new stdClass()));
thrown_class('options are a string', static fn () => new NrLlmRuntime($good, 'x'));
thrown_class('no argument', static fn () => new NrLlmRuntime());
// What TYPO3's arrays also hold, empty strings, and everything at its limit, is taken. Nothing connects: there is no server at port 1.
new NrLlmRuntime(['wrapperClass' => 'X', 'initCommands' => 'SET x', 'tableoptions' => ['charset' => 'utf8mb4'], 'persistentConnection' => true,
    'unix_socket' => '', 'url' => '', 'ssl_ca' => '', 'driverOptions' => []] + $good);
new NrLlmRuntime(['driver' => 'pdo_mysql', 'port' => '3306'] + $good, ['table' => 'other.tx_nrllm_agentrun', 'clock' => 'database', 'connectTimeoutMs' => 1,
    'queryTimeoutMs' => 1, 'maxRequeues' => 0, 'backoffBaseMs' => 1, 'backoffCapMs' => 1, 'jitter' => 1.0]);
new NrLlmRuntime('mysql://u:p%40ss@h:3306/d?socket=');
echo "done\n";
?>
--EXPECTF--
done
