<?php

declare(strict_types=1);

// The constructor: what it accepts, what it refuses, and its messages. Only status(), which reports
// the settings, connects.
$good = ['driver' => 'mysqli', 'host' => '127.0.0.1', 'port' => 1, 'user' => 'u', 'password' => 'hush', 'dbname' => 'd'];
$deep = ['x'];
for ($i = 0; $i < 20; $i++) {
    $deep = [$deep];
}
$cyclic = [];
$cyclic['self'] = &$cyclic;
$resource = fopen('php://memory', 'r');
$closed = fopen('php://memory', 'r');
fclose($closed);
$loud = new class implements JsonSerializable {
    public function jsonSerialize(): mixed
    {
        echo "user code ran\n";

        return 'mysqli';
    }
    public function __toString(): string
    {
        echo "user code ran\n";

        return 'mysqli';
    }
};
$connections = [
    'pdo_pgsql' => ['driver' => 'pdo_pgsql'] + $good,
    'pdo_sqlite' => ['driver' => 'pdo_sqlite', 'path' => '/tmp/x'],
    'driver a number' => ['driver' => 5] + $good,
    'driver a float' => ['driver' => 1.5] + $good,
    'driver true' => ['driver' => true] + $good,
    'driver an object' => ['driver' => $loud] + $good,
    'driver a resource' => ['driver' => $resource] + $good,
    'driver a closed resource' => ['driver' => $closed] + $good,
    'driver not UTF-8' => ['driver' => "my\xffsqli"] + $good,
    'driver with NUL' => ['driver' => "mysqli\0"] + $good,
    'host an array' => ['host' => ['x']] + $good,
    'host with a blank' => ['host' => 'a b'] + $good,
    'port 0' => ['port' => 0] + $good,
    'port 65536' => ['port' => 65536] + $good,
    'port negative' => ['port' => -1] + $good,
    'port words' => ['port' => 'many'] + $good,
    'port a float' => ['port' => 3306.0] + $good,
    'port infinite' => ['port' => INF] + $good,
    'password an array' => ['password' => ['hush']] + $good,
    'password not UTF-8' => ['password' => "hush\xff"] + $good,
    'URL not UTF-8' => "mysql://u:hush\xff@h/d",
    'no URL' => 'hush hush',
    'empty' => '',
    'wrong scheme' => 'pgsql://u:hush@h/d',
    'bad port in the URL' => 'mysql://u:hush@h:99999/d',
    'URL an int' => ['url' => 5] + $good,
    'driverOptions a string' => ['driverOptions' => 'x'] + $good,
    'PDO TLS with mysqli' => ['driverOptions' => [1009 => '/ca.pem']] + $good,
    'mysqli TLS with PDO' => ['driver' => 'pdo_mysql', 'ssl_ca' => '/ca.pem'] + $good,
    'TLS over a socket' => ['host' => 'localhost', 'unix_socket' => '/s', 'ssl_ca' => '/ca.pem'] + $good,
    'flags a string' => ['driverOptions' => ['flags' => 'x']] + $good,
    'key that looks like a tag' => ['$hex' => 'zz', 'driver' => 'oci8'],
    'only a key that looks like a tag' => ['$hex' => 'zz'],
    'key not UTF-8' => ["k\xff" => 'x', 'driver' => 'oci8'],
    'deep' => ['x' => $deep, 'driver' => 'oci8'],
    'cyclic' => ['x' => $cyclic, 'driver' => 'oci8'],
    'list' => ['mysqli', 'driver' => 'oci8'],
];
foreach ($connections as $label => $connection) {
    show($label, static fn () => new NrLlmRuntime($connection));
}
echo "-- options\n";
$options = [
    [], ['tabel' => 'x'], ['x'], [5 => 'x'], ['5' => 'x'], [-5 => 'x'], ['05' => 'x'], ['' => 'x'], ["\0" => 'x'], ["\xff" => 'x'], ['$hex' => '00'], ['$entries' => []], ['é' => 1],
    ['table' => 'a`b'], ['table' => ''], ['table' => str_repeat('t', 65)], ['table' => 'a.b.c'], ['table' => 5], ['table' => "t\xff"], ['table' => null], ['table' => ['$hex' => '74']],
    ['clock' => 'server'], ['clock' => "wall\n"], ['clock' => true], ['connectTimeoutMs' => 0], ['connectTimeoutMs' => 3600001], ['connectTimeoutMs' => 1.0], ['queryTimeoutMs' => -1],
    ['queryTimeoutMs' => '5000'], ['queryTimeoutMs' => PHP_INT_MIN], ['maxRequeues' => -1], ['maxRequeues' => 4294967296], ['maxRequeues' => PHP_INT_MAX], ['jitter' => 1.5], ['jitter' => NAN],
    ['jitter' => INF], ['jitter' => -INF], ['jitter' => -0.0], ['jitter' => 1e-9], ['jitter' => 2], ['jitter' => '0.5'], ['jitter' => new stdClass()], ['backoffBaseMs' => -1], ['backoffCapMs' => 1.5],
    ['backoffCapMs' => []], ['maxRequeues' => 1, 'unknown' => 1],
];
foreach ($options as $option) {
    show(json_encode($option, JSON_PARTIAL_OUTPUT_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE | JSON_PRESERVE_ZERO_FRACTION), static fn () => new NrLlmRuntime($good, $option));
}
echo "-- types\n";
// Both bindings check the connection themselves: the same message, for the line of the call.
foreach ([5, null, true, 1.5, new stdClass(), new ArrayObject(), static fn () => 1, fopen('php://memory', 'r')] as $connection) {
    try {
        new NrLlmRuntime($connection);
        echo "nothing thrown\n";
    } catch (TypeError $error) {
        $frame = $error->getTrace()[0];
        printf("%s: %s(%d) %s, %s%s%s\n", get_debug_type($connection), $error::class, $error->getCode(), $error->getMessage(), $frame['class'], $frame['type'], $frame['function']);
        echo '    in ', basename($error->getFile()), ', ', $error->getLine() === __LINE__ - 5 ? 'that line' : "line {$error->getLine()}", "\n";
    }
}
show('object', static fn () => new NrLlmRuntime($good, new stdClass()));
show('options a string', static fn () => new NrLlmRuntime($good, 'x'));
thrown_class('nothing', static fn () => new NrLlmRuntime());
show('a wrong name', static fn () => new NrLlmRuntime(connection: $good, settings: []));
echo "-- what status() says of them\n";
$db = database();
$socket = rawurlencode(getenv('NRLLM_TEST_SOCKET'));
$user = getenv('NRLLM_TEST_USER');
$password = getenv('NRLLM_TEST_PASSWORD');
$port = getenv('NRLLM_TEST_PORT');
foreach ([
    [$db->connection(), []],
    [$db->connection(['driver' => 'pdo_mysql'], 'tcp'), ['jitter' => 0.1, 'maxRequeues' => 4294967295, 'clock' => 'database']],
    [$db->connection(['port' => $port], 'tcp'), ['jitter' => 1 / 3, 'backoffBaseMs' => 0, 'backoffCapMs' => 2592000000]],
    [$db->connection(['wrapperClass' => new stdClass(), 'initCommands' => 'SET x', 'driverOptions' => [], 'url' => '', 'charset' => '']), ['jitter' => 1, 'connectTimeoutMs' => 3600000]],
    ["mysql://$user:$password@localhost/$db->name?socket=$socket", ['table' => "$db->name.tx_nrllm_agentrun", 'queryTimeoutMs' => 1234]],
    [['url' => "mysql://$user:$password@127.0.0.1:$port/$db->name"], ['jitter' => 0.30000000000000004]],
] as $i => [$connection, $options]) {
    show("settings $i", static fn () => (new NrLlmRuntime($connection, options: $options))->status()['settings']);
}
