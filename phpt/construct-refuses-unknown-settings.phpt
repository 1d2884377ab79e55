--TEST--
The constructor refuses unknown settings before it connects, names them, and lists the supported ones
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
    'port 65536' => ['port' => 65536] + $good,
    'port words' => ['port' => 'many'] + $good,
    'password is an array' => ['password' => ['hush']] + $good,
    'empty URL' => '',
    'not a URL' => 'hush hush',
    'wrong scheme' => 'pgsql://u:hush@h/d',
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
// Other keys of TYPO3's arrays, empty strings, and values at their limits are accepted. No
// connection is opened: there is no server at port 1.
new NrLlmRuntime(['wrapperClass' => 'X', 'initCommands' => 'SET x', 'tableoptions' => ['charset' => 'utf8mb4'], 'persistentConnection' => true,
    'unix_socket' => '', 'url' => '', 'ssl_ca' => '', 'driverOptions' => []] + $good);
new NrLlmRuntime(['driver' => 'pdo_mysql', 'port' => '3306'] + $good, ['table' => 'other.tx_nrllm_agentrun', 'clock' => 'database', 'connectTimeoutMs' => 1,
    'queryTimeoutMs' => 1, 'maxRequeues' => 0, 'backoffBaseMs' => 1, 'backoffCapMs' => 1, 'jitter' => 1.0]);
new NrLlmRuntime('mysql://u:p%40ss@h:3306/d?socket=');
echo "done\n";
?>
--EXPECT--
pdo_pgsql: NrLlmConfigurationException: driver 'pdo_pgsql' is not supported; the runtime talks to MySQL and MariaDB: driver is 'mysqli' or 'pdo_mysql' (URLs: mysql://)
pdo_sqlite: NrLlmConfigurationException: driver 'pdo_sqlite' is not supported; the runtime talks to MySQL and MariaDB: driver is 'mysqli' or 'pdo_mysql' (URLs: mysql://)
sqlsrv: NrLlmConfigurationException: driver 'sqlsrv' is not supported; the runtime talks to MySQL and MariaDB: driver is 'mysqli' or 'pdo_mysql' (URLs: mysql://)
driver is a number: NrLlmConfigurationException: connection setting driver must be a string, int given
host is an array: NrLlmConfigurationException: connection setting host must be a string, array given
port 65536: NrLlmConfigurationException: connection setting port must be a number from 1 to 65535
port words: NrLlmConfigurationException: connection setting port must be a number from 1 to 65535
password is an array: NrLlmConfigurationException: connection setting password must be a string, array given
empty URL: NrLlmConfigurationException: the connection string is no URL; a connection URL looks like mysql://user:password@host:port/dbname?socket=/path; special characters in it are percent-encoded
not a URL: NrLlmConfigurationException: the connection string is no URL; a connection URL looks like mysql://user:password@host:port/dbname?socket=/path; special characters in it are percent-encoded
wrong scheme: NrLlmConfigurationException: driver 'pgsql' is not supported; the runtime talks to MySQL and MariaDB: driver is 'mysqli' or 'pdo_mysql' (URLs: mysql://)
URL with a bad port: NrLlmConfigurationException: the connection URL cannot be read (invalid port number); a connection URL looks like mysql://user:password@host:port/dbname?socket=/path; special characters in it are percent-encoded
unknown option: NrLlmConfigurationException: unknown option 'tabel'; the options are table, clock, connectTimeoutMs, queryTimeoutMs, maxRequeues, backoffBaseMs, backoffCapMs, jitter
numeric key: NrLlmConfigurationException: unknown option '0'; the options are table, clock, connectTimeoutMs, queryTimeoutMs, maxRequeues, backoffBaseMs, backoffCapMs, jitter
table with a quote: NrLlmConfigurationException: option table must be a table name of 1 to 64 characters of 0-9, A-Z, a-z, $ and _, optionally with a schema (schema.table)
table empty: NrLlmConfigurationException: option table must be a table name of 1 to 64 characters of 0-9, A-Z, a-z, $ and _, optionally with a schema (schema.table)
table too long: NrLlmConfigurationException: option table must be a table name of 1 to 64 characters of 0-9, A-Z, a-z, $ and _, optionally with a schema (schema.table)
table with two dots: NrLlmConfigurationException: option table must be a table name of 1 to 64 characters of 0-9, A-Z, a-z, $ and _, optionally with a schema (schema.table)
table is a number: NrLlmConfigurationException: option table must be a string, int given
clock: NrLlmConfigurationException: option clock must be 'caller' or 'database', 'server' given
connectTimeoutMs 0: NrLlmConfigurationException: option connectTimeoutMs must be from 1 to 3600000, 0 given
queryTimeoutMs negative: NrLlmConfigurationException: option queryTimeoutMs must be from 1 to 3600000, -1 given
queryTimeoutMs a string: NrLlmConfigurationException: option queryTimeoutMs must be an integer, string given
maxRequeues negative: NrLlmConfigurationException: option maxRequeues must be from 0 to 4294967295, -1 given
jitter 1.5: NrLlmConfigurationException: option jitter must be from 0.0 to 1.0, 1.5 given
jitter NAN: NrLlmConfigurationException: option jitter must be from 0.0 to 1.0, NaN given
backoffBaseMs negative: NrLlmConfigurationException: option backoffBaseMs must be from 0 to 2592000000, -1 given
connection is an int: TypeError
connection is null: TypeError
connection is an object: TypeError
options are a string: TypeError
no argument: ArgumentCountError
done
