--TEST--
A server that is down, does not answer or was lost: NrLlmConnectionException within the time limit, with the address
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$account = ['driver' => 'mysqli', 'user' => 'u', 'password' => 'p', 'dbname' => 'd'];
// Accepts connections and never sends a greeting.
$silent = stream_socket_server('tcp://127.0.0.1:0');
$silentPort = (int) explode(':', stream_socket_get_name($silent, false))[1];
$silentSocket = tempnam(sys_get_temp_dir(), 'nrllm');
unlink($silentSocket);
$silentUnix = stream_socket_server("unix://$silentSocket");
// No server listens there.
$closed = stream_socket_server('tcp://127.0.0.1:0');
$closedPort = (int) explode(':', stream_socket_get_name($closed, false))[1];
fclose($closed);
$targets = [
    'no server listens' => ['host' => '127.0.0.1', 'port' => $closedPort],
    'silent' => ['host' => '127.0.0.1', 'port' => $silentPort],
    'silent socket' => ['host' => 'localhost', 'unix_socket' => $silentSocket],
    'no such socket' => ['unix_socket' => '/nonexistent/mysqld.sock'],
    'no such host' => ['host' => 'no-such-host.invalid', 'port' => 3306],
];
foreach ($targets as $label => $target) {
    $runtime = new NrLlmRuntime($target + $account, ['connectTimeoutMs' => 400, 'queryTimeoutMs' => 400]);
    $calls = [
        fn () => $runtime->claimQueued(1, 'w', 5), fn () => $runtime->renewLease(1, 'w', 5), fn () => $runtime->reap(), fn () => $runtime->status(),
        fn () => $runtime->recoverFailure(1, 'w', new Exception()),
    ];
    foreach ($calls as $i => $call) {
        $start = hrtime(true);
        try {
            $call();
            echo "$label: nothing thrown\n";
        } catch (NrLlmConnectionException $error) {
            $ms = (hrtime(true) - $start) / 1e6;
            check($ms < 1500 * patience(), "$label, call $i: within the limit, not $ms ms");
            $message = $error->getMessage();
        }
    }
    $named = array_filter([$target['unix_socket'] ?? '', isset($target['port']) ? (string) $target['port'] : '', $target['host'] ?? ''],
        static fn (string $part): bool => $part !== '' && str_contains($message, $part));
    printf("%s: %s\n", $label, $named === [] ? "no address in: $message" : 'ok');
    $runtime->close();
}
unlink($silentSocket);
?>
--EXPECT--
no server listens: ok
silent: ok
silent socket: ok
no such socket: ok
no such host: ok
