--TEST--
strandedRuns(): three processes at once share the stranded runs, with messages and without
--EXTENSIONS--
nrllm_runtime
mysqli
pcntl
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/outbox.inc';
$db = new TestDb(['messages' => true]);
foreach ([null, wake_up()] as $template) {
    $now = time();
    $uuids = [];
    for ($i = 0; $i < 60; $i++) {
        $uuids[] = $db->row($db->insert(['tstamp' => $now - 3600, 'crdate' => $i]))['uuid'];
    }
    $db->closeLink();
    [$gate, $open] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    $children = [];
    for ($i = 0; $i < 3; $i++) {
        [$mine, $theirs] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $pid = pcntl_fork();
        if ($pid === 0) {
            fclose($open);
            $runtime = $db->runtime();
            $runtime->status();
            // Each process continues when it reads the end of the file: all at once.
            fwrite($theirs, '.');
            fread($gate, 1);
            fwrite($theirs, json_encode($runtime->strandedRuns(60, 60, null, $template)) . "\n");
            exit(0);
        }
        fclose($theirs);
        fread($mine, 1);
        $children[$pid] = $mine;
    }
    fclose($open);
    $reported = [];
    foreach ($children as $pid => $pipe) {
        foreach (json_decode(fgets($pipe), true) as $run) {
            $reported[] = $run['uuid'];
            check($run['wokenUp'] === ($template !== null), 'wokenUp');
        }
        pcntl_waitpid($pid, $status);
        check($status === 0, 'the child ended well');
    }
    sort($reported);
    sort($uuids);
    var_dump($reported === $uuids);
    $messages = array_column(messages($db, $now), 'uuid');
    sort($messages);
    var_dump($messages === ($template === null ? [] : $uuids));
    $db->link()->query('DELETE FROM tx_nrllm_agentrun');
}
?>
--EXPECT--
bool(true)
bool(true)
bool(true)
bool(true)
