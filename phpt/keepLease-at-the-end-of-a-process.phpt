--TEST--
keepLease(): exit, a fatal error, an uncaught exception and the memory limit end the process at once, and its heartbeats
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
$db = new TestDb();
$endings = [
    'end of the script' => static fn () => null,
    'exit' => static fn () => exit(9),
    'exit in a shutdown function' => static fn () => register_shutdown_function(static fn () => exit(8)),
    'fatal error' => static fn () => undefined_function(),
    'uncaught exception' => static fn () => throw new LogicException('uncaught'),
    'memory limit' => static function (): void {
        ini_set('memory_limit', (string) (memory_get_usage(true) + (4 << 20)));
        str_repeat('x', 64 << 20);
        // Under valgrind PHP's allocator is replaced, and has no limit.
        getenv('USE_ZEND_ALLOC') === '0' && exit(255);
    },
    'time limit' => static function (): void {
        set_time_limit(1);
        while (true);
    },
    'interrupted and uncaught' => static function (NrLlmLease $lease) use ($db): void {
        $db->query("UPDATE tx_nrllm_agentrun SET claimed_by = 'worker:b' WHERE uid = ?", [$lease->runUid()]);
        while (true) {
            // Through the FFI bridge the code has to call step().
            INTERRUPTS || $lease->step();
        }
    },
    'exception in a destructor' => static function (): void {
        $GLOBALS['late'] = new class () {
            public function __destruct()
            {
                throw new LogicException('in a destructor');
            }
        };
    },
    'the server does not answer' => static function (NrLlmLease $lease) use ($db): void {
        // A heartbeat is waiting for its reply when the process ends.
        $GLOBALS['lock'] = $db->connect();
        $GLOBALS['lock']->query('LOCK TABLES tx_nrllm_agentrun WRITE');
        usleep(250000 * SLOW);
    },
    'killed' => static fn () => posix_kill(getmypid(), SIGKILL),
];
foreach ($endings as $label => $ending) {
    $uid = $db->running(time() + 100);
    $child = Party::start($db, static function (Party $parent) use ($db, $ending, $uid): int {
        ini_set('display_errors', '0');
        ini_set('log_errors', '0');
        $GLOBALS['lease'] = $db->runtime()->keepLease($uid, 'worker:a', 4 * SLOW, ['everyMs' => 200 * SLOW, 'interruptOnLoss' => INTERRUPTS]);
        check(until(static fn (): bool => $GLOBALS['lease']->beats() > 1), 'heartbeats are sent');
        register_shutdown_function(static function () use ($parent): void {
            // The heartbeats continue until the user's code has ended.
            $parent->say('ends at ' . ms() . ' ' . $GLOBALS['lease']->state());
        });
        // PHP handles the errors here.
        set_exception_handler(null);
        Closure::bind(static function () use ($ending): void { $GLOBALS['ending'] = $ending; }, null)();
        return child_of_ending($ending);
    });
    $line = $child->hear() ?? '';
    $code = $child->end(20000);
    $took = ms() - (float) (explode(' ', $line)[2] ?? ms());
    echo $label, ': ', $code, $line === '' ? '' : ', ' . substr($line, (int) strrpos($line, ' ') + 1), $took < 2000 * SLOW ? '' : ", after $took ms", "\n";
    check(until(static fn (): bool => count(array_filter(connections($db))) === 0), 'no connection is left');
}
function child_of_ending(Closure $ending): int
{
    try {
        $ending($GLOBALS['lease']);
    } catch (Throwable $error) {
        // As if it had not been caught: Party reports an exception of its work.
        register_shutdown_function(static fn () => exit(255));
        exit(255);
    }
    return 0;
}
$row = static fn () => $db->value('SELECT GROUP_CONCAT(lease_expires ORDER BY uid) FROM tx_nrllm_agentrun');
$before = $row();
usleep(500000 * SLOW);
echo $row() === $before ? 'no heartbeat after the end' : 'heartbeats after the end', "\n";
?>
--EXPECT--
end of the script: 0, held
exit: 9, held
exit in a shutdown function: 8, held
fatal error: 255, held
uncaught exception: 255, held
memory limit: 255, held
time limit: 255, held
interrupted and uncaught: 255, lost
exception in a destructor: 255, held
the server does not answer: 0, held
killed: 137
no heartbeat after the end
