--TEST--
interruptOnLoss: a loss during a blocking call is thrown when the call returns
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$runtime = $db->runtime();
$thief = thief($db);
// No call with a result that has to be freed: PHP frees the result of an interrupted call only when
// the request ends.
$silent = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
foreach (['usleep' => static fn () => usleep(1200000 * SLOW), 'DO SLEEP' => static fn () => $db->link()->query('DO SLEEP(1.2)'),
    'fread' => static fn () => stream_set_timeout($silent[0], SLOW, 200000) && fread($silent[0], 1)] as $label => $call) {
    $when = in_time(1700 * SLOW, static function () use ($db, $runtime, $thief, $label, $call): float {
        $uid = $db->running(time() + 100);
        $lease = $runtime->keepLease($uid, 'worker:a', 2 * SLOW, ['everyMs' => 100 * SLOW, 'interruptOnLoss' => true]);
        $thief->say((string) $uid);
        $start = ms();
        try {
            $call();
            echo "$label returned\n";
        } catch (NrLlmLeaseLostException $error) {
            echo "$label: on return, line ", str_contains(file(__FILE__)[$error->getLine() - 1], strtok($label, ' ')) ? 'of the call' : $error->getLine(), "\n";
        }
        $took = ms() - $start;
        check($took > 1100, 'the call itself is not cut short');
        $thief->hear();

        return $took;
    });
    check($when === 'in time', "$label: thrown when it returns: $when");
}
$thief->say('end');
$thief->end();
?>
--EXPECTF--
usleep: on return, line of the call
DO SLEEP: on return, line of the call
fread: on return, line of the call
