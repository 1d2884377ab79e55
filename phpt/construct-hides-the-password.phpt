--TEST--
The password is in no dump, export, message, trace or status, also with exception arguments in traces
--EXTENSIONS--
nrllm_runtime
--INI--
zend.exception_ignore_args=0
zend.exception_string_param_max_len=500
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
// The settings are made inside each call: variables of the test would be in the traces themselves.
const SECRET = 'SwordFish-9';
function settings(array $others = []): array
{
    return $others + ['driver' => 'mysqli', 'host' => '127.0.0.1', 'port' => 1, 'user' => 'u', 'password' => SECRET, 'dbname' => 'd'];
}
function url(string $rest): string
{
    return 'mysql://u:' . SECRET . '@' . $rest;
}
$db = new TestDb();
function act(string $what): void
{
    global $db;
    match ($what) {
        'bad driver' => new NrLlmRuntime(settings(['driver' => 'oci8'])),
        'bad option' => new NrLlmRuntime(settings(), ['nope' => 'an argument']),
        'bad port' => new NrLlmRuntime(settings(['port' => -1])),
        'bad TLS' => (new NrLlmRuntime(settings(['ssl_ca' => '/nonexistent/ca.pem'])))->status(),
        'bad URL' => new NrLlmRuntime(url('127.0.0.1:port/d')),
        'bad scheme' => new NrLlmRuntime('ftp' . substr(url('127.0.0.1/d'), 5)),
        'no URL' => new NrLlmRuntime(SECRET),
        'no server' => (new NrLlmRuntime(settings()))->status(),
        'no server, URL' => (new NrLlmRuntime(url('127.0.0.1:1/d')))->reap(),
        'refused' => (new NrLlmRuntime($db->connection(['password' => SECRET])))->status(),
        'bad owner' => (new NrLlmRuntime(settings()))->claimQueued(1, '', 1),
        'by name' => new NrLlmRuntime(options: [], connection: settings(['driver' => 'oci8'])),
        'by unpacking' => new NrLlmRuntime(...[settings(['driver' => 'oci8'])]),
        'called again' => (new NrLlmRuntime(settings()))->__construct(settings(['driver' => 'oci8'])),
    };
}
foreach (['bad driver', 'bad option', 'bad port', 'bad TLS', 'bad URL', 'bad scheme', 'no URL', 'no server', 'no server, URL', 'refused', 'bad owner',
    'by name', 'by unpacking', 'called again'] as $what) {
    try {
        act($what);
        echo "$what: nothing thrown\n";
    } catch (Throwable $error) {
        ob_start();
        var_dump($error, $error->getTrace());
        var_export($error->getTraceAsString());
        $text = $error . print_r($error, true) . json_encode([$error->getMessage()]) . ob_get_clean();
        printf("%s: %s%s\n", $what, $error::class, str_contains($text, SECRET) ? ', SHOWS THE PASSWORD' : '');
        $traces[$what] = $text;
    }
}
ob_start();
foreach ([new NrLlmRuntime(settings()), new NrLlmRuntime(url('h/d'))] as $runtime) {
    var_dump($runtime, (array) $runtime, get_object_vars($runtime), get_mangled_object_vars($runtime));
    var_export($runtime);
    print_r($runtime);
    dump_of($runtime);
    echo json_encode($runtime);
}
function dump_of(object $runtime): void
{
    debug_zval_dump($runtime);
    debug_print_backtrace();
}
print_r($db->runtime()->status());
$dump = ob_get_clean();
var_dump(str_contains($dump, SECRET), str_contains($dump, getenv('NRLLM_TEST_PASSWORD')));
// The traces have arguments, which the test depends on; the connection is there as a sensitive
// value.
var_dump(str_contains($traces['bad option'], 'an argument'), str_contains($traces['bad driver'], 'SensitiveParameterValue'));
?>
--EXPECTF--
bad driver: NrLlmConfigurationException
bad option: NrLlmConfigurationException
bad port: NrLlmConfigurationException
bad TLS: NrLlm%sException
bad URL: NrLlmConfigurationException
bad scheme: NrLlmConfigurationException
no URL: NrLlmConfigurationException
no server: NrLlmConnectionException
no server, URL: NrLlmConnectionException
refused: NrLlmConnectionException
bad owner: ValueError
by name: NrLlmConfigurationException
by unpacking: NrLlmConfigurationException
called again: NrLlmConfigurationException
bool(false)
bool(false)
bool(true)
bool(true)
