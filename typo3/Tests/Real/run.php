<?php

declare(strict_types=1);

// Tests the package on a real TYPO3 site with nr_llm: php run.php SITE SCRATCH [extension|ffi] The
// site's own configuration and database are not touched: TYPO3 gets a folder of its own for its
// configuration, caches and logs (TYPO3_PATH_APP), and a database of the private server
// (NRLLM_TEST_…). bin/test typo3-real runs it.

[, $site, $scratch] = $argv;
$binding = $argv[3] ?? 'extension';
$repository = dirname(__DIR__, 3);
$database = 'real_' . $binding;
$environment = static fn(string $name): string => (string)getenv('NRLLM_TEST_' . $name);
$app = $scratch . '/app-' . $binding;
foreach (['public', 'config/system', 'var'] as $folder) {
    is_dir("$app/$folder") || mkdir("$app/$folder", 0755, true);
}
// TYPO3 14 looks for its packages below TYPO3_PATH_APP.
is_link("$app/vendor") || symlink("$site/vendor", "$app/vendor");
$pdo = new PDO(
    'mysql:unix_socket=' . $environment('SOCKET'),
    $environment('USER'),
    $environment('PASSWORD'),
    [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_EMULATE_PREPARES => false],
);
$pdo->exec("DROP DATABASE IF EXISTS $database");
$pdo->exec("CREATE DATABASE $database CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci");
$pdo->exec("USE $database");

$php = static function (array $arguments, bool $withRuntime = true, bool $wait = true) use ($binding, $app, $repository): mixed {
    $options = ['-d', 'display_errors=stderr', '-d', 'error_reporting=24575'];
    if ($withRuntime && $binding === 'extension') {
        $options = [...$options, '-d', 'extension=' . getenv('NRLLM_MODULE')];
    } elseif ($withRuntime) {
        $options = [...$options, '-d', 'auto_prepend_file=' . $app . '/bridge.php'];
    }
    $process = proc_open(
        [PHP_BINARY, ...$options, ...$arguments],
        [['file', '/dev/null', 'r'], ['pipe', 'w'], ['pipe', 'w']],
        $pipes,
        null,
        ['TYPO3_PATH_APP' => $app, 'TYPO3_PATH_ROOT' => $app . '/public', 'TYPO3_PATH_WEB' => $app . '/public'] + getenv(),
    );
    if (!$wait) {
        return [$process, $pipes];
    }
    $output = stream_get_contents($pipes[1]);
    $errors = stream_get_contents($pipes[2]);

    return [proc_close($process), $output, $errors];
};
file_put_contents($app . '/bridge.php', '<?php const NRLLM_RUNTIME_LIBRARY = ' . var_export((string)getenv('NRLLM_FFI_LIBRARY'), true)
    . '; require_once ' . var_export($repository . '/php-ffi/autoload.php', true) . ';');
