--TEST--
keepLease(): a lease of 3 s is kept through 8 s of curl_exec, usleep, PDO, a regular expression, a busy loop and a blocking read, beside a reaper
--DESCRIPTION--
In none of these does PHP run a signal handler, so that a heartbeat in PHP could not be sent. Each
run is executed in a process of its own, while a reaper and another worker call continuously.
--EXTENSIONS--
nrllm_runtime
curl
--INI--
pcre.jit=0
pcre.backtrack_limit=1000000000
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
const LEASE = 3 * SLOW;
const WORK = 8 * SLOW;
$db = new TestDb();
$silent = stream_socket_server('tcp://127.0.0.1:0');
$address = stream_socket_get_name($silent, false);
$calls = [
    'curl_exec' => static function () use ($address): void {
        $curl = curl_init("http://$address/");
        curl_setopt_array($curl, [CURLOPT_TIMEOUT => WORK, CURLOPT_RETURNTRANSFER => true]);
        curl_exec($curl);
        check(curl_errno($curl) === CURLE_OPERATION_TIMEDOUT, 'the server was silent');
    },
    'usleep' => static fn () => usleep(WORK * 1000000),
    'PDO' => static function () use ($db): void {
        $pdo = new PDO('mysql:unix_socket=' . getenv('NRLLM_TEST_SOCKET'), getenv('NRLLM_TEST_USER'), getenv('NRLLM_TEST_PASSWORD'));
        $pdo->query('SELECT SLEEP(' . WORK . ')')->fetchAll();
    },
    'regular expression' => static function (): void {
        // Each call takes twice as long as the one before, until one takes longer than the interval
        // of two heartbeats.
        for ($length = 16, $took = 0, $end = ms() + WORK * 1000; ms() < $end; $length += $took < 2000 * SLOW ? 1 : 0) {
            $start = ms();
            preg_match('/^(a+)+$/', str_repeat('a', $length) . 'b');
            $took = ms() - $start;
        }
    },
    'busy loop' => static function (): void {
        for ($end = ms() + WORK * 1000; ms() < $end;);
    },
    'blocking read' => static function (): void {
        [$ours, $theirs] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        stream_set_timeout($ours, WORK);
        fread($ours, 1);
    },
];
$parties = $uids = [];
foreach ($calls as $label => $call) {
    $uids[$label] = $db->insert();
    $parties[$label] = Party::start($db, static function (Party $parent) use ($db, $call, $label, $uids): int {
        $runtime = $db->runtime();
        $owner = NrLlmRuntime::identity('worker');
        check($runtime->claimQueued($uids[$label], $owner, time() + LEASE), 'claimed');
        $lease = $runtime->keepLease($uids[$label], $owner, LEASE);
        $parent->say('kept');
        $start = ms();
        $call();
        $took = (ms() - $start) / 1000;
        $state = $lease->state();
        $lease->step();
        $db->link()->query("UPDATE tx_nrllm_agentrun SET status = 'completed', iterations = iterations + 1 WHERE uid = {$uids[$label]} AND status = 'running'
            AND claimed_by = '$owner'");
        $completed = $db->link()->affected_rows;
        $lease->release();
        check($took > WORK * 0.8, "$label took long enough: $took s");
        $parent->say(sprintf('%s, %s, completed %d', $state, $lease->beats() >= 6 ? 'renewed throughout' : $lease->beats() . ' heartbeats', $completed));
        return 0;
    });
}
foreach ($parties as $party) {
    check($party->hear() === 'kept', 'kept');
}
$runtime = $db->runtime();
$reaped = $claimed = $ticks = 0;
for ($end = ms() + WORK * 1000; ms() < $end; $ticks++) {
    $reaped += count($runtime->reap());
    foreach ($uids as $uid) {
        $claimed += (int) $runtime->claimQueued($uid, 'worker:other', time() + 100);
    }
    usleep(500000);
}
check($ticks >= 8, 'the reaper ran every half second');
foreach ($parties as $label => $party) {
    echo $label, ': ', $party->hear(), ', ', $party->end() === 0 ? '' : 'FAILED, ', $db->line($uids[$label], 'status', 'iterations', 'requeue_count'), "\n";
}
echo "reaped $reaped, claimed by the other worker $claimed\n";
?>
--EXPECT--
curl_exec: held, renewed throughout, completed 1, status='completed' iterations='1' requeue_count='0'
usleep: held, renewed throughout, completed 1, status='completed' iterations='1' requeue_count='0'
PDO: held, renewed throughout, completed 1, status='completed' iterations='1' requeue_count='0'
regular expression: held, renewed throughout, completed 1, status='completed' iterations='1' requeue_count='0'
busy loop: held, renewed throughout, completed 1, status='completed' iterations='1' requeue_count='0'
blocking read: held, renewed throughout, completed 1, status='completed' iterations='1' requeue_count='0'
reaped 0, claimed by the other worker 0
