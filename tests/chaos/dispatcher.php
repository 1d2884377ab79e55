<?php

declare(strict_types=1);

// A dispatcher: sends the first message of each run, sweeps for stranded runs, and cancels a few.
require __DIR__ . '/actor.inc';

foreach ($round['runs'] as $uid => $run) {
    if ($round['mode'] !== 'bus' || $stopping) {
        break;
    }
    try {
        db()->query("INSERT INTO sys_messenger_messages (body, headers, queue_name, created_at, available_at) VALUES ('run:{$run['uuid']}', '{}', 'default', UTC_TIMESTAMP(), UTC_TIMESTAMP())");
    } catch (mysqli_sql_exception $error) {
        // Not sent: the sweep is there for that.
        elsewhere($error);
    }
}
$cancel = $round['cancel'];
$began = hrtime(true);
while (!$stopping) {
    try {
        if ($round['mode'] === 'bus') {
            $stranded = $runtime->strandedRuns(1, 50, null, wakeUp());
            if ($stranded !== []) {
                note('swept', ['uids' => array_column($stranded, 'uid')]);
            }
        }
        foreach ($cancel as $index => ['uid' => $uid, 'at' => $at]) {
            if (hrtime(true) - $began > $at * 1_000_000) {
                note('cancelling', ['uid' => $uid]);
                note('cancelled', ['uid' => $uid, 'done' => $runtime->cancelRun($round['runs'][$uid]['uuid'])]);
                unset($cancel[$index]);
            }
        }
    } catch (NrLlmException $error) {
        elsewhere($error);
    }
    usleep(200_000);
}
note('ended');
