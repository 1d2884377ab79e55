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
$db = new TestDb();
$secret = 'SwordFish-9';
$texts = [];
$collect = static function (string $label, callable $call) use (&$texts): void {
    try {
        $texts[$label] = $call();
    } catch (Throwable $error) {
        ob_start();
        var_dump($error, $error->getTrace());
        $texts[$label] = $error . "\n" . print_r($error, true) . ob_get_clean() . $error->getTraceAsString();
    }
};
$good = ['driver' => 'mysqli', 'host' => '127.0.0.1', 'port' => 1, 'user' => 'u', 'password' => $secret, 'dbname' => 'd'];
$url = "mysql://u:$secret@127.0.0.1:1/d";
$calls = [
    'bad driver' => static fn () => new NrLlmRuntime(['driver' => 'oci8'] + $good),
    'bad option' => static fn () => new NrLlmRuntime($good, ['nope' => 1]),
    'bad port' => static fn () => new NrLlmRuntime(['port' => -1] + $good),
    'bad URL' => static fn () => new NrLlmRuntime("mysql://u:$secret@127.0.0.1:port/d"),
    'bad scheme' => static fn () => new NrLlmRuntime("ftp://u:$secret@127.0.0.1/d"),
    'no server' => static fn () => (new NrLlmRuntime($good))->status(),
    'no server, URL' => static fn () => (new NrLlmRuntime($url))->reap(),
    'refused' => static fn () => (new NrLlmRuntime($db->connection(['password' => $secret])))->status(),
    'bad owner' => static fn () => (new NrLlmRuntime($good))->claimQueued(1, '', 1),
    'dump' => static function () use ($good, $url): string {
        ob_start();
        foreach ([new NrLlmRuntime($good), new NrLlmRuntime($url)] as $runtime) {
            var_dump($runtime, (array) $runtime, get_object_vars($runtime), get_mangled_object_vars($runtime));
            var_export($runtime);
            print_r($runtime);
            print_backtrace_of($runtime);
            echo json_encode($runtime);
        }
        return ob_get_clean();
    },
    'status' => static fn () => print_r($db->runtime()->status(), true),
];
function print_backtrace_of(object $runtime): void
{
    // As a user's own helper would: all frames with arguments, the constructor's among them.
    debug_print_backtrace();
}
foreach ($calls as $label => $call) {
    $collect($label, $call);
}
foreach ($texts as $label => $text) {
    printf("%s: %s%s\n", $label, preg_match('/^NrLlm\w*Exception|^ValueError/', $text, $m) ? $m[0] : 'text', str_contains($text, $secret) ? ', SHOWS THE PASSWORD' : '');
    check($text !== '', $label);
}
var_dump(str_contains($texts['status'], getenv('NRLLM_TEST_PASSWORD')));
// Arguments are in the traces, or this test would show nothing.
var_dump(str_contains($texts['bad option'], '[nope] => 1'), str_contains($texts['bad driver'], 'SensitiveParameterValue'));
?>
--EXPECTF--
bad driver: NrLlmConfigurationException
bad option: NrLlmConfigurationException
bad port: NrLlmConfigurationException
bad URL: NrLlmConfigurationException
bad scheme: NrLlmConfigurationException
no server: NrLlmConnectionException
no server, URL: NrLlmConnectionException
refused: NrLlm%sException
bad owner: ValueError
dump: text
status: text
bool(false)
bool(true)
bool(true)
