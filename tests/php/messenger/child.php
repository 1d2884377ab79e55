<?php

/**
 * A process of the tests: reaper, worker or consumer. Prints `ready`, waits for a line on its
 * input, works, and prints one line per step.
 *
 *   php child.php ROLE DATABASE JSON-ARGUMENT
 */

declare(strict_types=1);

use Doctrine\DBAL\DriverManager;
use Netresearch\NrLlm\Provider\Exception\ProviderConnectionException;
use Netresearch\NrLlm\Service\Agent\Queue\AgentRunQueuedMessage;
use Symfony\Component\Messenger\Bridge\Doctrine\Transport\Connection;
use Symfony\Component\Messenger\Bridge\Doctrine\Transport\DoctrineTransport;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;

// The parent may have ended, or have killed the others: this process ends soon.
set_time_limit(60);
require_once __DIR__ . '/vendor.php';

[, $role, $database, $argument] = $argv;
$argument = json_decode($argument, true, 8, JSON_THROW_ON_ERROR);
$account = ['unix_socket' => getenv('NRLLM_TEST_SOCKET'), 'user' => getenv('NRLLM_TEST_USER'), 'password' => getenv('NRLLM_TEST_PASSWORD'), 'dbname' => $database];
$runtime = new NrLlmRuntime(['driver' => 'mysqli', 'host' => 'localhost'] + $account);
$placeholder = '00000000-0000-4000-8000-000000000000';
$wakeUp = ['table' => 'sys_messenger_messages', 'queue' => 'default', 'headers' => '[]', 'placeholder' => $placeholder,
    'body' => (new PhpSerializer())->encode(new Envelope(new AgentRunQueuedMessage($placeholder)))['body']];
$say = static function (string $word): void {
    fwrite(STDOUT, "$word\n");
};
$roles = [
    // All stale runs, in calls of so many.
    'reap' => static function (int $limit) use ($runtime, $wakeUp, $say): void {
        do {
            $report = $runtime->reap($limit, null, ['wakeUp' => $wakeUp]);
            foreach ($report->requeued() as $entry) {
                $say($entry['uuid'] . ' ' . json_encode($entry['wokenUp']));
            }
        } while ($report->hasMore());
    },
    // One failure after the other.
    'recover' => static function (array $uids) use ($runtime, $wakeUp, $say): void {
        foreach ($uids as $uid) {
            $recovery = $runtime->recoverFailure($uid, 'worker:a', new ProviderConnectionException('gone'), $wakeUp);
            $say($recovery->outcome());
        }
    },
    // The real transport, until so many messages are acknowledged. Its consumers deadlock among
    // each other, and retry.
    'consume' => static function (int $total) use ($account, $say, $runtime): void {
        $dbal = DriverManager::getConnection(['driver' => 'mysqli', 'charset' => 'utf8mb4'] + $account);
        $transport = new DoctrineTransport(new Connection(['table_name' => 'sys_messenger_messages', 'auto_setup' => false], $dbal), new PhpSerializer());
        $mysqli = mysqli_init();
        $mysqli->real_connect('localhost', $account['user'], $account['password'], $account['dbname'], 0, $account['unix_socket']);
        $claimed = static fn (): int => (int) $mysqli->query("SELECT COUNT(*) FROM tx_nrllm_agentrun WHERE status = 'running' AND claimed_by LIKE 'consumer:%'")->fetch_row()[0];
        while ($claimed() < $total) {
            try {
                foreach ($transport->get() as $envelope) {
                    $uuid = $envelope->getMessage()->runUuid;
                    $uid = (int) $mysqli->query("SELECT uid FROM tx_nrllm_agentrun WHERE uuid = '" . $mysqli->real_escape_string($uuid) . "'")->fetch_row()[0];
                    if ($runtime->claimQueued($uid, 'consumer:' . getmypid(), time() + 600)) {
                        $say($uuid);
                    }
                    $transport->ack($envelope);
                }
            } catch (Throwable $error) {
                if (!str_contains($error->getMessage(), 'eadlock') && !str_contains($error->getMessage(), 'Record has changed')) {
                    throw $error;
                }
            }
        }
    },
];
$runtime->status();
$say('ready');
fgets(STDIN);
$roles[$role]($argument);
