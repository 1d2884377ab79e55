--TEST--
A panic of the driver over a reply that it cannot read is an exception, and the next call works
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
/** A packet of the protocol: its length in three bytes, its number, its payload. */
function packet(int $number, string $payload): string
{
    return substr(pack('V', strlen($payload)), 0, 3) . chr($number) . $payload;
}
$db = new TestDb();
$server = stream_socket_server('tcp://127.0.0.1:0');
$port = (int) explode(':', stream_socket_get_name($server, false))[1];
$pid = pcntl_fork();
if ($pid === 0) {
    // Requests the password by RSA and sends an empty packet for the key, of which the driver
    // reads the part after the first byte.
    while (true) {
        $client = stream_socket_accept($server, 60);
        if ($client === false) {
            break;
        }
        $capabilities = 0x000fa20d | 0x00080000; // protocol 4.1, secure connection, plugin authentication
        fwrite($client, packet(0, "\x0a8.0.36\0" . pack('V', 7) . 'abcdefgh' . "\0" . pack('v', $capabilities & 0xffff) . "\xff" . pack('v', 2)
            . pack('v', $capabilities >> 16) . chr(21) . str_repeat("\0", 10) . "ijklmnopqrst\0" . "caching_sha2_password\0"));
        fread($client, 4096);
        fwrite($client, packet(2, "\x01\x04"));
        fread($client, 4096);
        fwrite($client, packet(4, ''));
        fread($client, 4096);
        fclose($client);
    }
    posix_kill(posix_getpid(), SIGKILL);
}
$uid = $db->running(time() + 900, ['claimed_by' => 'w']);
$odd = new NrLlmRuntime(['host' => '127.0.0.1', 'port' => $port, 'user' => 'u', 'password' => 'secret', 'dbname' => 'd']);
$good = $db->runtime();
for ($round = 0; $round < 3; $round++) {
    try {
        $odd->renewLease(1, 'w', 5);
        echo "nothing thrown\n";
    } catch (NrLlmConnectionException $error) {
        check(!str_contains((string) $error, 'secret'), 'the password is not shown');
        check(str_contains($error->getMessage(), "127.0.0.1:$port"), "the address is named in: {$error->getMessage()}");
        echo get_class($error), ' in line ', $error->getLine(), "\n";
    }
    var_dump($good->renewLease($uid, 'w', time() + 900));
}
posix_kill($pid, SIGKILL);
pcntl_waitpid($pid, $status);
?>
--EXPECTF--
%ANrLlmConnectionException in line %d
bool(true)
%ANrLlmConnectionException in line %d
bool(true)
%ANrLlmConnectionException in line %d
bool(true)
