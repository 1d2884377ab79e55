--TEST--
A panic of the driver while it connects is an exception, prints nothing, and the next call works
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
    // Requests the password by RSA. It sends an empty packet for the key, of which the driver reads
    // the part after the first byte, and later a key of 2 048 bits.
    $key = <<<'PEM'
        -----BEGIN PUBLIC KEY-----
        MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAtF9ib/mtEubNndNzgikt
        PXuBbv4XAMoXLYaPJ9ymKPq3MbuIAenbCKwgz4pjJyF3/0oMs/c2j6VqM+S9i3rC
        O+/Sym7xL6sHZmpqyp+K6tY2a2WfddG/Q6FeY+tZEkDvxBNKLY5npZRIndaE+OPC
        TsIfhLZxiMc6UAI1wWMhkgXedCKZLeX/ACNmvvUYATAtLT3R5x1dSM9DhEJ4i4i/
        nWIjTnBbxhwFt+zpL/XtMEBP+7dW1Y+AmnzxbCO5tprZxaZsnrr3xe2mlkR/HyiY
        ajy1BpT2OC9hEWeS2VQDkiUNfNxnG/nKgQ6qIq8nRLEAhS/pK35YrQkycWzG9yr1
        xwIDAQAB
        -----END PUBLIC KEY-----
        PEM;
    for ($number = 0;; $number++) {
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
        fwrite($client, packet(4, $number < 3 ? '' : "\x01$key"));
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
// The longest password that such a key encrypts is sent, and the connection ends here; a longer one
// cannot be encrypted.
foreach ([213, 214] as $length) {
    $password = str_repeat('s3cret', 36);
    $runtime = new NrLlmRuntime(['host' => '127.0.0.1', 'port' => $port, 'user' => 'u', 'password' => substr($password, 0, $length), 'dbname' => 'd']);
    try {
        $runtime->renewLease(1, 'w', 5);
        echo "nothing thrown\n";
    } catch (NrLlmException $error) {
        check(!str_contains((string) $error, 's3cret'), 'the password is not shown');
        echo $length, ': ', get_class($error), $length === 214 ? ': ' . str_replace((string) $port, 'PORT', $error->getMessage()) : '', "\n";
    }
}
posix_kill($pid, SIGKILL);
pcntl_waitpid($pid, $status);
?>
--EXPECTF--
NrLlmConnectionException in line %d
bool(true)
NrLlmConnectionException in line %d
bool(true)
NrLlmConnectionException in line %d
bool(true)
213: NrLlmConnectionException
214: NrLlmConfigurationException: a password of more than 213 bytes cannot be sent to 127.0.0.1:PORT without TLS; use TLS, the unix socket, or a shorter password
