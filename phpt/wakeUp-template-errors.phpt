--TEST--
wakeUp: a wrong template is a configuration error that names the key, before anything is sent
--EXTENSIONS--
nrllm_runtime
mysqli
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/outbox.inc';
// No server listens there: a call that needed it would be a connection error.
$runtime = new NrLlmRuntime(['driver' => 'mysqli', 'host' => '127.0.0.1', 'port' => 1, 'user' => 'u', 'dbname' => 'd'], ['connectTimeoutMs' => 200]);
$templates = [
    'no table' => ['table' => null],
    'no queue' => ['queue' => null],
    'no body' => ['body' => null],
    'no headers' => ['headers' => null],
    'no placeholder' => ['placeholder' => null],
    'an unknown key' => ['delay' => 5],
    'a body without the placeholder' => ['body' => 'O:8:"stdClass":0:{}'],
    'a body in base64' => ['body' => base64_encode(wake_up()['body'])],
    'a body that is not UTF-8' => ['body' => PLACEHOLDER . "\xff"],
    'a body that is an object' => ['body' => new stdClass()],
    'headers in an array' => ['headers' => []],
    'a short placeholder' => ['placeholder' => '0000'],
    'a placeholder of 37' => ['placeholder' => PLACEHOLDER . '0'],
    'a placeholder of other characters' => ['placeholder' => str_repeat('é', 18)],
    'an empty placeholder' => ['placeholder' => ''],
    'an empty queue' => ['queue' => ''],
    'a long queue' => ['queue' => str_repeat('q', 191)],
    'a table with a blank' => ['table' => 'sys messages'],
    'an empty table' => ['table' => ''],
];
foreach ($templates as $label => $changes) {
    $template = $label === 'an unknown key' ? wake_up() + $changes : wake_up($changes);
    if (current($changes) === null) {
        unset($template[key($changes)]);
    }
    $messages = [];
    foreach ([
        'reap' => fn () => $runtime->reap(5, null, ['wakeUp' => $template]),
        'recoverFailure' => fn () => $runtime->recoverFailure(1, 'w', new Exception(), $template),
        'strandedRuns' => fn () => $runtime->strandedRuns(5, 5, null, $template),
    ] as $method => $call) {
        try {
            $call();
            $messages[] = "$method: nothing thrown";
        } catch (Throwable $error) {
            $messages[] = $error::class . ': ' . $error->getMessage();
        }
    }
    echo $label, ': ', implode("\n    ", array_unique($messages)), "\n";
}
echo "-- right ones get as far as the server\n";
foreach ([[], ['queue' => str_repeat('ü', 190)], ['table' => 'd.sys_messenger_messages'], ['headers' => '']] as $changes) {
    thrown_class(json_encode(array_keys($changes)), fn () => $runtime->reap(5, null, ['wakeUp' => wake_up($changes)]));
}
thrown_class('null', fn () => $runtime->reap(5, null, ['wakeUp' => null]));
thrown('no array', fn () => $runtime->reap(5, null, ['wakeUp' => 'default']));
?>
--EXPECT--
no table: NrLlmConfigurationException: wakeUp lacks the key 'table'
no queue: NrLlmConfigurationException: wakeUp lacks the key 'queue'
no body: NrLlmConfigurationException: wakeUp lacks the key 'body'
no headers: NrLlmConfigurationException: wakeUp lacks the key 'headers'
no placeholder: NrLlmConfigurationException: wakeUp lacks the key 'placeholder'
an unknown key: NrLlmConfigurationException: wakeUp has the unknown key 'delay'; its keys are table, queue, body, headers, placeholder
a body without the placeholder: NrLlmConfigurationException: wakeUp['body'] does not contain the placeholder that the run's uuid replaces; take the body as the transport's serializer makes it from an envelope for the placeholder (a body in base64 cannot be a template)
a body in base64: NrLlmConfigurationException: wakeUp['body'] does not contain the placeholder that the run's uuid replaces; take the body as the transport's serializer makes it from an envelope for the placeholder (a body in base64 cannot be a template)
a body that is not UTF-8: NrLlmConfigurationException: wakeUp['body'] must be UTF-8; take the body as the transport's serializer makes it
a body that is an object: NrLlmConfigurationException: wakeUp['body'] must be a string, object given
headers in an array: NrLlmConfigurationException: wakeUp['headers'] must be a string, array given
a short placeholder: NrLlmConfigurationException: wakeUp['placeholder'] must be 36 ASCII characters long, as a run's uuid, without quotation marks and backslashes
a placeholder of 37: NrLlmConfigurationException: wakeUp['placeholder'] must be 36 ASCII characters long, as a run's uuid, without quotation marks and backslashes
a placeholder of other characters: NrLlmConfigurationException: wakeUp['placeholder'] must be 36 ASCII characters long, as a run's uuid, without quotation marks and backslashes
an empty placeholder: NrLlmConfigurationException: wakeUp['placeholder'] must be 36 ASCII characters long, as a run's uuid, without quotation marks and backslashes
an empty queue: NrLlmConfigurationException: wakeUp['queue'] must be 1 to 190 characters long, 0 given
a long queue: NrLlmConfigurationException: wakeUp['queue'] must be 1 to 190 characters long, 191 given
a table with a blank: NrLlmConfigurationException: option wakeUp['table'] must be a table name of 1 to 64 characters of 0-9, A-Z, a-z, $ and _, optionally with a schema (schema.table)
an empty table: NrLlmConfigurationException: option wakeUp['table'] must be a table name of 1 to 64 characters of 0-9, A-Z, a-z, $ and _, optionally with a schema (schema.table)
-- right ones get as far as the server
[]: NrLlmConnectionException
["queue"]: NrLlmConnectionException
["table"]: NrLlmConnectionException
["headers"]: NrLlmConnectionException
null: NrLlmConnectionException
no array: TypeError: $options['wakeUp'] must be of type array, string given
