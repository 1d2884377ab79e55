--TEST--
recoverFailure(): error_class stores anonymous classes without the path, truncates long names, and replaces characters that it cannot hold by `?`
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/db.inc';
$classes = [
    'anonymous' => new class extends RuntimeException {
    },
];
foreach (['long' => str_repeat('L', 300), 'long, two bytes a letter' => str_repeat('é', 200), 'not UTF-8' => "Bad\xffName", 'emoji' => "Boom\u{1f4a5}"] as $label => $name) {
    eval("class $name extends Exception {}");
    $classes[$label] = new $name();
}
foreach ([['utf8mb4', 'utf8mb4_unicode_ci'], ['latin1', 'latin1_swedish_ci']] as [$charset, $collation]) {
    $db = new TestDb(['charset' => $charset, 'collation' => $collation]);
    $runtime = $db->runtime();
    foreach ($classes as $label => $error) {
        $uid = $db->running(2000000000);
        $outcome = $runtime->recoverFailure($uid, 'worker:a', $error)->outcome();
        $stored = $db->row($uid)['error_class'];
        preg_match('/^.{0,26}/us', $stored, $start);
        printf("%s, %s: %s, %s (%d)\n", $charset, $label, $outcome, $start[0], mb_length($stored));
    }
}
function mb_length(string $text): int
{
    return preg_match_all('/./us', $text);
}
?>
--EXPECT--
utf8mb4, anonymous: dead_lettered, RuntimeException@anonymous (26)
utf8mb4, long: dead_lettered, LLLLLLLLLLLLLLLLLLLLLLLLLL (255)
utf8mb4, long, two bytes a letter: dead_lettered, éééééééééééééééééééééééééé (200)
utf8mb4, not UTF-8: dead_lettered, Bad?Name (8)
utf8mb4, emoji: dead_lettered, Boom💥 (5)
latin1, anonymous: dead_lettered, RuntimeException@anonymous (26)
latin1, long: dead_lettered, LLLLLLLLLLLLLLLLLLLLLLLLLL (255)
latin1, long, two bytes a letter: dead_lettered, éééééééééééééééééééééééééé (200)
latin1, not UTF-8: dead_lettered, Bad?Name (8)
latin1, emoji: dead_lettered, Boom? (5)
