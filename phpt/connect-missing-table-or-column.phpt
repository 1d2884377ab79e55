--TEST--
A missing table, column or database is a configuration error that names it; a statement that the server refuses is a query error with its number
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/provider.inc';
require __DIR__ . '/inc/db.inc';
$failure = new Netresearch\NrLlm\Provider\Exception\ProviderConnectionException();
$calls = static fn (NrLlmRuntime $runtime, int $uid): array => [
    'claim' => fn () => $runtime->claimQueued($uid, 'worker:a', 5),
    'renew' => fn () => $runtime->renewLease($uid, 'worker:a', 5),
    'reap' => fn () => $runtime->reap(),
    'recover' => fn () => $runtime->recoverFailure($uid, 'worker:a', $failure),
    'status' => fn () => $runtime->status(),
];
echo "no table\n";
$db = new TestDb(['create' => false]);
foreach ($calls($db->runtime(), 1) as $label => $call) {
    thrown_with($label, $call, 'tx_nrllm_agentrun');
}
echo "the table comes\n";
$db->link()->query(run_table_sql());
$runtime = $db->runtime();
var_dump($runtime->claimQueued($db->insert(), 'worker:a', 5));
foreach (['pendingEffect' => 'pending_effect', 'requeueCount' => 'requeue_count'] as $option => $column) {
    echo "no $column\n";
    $db = new TestDb([$option => false]);
    $runtime = $db->runtime();
    foreach ($calls($runtime, $db->running(5)) as $label => $call) {
        if ($label === 'reap' || $label === 'recover') {
            $before = $db->query('SELECT * FROM tx_nrllm_agentrun')->fetch_all();
            thrown_with($label, $call, $column);
            check($db->query('SELECT * FROM tx_nrllm_agentrun')->fetch_all() === $before, 'nothing was written');
        }
    }
    var_dump($runtime->claimQueued($db->insert(), 'worker:a', 5));
}
echo "no queued_at\n";
$db = new TestDb(['queuedAt' => false]);
var_dump(count($db->runtime()->reap()), $db->runtime()->recoverFailure($db->running(5), 'worker:a', $failure)->outcome());
echo "no database\n";
thrown_with('status', fn () => $db->runtime([], ['dbname' => 'phpt_no_such_database'])->status(), 'phpt_no_such_database');
echo "another table\n";
$db->link()->query(run_table_sql(['table' => 'odd$name']));
$uid = $db->insert([], 'odd$name');
var_dump($db->runtime(['table' => 'odd$name'])->claimQueued($uid, 'w', 5), $db->runtime(['table' => "$db->name.odd\$name"])->renewLease($uid, 'w', 5));
echo "refused by a trigger\n";
$db = new TestDb();
$db->link()->query("CREATE TRIGGER refuse BEFORE UPDATE ON tx_nrllm_agentrun FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not today', MYSQL_ERRNO = 4567");
$uid = $db->insert();
try {
    $db->runtime()->claimQueued($uid, 'w', 5);
} catch (NrLlmQueryException $error) {
    var_dump($error->getCode(), str_contains($error->getMessage(), 'not today'));
}

function thrown_with(string $label, callable $call, string $word): void
{
    try {
        $call();
        echo "  $label: nothing thrown\n";
    } catch (Throwable $error) {
        echo "  $label: ", $error::class, str_contains($error->getMessage(), $word) ? " names $word" : ': ' . $error->getMessage(), "\n";
    }
}
?>
--EXPECT--
no table
  claim: NrLlmConfigurationException names tx_nrllm_agentrun
  renew: NrLlmConfigurationException names tx_nrllm_agentrun
  reap: NrLlmConfigurationException names tx_nrllm_agentrun
  recover: NrLlmConfigurationException names tx_nrllm_agentrun
  status: NrLlmConfigurationException names tx_nrllm_agentrun
the table comes
bool(true)
no pending_effect
  reap: NrLlmConfigurationException names pending_effect
  recover: NrLlmConfigurationException names pending_effect
bool(true)
no requeue_count
  reap: NrLlmConfigurationException names requeue_count
  recover: NrLlmConfigurationException names requeue_count
bool(true)
no queued_at
int(0)
string(8) "requeued"
no database
  status: NrLlmConfigurationException names phpt_no_such_database
another table
bool(true)
bool(true)
refused by a trigger
int(4567)
bool(true)