$typo3 = static fn(string $line, bool $withRuntime = true): array => $php([$site . '/vendor/bin/typo3', ...explode(' ', $line)], $withRuntime);
$inside = static function (string ...$arguments) use ($php, $site): mixed {
    [$code, $output, $errors] = $php([__DIR__ . '/inside.php', $site, ...$arguments]);

    return $code === 0 ? json_decode($output, true) : throw new RuntimeException($output . $errors);
};
/** @param array<string, mixed> $extension */
$configure = static function (array $extension = [], string $more = '') use ($app): void {
    file_put_contents($app . '/config/system/additional.php', '<?php
        $GLOBALS["TYPO3_CONF_VARS"]["SYS"]["messenger"]["routing"]["Netresearch\NrLlm\Service\Agent\Queue\AgentRunQueuedMessage"] = "doctrine";
        unset($GLOBALS["TYPO3_CONF_VARS"]["SYS"]["messenger"]["routing"]["*"]);
        $GLOBALS["TYPO3_CONF_VARS"]["EXTENSIONS"]["nrllm_runtime"] = ' . var_export($extension, true) . ';' . $more);
};
$limited = static function (int $connections) use ($pdo, $database): string {
    $user = 'real_' . bin2hex(random_bytes(4));
    $pdo->exec("CREATE USER '$user'@'%' IDENTIFIED BY 'x' WITH MAX_USER_CONNECTIONS $connections");
    $pdo->exec("GRANT ALL ON $database.* TO '$user'@'%'");

    return '$GLOBALS["TYPO3_CONF_VARS"]["DB"]["Connections"]["Default"]["user"] = "' . $user . '";'
        . '$GLOBALS["TYPO3_CONF_VARS"]["DB"]["Connections"]["Default"]["password"] = "x";';
};
$made = 0;
/** @param array<string, mixed> $columns */
$run = static function (array $columns = []) use ($pdo, &$made): int {
    $columns += ['uuid' => sprintf('00000000-0000-4000-8000-%012d', ++$made), 'status' => 'queued', 'queued_request' => '{"broken":true}',
        'crdate' => time() - 3600, 'tstamp' => time() - 3600];
    $pdo->prepare('INSERT INTO tx_nrllm_agentrun (' . implode(',', array_keys($columns)) . ') VALUES ('
        . implode(',', array_fill(0, count($columns), '?')) . ')')->execute(array_values($columns));

    return (int)$pdo->lastInsertId();
};
$stale = static fn(array $columns = []): int => $run($columns + ['status' => 'running', 'claimed_by' => 'worker:dead:1',
    'lease_expires' => time() - 100]);
$row = static fn(int $uid): array => $pdo->query('SELECT * FROM tx_nrllm_agentrun WHERE uid = ' . $uid)->fetch(PDO::FETCH_ASSOC);
$messages = static fn(): array => $pdo->query('SELECT body, headers, queue_name FROM sys_messenger_messages WHERE delivered_at IS NULL ORDER BY id')
    ->fetchAll(PDO::FETCH_ASSOC);
$clear = static function () use ($pdo): void {
    $pdo->exec('DELETE FROM tx_nrllm_agentrun');
    $pdo->exec('DELETE FROM sys_messenger_messages');
};
$passed = $failed = 0;
$check = static function (string $label, Closure $test) use (&$passed, &$failed, $clear, $configure, $binding): void {
    $configure();
    try {
        $clear();
        $problem = $test();
    } catch (Throwable $error) {
        $problem = $error::class . ': ' . $error->getMessage() . ' at line ' . $error->getLine();
    }
    $problem === null || $problem === true ? $passed++ : $failed++;
    echo $problem === null || $problem === true ? 'ok      ' : 'FAILED  ', $binding, ': ', $label, "\n";
    if ($problem !== null && $problem !== true) {
        echo is_string($problem) ? $problem : json_encode($problem, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES), "\n";
    }
};
$eventually = static function (Closure $holds, float $seconds): bool {
    for ($until = microtime(true) + $seconds; microtime(true) < $until; usleep(50000)) {
        if ($holds()) {
            return true;
        }
    }

    return false;
};

[$code, $output, $errors] = $typo3('setup --no-interaction --force --driver=mysqli --host=127.0.0.1 --port=' . $environment('PORT')
    . ' --dbname=' . $database . ' --username=' . $environment('USER') . ' --password=' . $environment('PASSWORD')
    . ' --admin-username=admin --admin-user-password=Passw0rd!Xy --admin-email=a@example.org --project-name=site --server-type=other');
$configure();
if ($code !== 0 || $typo3('extension:setup')[0] !== 0) {
    echo $output, $errors, "the site cannot be set up\n0 passed, 1 failed\n";
    exit(1);
}

$check('after the installation the status is healthy, without a warning', static function () use ($typo3): mixed {
    [$code, $output, $errors] = $typo3('nrllm:agent:status');

    return $code === 0 && $errors === '' && !str_contains($output, ' warning ') && !str_contains($output, ' error ')
        ?: [$code, $output, $errors];
});
$check('reaping 32 states leaves the rows and messages that nr_llm leaves', static function () use ($pdo, $typo3, $run, $messages, $clear): mixed {
    $outcome = [];
    foreach ([true, false] as $withRuntime) {
        $clear();
        $pdo->exec('ALTER TABLE tx_nrllm_agentrun AUTO_INCREMENT = 1');
        $number = 0;
        foreach (['', 'read_only', 'idempotent_write', 'non_idempotent_write'] as $effect) {
            foreach (['{"broken":true}', ''] as $request) {
                foreach ([0, 3] as $count) {
                    foreach ([-100, 1000] as $ahead) {
                        $run(['uuid' => sprintf('11111111-0000-4000-8000-%012d', ++$number), 'status' => 'running', 'claimed_by' => 'worker:w:1',
                            'pending_effect' => $effect, 'queued_request' => $request, 'requeue_count' => $count, 'total_tokens' => 7,
                            'lease_expires' => 1700000000 + ($ahead > 0 ? 2000000000 : $number)]);
                    }
                }
            }
        }
        [$code, $output] = $typo3('nrllm:agent:reap', $withRuntime);
        $rows = $pdo->query('SELECT * FROM tx_nrllm_agentrun ORDER BY uuid')->fetchAll(PDO::FETCH_ASSOC);
        foreach ($rows as &$row) {
            unset($row['uid']);
            foreach (['tstamp', 'finished_at', 'queued_at', 'crdate'] as $time) {
                if (isset($row[$time])) {
                    $row[$time] = (int)$row[$time] > time() - 60 ? 'now' : ((int)$row[$time] === 0 ? 0 : 'then');
                }
            }
        }
        unset($row);
        $outcome[] = [$code, preg_replace('/\s+/', ' ', $output), $rows, $messages()];
    }
    foreach ($outcome[0][2] as $number => $ours) {
        $difference = array_diff_assoc($ours, $outcome[1][2][$number]);
        if ($difference !== []) {
            return [$ours['uuid'], $difference, array_intersect_key($outcome[1][2][$number], $difference)];
        }
    }

    return $outcome[0] === $outcome[1] && count($outcome[0][3]) > 0 ?: [$outcome[0][0], $outcome[1][0], $outcome[0][1], $outcome[1][1],
        $outcome[0][3], $outcome[1][3]];
});
$check('the heartbeat continues while PHP is blocked, and the reaper takes over after a kill', static function () use (
    $configure,
    $php,
    $site,
    $run,
    $row,
    $typo3,
    $eventually
): mixed {
    $configure(['leaseSeconds' => 3]);
    $uid = $run();
    [$process, $pipes] = $php([__DIR__ . '/inside.php', $site, 'claim-and-block', (string)$uid], true, false);
    if (!$eventually(static fn(): bool => $row($uid)['status'] === 'running', 20)) {
        return 'not claimed: ' . stream_get_contents($pipes[2]);
    }
    usleep(5000000);
    $kept = (int)$row($uid)['lease_expires'] >= time();
    $typo3('nrllm:agent:reap');
    $held = $row($uid)['status'] === 'running';
    proc_terminate($process, SIGKILL);
    proc_close($process);
    $reaped = $eventually(static fn(): bool => $typo3('nrllm:agent:reap')[0] === 0 && $row($uid)['status'] === 'queued', 10);

    return $kept && $held && $reaped ?: ['kept' => $kept, 'held' => $held, 'reaped' => $reaped];
});
$check('a refused second connection costs no run (1)', static function () use ($configure, $limited, $run, $row, $inside, $typo3): mixed {
    foreach ([1, 2] as $connections) {
        $uid = $run();
        $configure([], $limited($connections));
        $claimed = $inside('run-queued', $row($uid)['uuid']);
        // nr_llm claims it, cannot read its request, and settles it; without the claim it would be
        // queued.
        if (!$claimed || $row($uid)['status'] !== 'failed') {
            return [$connections, $claimed, $row($uid)['status']];
        }
    }

    return true;
});
$check('the documented cron line works without the runtime (2)', static function () use ($typo3, $run, $stale, $row, $messages): mixed {
    [$reaped, $stranded] = [$stale(), $run(['tstamp' => time() - 5000])];
    [$code, $output, $errors] = $typo3('nrllm:agent:reap -q --wake-stranded=600', false);

    return [$code, $output, $errors, $row($reaped)['status'], count($messages())] === [0, '', '', 'queued', 2]
        ?: [$code, $output, $errors, $row($reaped)['status'], count($messages()), $row($stranded)['status']];
});
$check('an unknown transport destroys no run (3)', static function () use ($configure, $typo3, $stale, $row): mixed {
    $configure(['transport' => 'doctrin']);
    $uid = $stale();
    [$code, , $errors] = $typo3('nrllm:agent:reap -q');
    [$status, $text] = $typo3('nrllm:agent:status');

    return $code === 1 && str_contains($errors, 'The transport "doctrin"') && $row($uid)['status'] === 'running' && $status === 1
        && str_contains($text, ' error    routing') ?: [$code, $errors, $row($uid)['status'], $status, $text];
});
$check('worker and reaper wait for a database that is away and report it once (4)', static function () use ($configure, $php, $site): mixed {
    $configure([], '$GLOBALS["TYPO3_CONF_VARS"]["DB"]["Connections"]["Default"]["port"] = 1;');
    $problems = [];
    foreach (['nrllm:agent:work' => [], 'nrllm:agent:reap' => ['--watch']] as $command => $more) {
        [$code, $output, $errors] = $php([$site . '/vendor/bin/typo3', $command, '--time-limit=3', ...$more]);
        $problems += $code === 1 && substr_count($errors, '[ERROR]') === 1 && str_contains($errors, "; $command waits for it.") ? [] : [$command => [$code, $output, $errors]];
    }

    return $problems ?: true;
});
$check('metrics and JSON are written while the database is away (5)', static function () use ($configure, $typo3): mixed {
    $configure([], '$GLOBALS["TYPO3_CONF_VARS"]["DB"]["Connections"]["Default"]["port"] = 1;');
    [$code, $metrics] = $typo3('nrllm:agent:status --format=openmetrics');
    $json = json_decode($typo3('nrllm:agent:status --json')[1], true);

    return $code === 1 && str_contains($metrics, "\nnrllm_agent_healthy 0\n") && str_ends_with($metrics, "# EOF\n")
        && ($json['healthy'] ?? null) === false ?: [$code, $metrics, $json];
});
$check('an idle connection that the server closed delays no run (6)', static function () use ($php, $site, $run, $row, $pdo, $database, $eventually): mixed {
    [$process, $pipes] = $php([$site . '/vendor/bin/typo3', 'nrllm:agent:work', '--limit=2', '--time-limit=40', '--sleep=1'], true, false);
    $first = $run();
    $eventually(static fn(): bool => $row($first)['status'] === 'failed', 20);
    foreach ($pdo->query("SELECT ID FROM information_schema.PROCESSLIST WHERE DB = '$database' AND ID <> CONNECTION_ID()")
        ->fetchAll(PDO::FETCH_COLUMN) as $id) {
        try {
            $pdo->exec('KILL ' . (int)$id);
        } catch (PDOException) {
            // Gone already.
        }
    }
    $second = $run();
    $done = $eventually(static fn(): bool => $row($second)['status'] === 'failed', 15);
    proc_terminate($process);
    $output = stream_get_contents($pipes[1]) . stream_get_contents($pipes[2]);
    proc_close($process);

    return $done ?: [$row($first)['status'], $row($second)['status'], $output];
});
$check('runs that cannot be decrypted have a way out (7)', static function () use ($typo3, $run, $stale, $row): mixed {
    [$left, $queued] = [$stale(['queued_request' => 'nrv1:garbage']), $run(['queued_request' => 'nrv1:garbage'])];
    [$before, , $errors] = $typo3('nrllm:agent:reap -q');
    $remedy = str_contains($errors, '--fail-unreadable') && $row($left)['status'] === 'running';
    [$code] = $typo3('nrllm:agent:reap --fail-unreadable');
    [$after] = $typo3('nrllm:agent:reap -q');

    return [$before, $remedy, $code, $row($left)['status'], $row($queued)['status'], $after] === [1, true, 0, 'failed', 'failed', 0]
        ?: [$before, $errors, $code, $row($left)['status'], $row($queued)['status'], $after];
});
$check('fallback=none acknowledges no message of a run that was not handled (8)', static function () use (
    $configure,
    $php,
    $site,
    $typo3,
    $run,
    $row,
    $messages,
    $eventually,
    $pdo
): mixed {
    $configure(['fallback' => 'none']);
    $uid = $run(['tstamp' => time() - 5000]);
    $configure();
    $typo3('nrllm:agent:reap --wake-stranded=600');
    $configure(['fallback' => 'none']);
    $sent = count($messages());
    [$process, $pipes] = $php([$site . '/vendor/bin/typo3', 'messenger:consume', 'doctrine', '--sleep=1'], false, false);
    $again = $eventually(static fn(): bool => (int)$pdo->query('SELECT COUNT(*) FROM sys_messenger_messages WHERE delivered_at IS NULL AND'
        . ' available_at > UTC_TIMESTAMP()')->fetchColumn() === 1, 20);
    proc_terminate($process);
    $output = stream_get_contents($pipes[1]) . stream_get_contents($pipes[2]);
    proc_close($process);
    [$status] = $typo3('nrllm:agent:status', false);

    return [$sent, $again, $row($uid)['status'], $status] === [1, true, 'queued', 1] ?: [$sent, $again, $row($uid)['status'], $status, $output];
});
$check('where no lease is kept the status says so (9)', static function () use ($typo3, $configure, $limited): mixed {
    $without = $typo3('nrllm:agent:status', false)[1];
    $configure([], $limited(2));
    $refused = $typo3('nrllm:agent:status')[1];

    return str_contains($without, ' warning  keeper: No lease is kept') && str_contains($refused, ' warning  keeper: No lease is kept')
        ?: [$without, $refused];
});
$check('another owner in the same process is refused (10)', static function () use ($inside, $run, $row): mixed {
    $uid = $run();
    $answers = $inside('other-owner', (string)$uid);

    return $answers === [true, false, false, false, true] && $row($uid)['pending_effect'] === '' ?: [$answers, $row($uid)];
});
$check('labels of settings are shown whole (11)', static function () use ($inside): mixed {
    [$shown, $written] = $inside('labels');
    ksort($shown);
    ksort($written);

    return count($written) === 9 && $shown === $written ?: [$shown, $written];
});
$check('a setting that cannot be used is named with the remedy (12)', static function () use ($configure, $typo3, $stale, $row): mixed {
    $configure(['clock' => 'databse', 'leaseSecond' => '30']);
    $uid = $stale();
    [$status, $text] = $typo3('nrllm:agent:status');
    [$reap, , $errors] = $typo3('nrllm:agent:reap -q');
    [$work] = $typo3('nrllm:agent:work --time-limit=5');

    return [$status, $reap, $work, $row($uid)['status']] === [1, 1, 1, 'running'] && str_contains($text, 'There is no extension setting "leaseSecond"')
        && str_contains($errors, 'clock must be caller or database, not "databse"') ?: [$status, $reap, $work, $text, $errors];
});
if ($binding === 'ffi') {
    $check('a library that was cut off ends no command (13)', static function () use ($typo3, $app, $stale, $row): mixed {
        $bridge = (string)file_get_contents($app . '/bridge.php');
        $library = (string)getenv('NRLLM_FFI_LIBRARY');
        file_put_contents($app . '/cut.so', substr((string)file_get_contents($library), 0, intdiv((int)filesize($library), 2)));
        file_put_contents($app . '/bridge.php', str_replace(var_export($library, true), var_export($app . '/cut.so', true), $bridge));
        $uid = $stale();
        [$status, $text] = $typo3('nrllm:agent:status');
        [$reap, , $errors] = $typo3('nrllm:agent:reap -q');
        file_put_contents($app . '/bridge.php', $bridge);

        // nr_llm's own reaper runs.
        return $status === 1 && str_contains($text, 'it is not whole') && [$reap, $errors, $row($uid)['status']] === [0, '', 'queued']
            ?: [$status, $text, $reap, $errors, $row($uid)['status']];
    });
}
$check('versions are known (14)', static function () use ($typo3): mixed {
    $versions = json_decode($typo3('nrllm:agent:status --json')[1], true)['versions'] ?? [];

    return !in_array('', $versions, true) && $versions !== [] ?: $versions;
});
$check('a missing table is reported with TYPO3\'s remedy (15)', static function () use ($typo3, $pdo): mixed {
    $pdo->exec('RENAME TABLE tx_nrllm_agentrun TO away');
    [$reap, , $errors] = $typo3('nrllm:agent:reap');
    [$status, $text] = $typo3('nrllm:agent:status');
    $pdo->exec('RENAME TABLE away TO tx_nrllm_agentrun');

    return $reap === 1 && $status === 1 && str_contains($errors, 'extension:setup') && str_contains($text, 'extension:setup')
        ?: [$reap, $errors, $status, $text];
});
$check('a watching reaper queues a dead worker\'s run within two seconds of its lease\'s expiry', static function () use (
    $php,
    $site,
    $run,
    $row,
    $eventually
): mixed {
    [$process, $pipes] = $php([$site . '/vendor/bin/typo3', 'nrllm:agent:reap', '--watch', '--time-limit=30'], true, false);
    usleep(2000000);
    $expires = time() + 3;
    $uid = $run(['status' => 'running', 'claimed_by' => 'worker:dead:1', 'lease_expires' => $expires]);
    $queued = $eventually(static fn(): bool => $row($uid)['status'] === 'queued', 10);
    $late = microtime(true) - $expires;
    proc_terminate($process);
    stream_get_contents($pipes[1]);
    $code = proc_close($process);

    return $queued && $late < 2.1 && $code === 0 ?: [$queued, $late, $code];
});
$check('EXT:reports and EXT:dashboard show the agent runs, where they are installed', static function () use ($inside, $stale): mixed {
    $stale();
    [$reports, $report, $dashboard, $lines] = $inside('backend');

    return (!$reports || (($report['Agent runs'] ?? '') === 'Unhealthy' && isset($report['Native runtime'])))
        && (!$dashboard || in_array('Stale (lease expired): 1', $lines, true)) ?: [$report, $lines];
});

// nr_llm's own tests of its run repository, with this package in front of it. Composer's archives
// of nr_llm have no tests: they are there where it was installed from source.
$own = $site . '/vendor/netresearch/nr-llm/Tests/Functional';
if (!is_file($own . '/Service/Tool/AgentRunPersisterTest.php') || !is_file($site . '/vendor/bin/phpunit')
    || !is_dir($site . '/vendor/typo3/testing-framework')) {
    echo 'left out ', $binding, ": nr_llm's own tests: the site lacks them, typo3/testing-framework, or PHPUnit\n";
} else {
    $check("nr_llm's own tests differ in what HowItWorks.md explains, and in nothing else", static function () use (
        $php,
        $site,
        $app,
        $own,
        $database,
        $environment
    ): mixed {
        $copies = $app . '/own';
        $changes = [
            // The package is active, and nr_llm's repository is asked through it.
            '/AbstractFunctionalTestCase.php' => ["/'netresearch\/nr-llm',/", "'netresearch/nr-llm', 'nrllm-runtime/typo3',"],
            '/Service/Tool/AgentRunPersisterTest.php' => ['/new AgentRunRepository\([^;]+;|private AgentRunRepository (?=\$)/', null],
        ];
        foreach ($changes as $file => [$pattern, $replacement]) {
            is_dir(dirname($copies . '/Functional' . $file)) || mkdir(dirname($copies . '/Functional' . $file), 0755, true);
            $changed = preg_replace_callback(
                $pattern,
                static fn(array $found): string => $replacement ?? (str_starts_with($found[0], 'new')
                    ? '$this->get(\Netresearch\NrLlm\Service\Tool\AgentRunRepositoryInterface::class);'
                    : 'private \Netresearch\NrLlm\Service\Tool\AgentRunRepositoryInterface '),
                (string)file_get_contents($own . $file),
                -1,
                $count,
            );
            if ($count === 0) {
                return "$file cannot be changed";
            }
            file_put_contents($copies . '/Functional' . $file, $changed);
        }
        foreach (['Driver' => 'mysqli', 'Host' => '127.0.0.1', 'Port' => $environment('PORT'), 'Username' => $environment('USER'),
            'Password' => $environment('PASSWORD'), 'Name' => $database] as $name => $value) {
            putenv('typo3Database' . $name . '=' . $value);
        }
        // TYPO3's testing framework expects the entry script.
        touch($app . '/public/index.php');
        putenv('NRLLM_REAL_SITE=' . $site);
        putenv('NRLLM_REAL_COPIES=' . $copies);
        [, $output, $errors] = $php(['-d', 'memory_limit=1G', $site . '/vendor/bin/phpunit', '--no-configuration', '--do-not-cache-result', '--bootstrap',
            __DIR__ . '/own-tests.php', '--log-junit', $app . '/own.xml', $copies . '/Functional/Service/Tool/AgentRunPersisterTest.php']);
        $report = is_file($app . '/own.xml') ? simplexml_load_file($app . '/own.xml') : false;
        if ($report === false || count($report->xpath('//testcase')) < 20 || $report->xpath('//error | //skipped') !== []) {
            return $output . $errors;
        }
        $unexplained = [];
        foreach ($report->xpath('//failure') as $failure) {
            // The stored owner carries a nonce; a kept lease has this package's length.
            $isNonce = preg_match("/^-'([^']+)'\n\\+'\\1:[0-9a-f]{16}'$/m", (string)$failure) === 1;
            $isLength = preg_match('/ (\d{10}) is greater than (\d{10})\./', (string)$failure, $lease) === 1 && $lease[2] - $lease[1] > 800;
            if (!$isNonce && !$isLength) {
                $unexplained[] = (string)$failure;
            }
        }

        return $unexplained ?: true;
    });
}

$pdo->exec("DROP DATABASE $database");
echo $passed, ' passed, ', $failed, " failed\n";
exit($failed === 0 ? 0 : 1);
