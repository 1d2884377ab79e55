--TEST--
Settings: mysqli and pdo_mysql arrays and URLs, over the socket and over TCP, with special characters in the password
--EXTENSIONS--
nrllm_runtime
--INI--
mysqli.default_socket=/nonexistent/mysqld.sock
pdo_mysql.default_socket=/nonexistent/mysqld.sock
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
$password = "p@ss:w/o#rd?%41&+ \u{fc}'\"\\";
$user = 'u' . substr($db->name, -10);
foreach (['localhost', '%'] as $host) {
    $db->link()->query(sprintf("CREATE USER '%s'@'%s' IDENTIFIED BY '%s'", $user, $host, $db->link()->real_escape_string($password)));
    $db->link()->query("GRANT SELECT, UPDATE ON `$db->name`.tx_nrllm_agentrun TO '$user'@'$host'");
}
$socket = getenv('NRLLM_TEST_SOCKET');
$port = getenv('NRLLM_TEST_PORT');
$account = ['user' => $user, 'password' => $password, 'dbname' => $db->name];
$userinfo = rawurlencode($user) . ':' . rawurlencode($password);
$ways = [
    'mysqli, socket' => ['driver' => 'mysqli', 'host' => 'localhost', 'unix_socket' => $socket] + $account,
    'mysqli, socket, no host' => ['driver' => 'mysqli', 'unix_socket' => $socket] + $account,
    'pdo_mysql, socket' => ['driver' => 'pdo_mysql', 'host' => '', 'unix_socket' => $socket] + $account,
    'mysqli, TCP' => ['driver' => 'mysqli', 'host' => '127.0.0.1', 'port' => (int) $port] + $account,
    'pdo_mysql, TCP, port as a string' => ['driver' => 'pdo_mysql', 'host' => '127.0.0.1', 'port' => $port] + $account,
    'URL, TCP' => "mysql://$userinfo@127.0.0.1:$port/$db->name",
    'URL, socket' => "mysql://$userinfo@localhost/$db->name?socket=" . rawurlencode($socket),
    'URL inside the array' => ['driver' => 'mysqli', 'url' => "mysql://$userinfo@127.0.0.1:$port/$db->name"],
];
foreach ($ways as $label => $connection) {
    $uid = $db->insert();
    $runtime = new NrLlmRuntime($connection);
    var_dump($runtime->claimQueued($uid, 'worker:a', time() + 100));
    $settings = json_encode($runtime->status()['settings'], JSON_THROW_ON_ERROR);
    check(!str_contains($settings, 'p@ss') && !str_contains($settings, 'p%40ss') && !str_contains($settings, 'w\/o'), "no password in $settings ($label)");
    $runtime->close();
}
// `localhost` without a socket is the default socket, as in PHP: never TCP.
thrown_class('localhost', static fn () => (new NrLlmRuntime(['driver' => 'mysqli', 'host' => 'localhost', 'port' => (int) $port] + $account,
    ['connectTimeoutMs' => 500]))->status());
thrown_class('wrong password', static fn () => (new NrLlmRuntime(['password' => 'wrong'] + $ways['mysqli, socket']))->status());
foreach (['localhost', '%'] as $host) {
    $db->link()->query("DROP USER '$user'@'$host'");
}
?>
--EXPECTF--
bool(true)
bool(true)
bool(true)
bool(true)
bool(true)
bool(true)
bool(true)
bool(true)
localhost: NrLlmConnectionException
wrong password: NrLlm%sException
