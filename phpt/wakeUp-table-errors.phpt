--TEST--
wakeUp: another database, a missing table or column, and an engine without transactions are configuration errors, and nothing is written
--EXTENSIONS--
nrllm_runtime
mysqli
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/outbox.inc';
require __DIR__ . '/inc/provider.inc';
$other = new TestDb(['messages' => true]);
$db = new TestDb(['messages' => true]);
$link = $db->link();
$link->query('CREATE TABLE no_available_at LIKE sys_messenger_messages');
$link->query('ALTER TABLE no_available_at DROP COLUMN available_at');
$link->query('CREATE TABLE no_transactions LIKE sys_messenger_messages');
$link->query('ALTER TABLE no_transactions ENGINE = MyISAM');
$now = time();
$stale = $db->running($now - 10);
$mine = $db->running($now + 60);
$queued = $db->insert();
$before = $db->query('SELECT * FROM tx_nrllm_agentrun ORDER BY uid')->fetch_all();
$failed = new Netresearch\NrLlm\Provider\Exception\ProviderConnectionException('gone');
$names = [$db->name => 'HERE', $other->name => 'OTHER'];
$try = static function (string $label, NrLlmRuntime $runtime, array $template) use ($mine, $failed, $names): void {
    echo $label, "\n";
    $reported = [];
    foreach ([
        fn () => $runtime->reap(5, null, ['wakeUp' => $template]),
        fn () => $runtime->reap(5, null, ['wakeUp' => $template, 'dryRun' => true]),
        fn () => $runtime->recoverFailure($mine, 'worker:a', $failed, $template),
        fn () => $runtime->strandedRuns(5, 5, null, $template),
    ] as $call) {
        try {
            $call();
            $reported[] = 'nothing thrown';
        } catch (Throwable $error) {
            $reported[] = $error::class . ': ' . strtr($error->getMessage(), $names);
        }
    }
    echo '  ', implode("\n  ", array_unique($reported)), "\n";
};
$try('a table that is missing', $db->runtime(), wake_up(['table' => 'no_such_table']));
$try('a column that is missing', $db->runtime(), wake_up(['table' => 'no_available_at']));
$try('an engine without transactions', $db->runtime(), wake_up(['table' => 'no_transactions']));
$try('another database', $db->runtime(), wake_up(['table' => "$other->name.sys_messenger_messages"]));
$try('runs in another database', $db->runtime(['table' => "$db->name.tx_nrllm_agentrun"], ['dbname' => $other->name]), wake_up());
check($db->query('SELECT * FROM tx_nrllm_agentrun ORDER BY uid')->fetch_all() === $before, 'nothing was written');
check(messages($db, $now) === [] && $other->value('SELECT COUNT(*) FROM sys_messenger_messages') === 0, 'no message was written');
echo "this database, named\n";
$runtime = $db->runtime(['table' => "$db->name.tx_nrllm_agentrun"], ['dbname' => $other->name]);
var_dump($runtime->reap(5, null, ['wakeUp' => wake_up(['table' => "$db->name.sys_messenger_messages"])])->requeued()[0]['wokenUp'], count(messages($db, $now)));
?>
--EXPECT--
a table that is missing
  NrLlmConfigurationException: wakeUp['table']: the table `no_such_table` does not exist; it has to be the doctrine transport's table, in the run's own database
a column that is missing
  NrLlmConfigurationException: wakeUp['table']: `no_available_at` lacks the column available_at; it has to be the doctrine transport's table
an engine without transactions
  NrLlmConfigurationException: wakeUp: `no_transactions` is MyISAM, which has no transactions: a message cannot be written together with a requeue. Convert it to InnoDB, or call without wakeUp and notify the workers yourself
another database
  NrLlmConfigurationException: wakeUp['table']: `OTHER`.`sys_messenger_messages` is in database OTHER, the runs are in HERE: a message can only be written with a requeue in the run's own database
runs in another database
  NrLlmConfigurationException: wakeUp['table']: `sys_messenger_messages` is in database OTHER, the runs are in HERE: a message can only be written with a requeue in the run's own database
this database, named
bool(true)
int(1)
