--TEST--
Rotated passwords: a connection and its descriptors end with the last object of its settings, with and without close() (rule 34)
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$db = new TestDb();
$uid = $db->running(2000000000);
$connections = static fn (): int => (int) $db->value('SELECT COUNT(*) FROM information_schema.processlist WHERE db = ? AND id <> CONNECTION_ID()', [$db->name]);
$descriptors = static fn (): int => count(scandir('/proc/self/fd'));
$db->link()->query("CREATE USER `$db->name`@localhost IDENTIFIED BY 'only-for-this-test'");
$db->link()->query("GRANT SELECT, UPDATE ON `$db->name`.* TO `$db->name`@localhost");
register_shutdown_function(static fn () => $db->connect(null)->query("DROP USER `$db->name`@localhost"));
$use = static function (int $number, bool $close) use ($db, $uid): void {
    $password = "only-for-this-test-$number";
    $db->link()->query("ALTER USER `$db->name`@localhost IDENTIFIED BY '$password'");
    $runtime = $db->runtime([], ['user' => $db->name, 'password' => $password]);
    check($runtime->renewLease($uid, 'worker:a', 2000000000 + $number), 'renewed');
    $lease = $runtime->keepLease($uid, 'worker:a', 30);
    $lease->release();
    $close && $runtime->close();
};
$use(0, false);
foreach ([false, true] as $close) {
    $before = $descriptors();
    for ($number = 1; $number <= 50; $number++) {
        $use($number, $close);
    }
    // The server notices the end of the last one a moment later.
    for ($patience = 0; $patience < 500 && $connections() > 0; $patience++) {
        usleep(10000);
    }
    printf("%s: %d connections, %d descriptors more\n", $close ? 'closed' : 'dropped', $connections(), $descriptors() - $before);
}
?>
--EXPECT--
dropped: 0 connections, 0 descriptors more
closed: 0 connections, 0 descriptors more
