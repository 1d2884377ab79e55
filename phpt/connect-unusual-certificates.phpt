--TEST--
TLS: certificates that only the runtime's own verification accepts; such connections end as all others do, also beside children (rules 22, 29)
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$folder = sys_get_temp_dir() . '/nrllm-tls-' . getmypid();
mkdir($folder, 0700);
$owner = getmypid();
register_shutdown_function(static fn () => $owner === getmypid() && array_map(unlink(...), glob("$folder/*")) && rmdir($folder));
exec("cd $folder && openssl req -newkey rsa:2048 -nodes -keyout v1.key -out v1.csr -subj /CN=127.0.0.1 2>&1
    printf '[req]\ndistinguished_name=dn\n[dn]\n' >v1.cnf # from OpenSSL 3.3 on, version 1 has to be asked for
    if openssl req -help 2>&1 | grep -q x509v1; then openssl req -x509v1 -config v1.cnf -in v1.csr -key v1.key -out v1.pem -days 30 2>&1
    else openssl x509 -req -in v1.csr -signkey v1.key -out v1.pem -days 30 2>&1; fi
    openssl req -x509 -newkey rsa:2048 -nodes -keyout self.key -out self.pem -days 30 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 2>&1");
$flags = static fn (bool $verify): array => ['driverOptions' => ['flags' => 2048 | ($verify ? 0 : 64)]]; // MYSQLI_CLIENT_SSL, …_DONT_VERIFY_SERVER_CERT
$pdo = static fn (string $ca, bool $verify): array => ['driver' => 'pdo_mysql', 'driverOptions' => [1009 => $ca, 1014 => $verify]]; // PDO::MYSQL_ATTR_SSL_*
foreach ([
    'v1' => ['mysqli, no verification' => $flags(false), 'PDO, no verification' => $pdo("$folder/self.pem", false), 'verified' => $pdo("$folder/v1.pem", true)],
    'self' => ['pinned' => ['ssl_ca' => "$folder/self.pem"], 'PDO, pinned' => $pdo("$folder/self.pem", true), 'not pinned' => ['ssl_ca' => "$folder/v1.pem"]],
] as $certificate => $ways) {
    $server = new OwnServer("--ssl-cert=$folder/$certificate.pem", "--ssl-key=$folder/$certificate.key", '--require-secure-transport=ON');
    $db = new TestDb();
    $uid = $db->running(2000000000);
    foreach ($ways as $way => $overrides) {
        echo "$certificate, $way: ";
        try {
            var_dump((new NrLlmRuntime($db->connection($overrides, via: 'tcp')))->renewLease($uid, 'worker:a', 2000000001));
        } catch (NrLlmConnectionException $error) {
            echo preg_replace('/^.*?; /', '', $error->getMessage()), "\n";
        }
    }
}
$sockets = static function (): array {
    // A thread-safe PHP keeps the resolved path of /proc/self, also across a fork.
    clearstatcache(true);
    $links = array_map(static fn (string $fd): string => (string) @readlink("/proc/self/fd/$fd"), scandir('/proc/self/fd'));

    return array_filter($links, static fn (string $link): bool => str_starts_with($link, 'socket:'));
};
$descriptors = static fn (): int => count(scandir('/proc/self/fd'));
$runtime = static fn (int $number, ?string $password = null): NrLlmRuntime => new NrLlmRuntime(
    $db->connection(['ssl_ca' => "$folder/self.pem"] + ($password === null ? [] : ['password' => $password]), via: 'tcp'),
    ['queryTimeoutMs' => 5000 * SLOW + $number, 'connectTimeoutMs' => 5000 * SLOW],
);
// The child's copies are closed; both go on, each on its own connection.
$before = $sockets();
$ours = $runtime(0);
$lease = $ours->keepLease($uid, 'worker:a', 30 * SLOW, ['everyMs' => 200]);
check(until(static fn (): bool => $lease->beats() >= 3), 'heartbeats');
$new = array_diff($sockets(), $before);
$code = $db->fork(static fn (): int => count($new) - count(array_intersect($sockets(), $new)));
echo "closed by the child: $code\n";
$code = $db->fork(static fn (): int => (int) $ours->renewLease($uid, 'worker:a', 2000000031));
$heartbeats = $lease->beats();
check(until(static fn (): bool => $lease->beats() >= $heartbeats + 3), 'heartbeats continue');
var_dump($code, $lease->state(), count(connections($db)));
$lease->release();
unset($lease);
$ours->close();
// Connections that end in every way leave nothing.
$use = static function (int $number, bool $close) use ($runtime, $uid): void {
    $object = $runtime($number);
    $lease = $object->keepLease($uid, 'worker:a', 30 * SLOW);
    $lease->release();
    $close && $object->close();
};
$use(1, true);
$before = $descriptors();
for ($number = 2; $number <= 42; $number++) {
    $use($number, $number % 2 === 0);
    try {
        $runtime($number, 'wrong')->renewLease($uid, 'worker:a', 2000000001);
    } catch (NrLlmConnectionException $error) {
        check($error->getCode() === 1045, $error->getMessage());
    }
}
check(until(static fn (): bool => connections($db) === []), 'no connection is left');
printf("%d descriptors more\n", $descriptors() - $before);
?>
--EXPECT--
v1, mysqli, no verification: bool(true)
v1, PDO, no verification: bool(true)
v1, verified: the server's certificate is X.509 version 1, which cannot be verified. Issue one of version 3 (openssl x509 -req -extfile, with subjectAltName)
self, pinned: bool(true)
self, PDO, pinned: bool(true)
self, not pinned: the server presents the certificate of an authority (basicConstraints CA:TRUE, as openssl req -x509 makes it). Issue one with CA:FALSE and set ssl_ca to its authority, or, on Linux, set ssl_ca to a file with this certificate itself
closed by the child: 3
int(1)
string(4) "held"
int(1)
0 descriptors more
