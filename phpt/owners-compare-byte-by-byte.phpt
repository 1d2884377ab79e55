--TEST--
Owners compare byte by byte on every character set and collation; a character that the column cannot hold is refused
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$mysql = getenv('NRLLM_TEST_SERVER') === 'mysql';
$tables = [['utf8mb4', 'utf8mb4_unicode_ci'], ['utf8mb4', 'utf8mb4_general_ci'], ['utf8mb4', 'utf8mb4_bin'], ['utf8mb3', 'utf8mb3_general_ci'], ['latin1', 'latin1_swedish_ci'],
    $mysql ? ['utf8mb4', 'utf8mb4_0900_ai_ci'] : ['utf8mb4', 'utf8mb4_unicode_nopad_ci']];
foreach ($tables as [$charset, $collation]) {
    $db = new TestDb(['charset' => $charset, 'collation' => $collation]);
    $runtime = $db->runtime();
    foreach (['worker:straße' => ['worker:strasse', 'WORKER:straße', 'worker:straße ', 'worker:strasé'], 'worker:a' => ['worker:A', 'worker:á', 'worker:a ', ' worker:a']]
        as $owner => $others) {
        $uid = $db->insert();
        check($runtime->claimQueued($uid, $owner, 2000000000), "$collation claims");
        check($db->row($uid)['claimed_by'] === $owner, "$collation stores the bytes");
        foreach ($others as $other) {
            check(!$runtime->renewLease($uid, $other, 2000000000), "$collation: $other is not $owner");
        }
        check($runtime->renewLease($uid, $owner, 2000000000), "$collation renews");
    }
    $uid = $db->insert();
    $row = $db->row($uid);
    try {
        $answer = var_export($runtime->claimQueued($uid, "worker:\u{1f600}", 2000000000), true);
    } catch (ValueError $error) {
        $answer = 'ValueError';
        check($db->row($uid) === $row, 'nothing was written');
    }
    echo "$collation: ok; an emoji: $answer\n";
}
?>
--EXPECTF--
utf8mb4_unicode_ci: ok; an emoji: true
utf8mb4_general_ci: ok; an emoji: true
utf8mb4_bin: ok; an emoji: true
utf8mb3_general_ci: ok; an emoji: ValueError
latin1_swedish_ci: ok; an emoji: ValueError
utf8mb4_%s_ci: ok; an emoji: true
