<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Reap;

use NrLlmRuntime\Typo3\Settings\ConnectionSettings;
use TYPO3\CMS\Core\Database\ConnectionPool;

/**
 * Tests whether nr_llm's codec can read the stored payloads of a run. A run that it cannot read
 * must neither go back on the queue, where no worker can run it and no reaper sees it, nor be
 * erased while the key may come back.
 *
 * Payloads are loaded one at a time, and only sealed ones: thousands of stale runs of a megabyte
 * each must not cost memory.
 */
final class PayloadCheck
{
    /** Column => the identifier that nr_llm seals it under. */
    private const COLUMNS = [
        'queued_request' => 'nrllm:agent-state:queued-request',
        'suspended_state' => 'nrllm:agent-state:suspended-state',
    ];
    private const SEALED = ['nrv1:', 'v2:'];
    /** Codes of nr_llm's AgentStateDecryptionException. */
    private const WORDS = [
        1785200001 => 'it was sealed with another key, or altered',
        1785200002 => 'it is malformed',
    ];

    /**
     * @param object|null $codec nr_llm's AgentStateCodec; releases without one store clear text
     */
    public function __construct(private readonly ConnectionPool $connections, private readonly ?object $codec = null) {}

    /**
     * @return string what cannot be read and why, '' where everything can. Never holds a part of a
     *     payload.
     */
    public function problem(int $runUid): string
    {
        $connection = $this->connections->getConnectionForTable(ConnectionSettings::RUN_TABLE);
        $table = $connection->quoteIdentifier(ConnectionSettings::RUN_TABLE);
        $starts = $connection->executeQuery(
            'SELECT SUBSTRING(queued_request, 1, 5) AS queued_request, SUBSTRING(suspended_state, 1, 5) AS suspended_state FROM ' . $table
                . ' WHERE uid = ?',
            [$runUid],
        )->fetchAssociative();
        if ($starts === false) {
            return '';
        }
        foreach (self::COLUMNS as $column => $identifier) {
            $start = (string)($starts[$column] ?? '');
            $sealed = false;
            foreach (self::SEALED as $mark) {
                $sealed = $sealed || str_starts_with($start, $mark);
            }
            if (!$sealed) {
                continue;
            }
            if ($this->codec === null || !method_exists($this->codec, 'decode')) {
                return $column . ' is sealed, and nr_llm\'s codec is not available';
            }
            $payload = $connection->executeQuery('SELECT ' . $column . ' FROM ' . $table . ' WHERE uid = ?', [$runUid])->fetchOne();
            try {
                if (is_string($payload) && $payload !== '') {
                    $this->codec->decode($payload, $identifier);
                }
            } catch (\Throwable $error) {
                // Not the message: what an exception of foreign code quotes is not known.
                return $column . ' cannot be decrypted: ' . (self::WORDS[$error->getCode()] ?? self::name($error));
            }
        }

        return '';
    }

    /**
     * Returns the queued runs whose payload cannot be read, the oldest first.
     *
     * @return list<array{uid: int, uuid: string, requeueCount: int, problem: string}>
     */
    public function unreadableQueued(int $limit): array
    {
        $connection = $this->connections->getConnectionForTable(ConnectionSettings::RUN_TABLE);
        $sealed = implode(' OR ', array_fill(0, count(self::SEALED), 'queued_request LIKE ?'));
        $rows = $connection->executeQuery(
            'SELECT uid, uuid, requeue_count FROM ' . $connection->quoteIdentifier(ConnectionSettings::RUN_TABLE)
                . " WHERE status = 'queued' AND (" . $sealed . ') ORDER BY crdate, uid',
            array_map(static fn(string $mark): string => $mark . '%', self::SEALED),
        )->fetchAllAssociative();
        $unreadable = [];
        foreach ($rows as $row) {
            $problem = count($unreadable) < $limit ? $this->problem((int)$row['uid']) : '';
            if ($problem !== '') {
                $unreadable[] = ['uid' => (int)$row['uid'], 'uuid' => (string)$row['uuid'],
                    'requeueCount' => (int)$row['requeue_count'], 'problem' => $problem];
            }
        }

        return $unreadable;
    }

    private static function name(\Throwable $error): string
    {
        $class = $error::class;

        return (strrpos($class, '\\') === false ? $class : substr($class, (int)strrpos($class, '\\') + 1)) . ' (code ' . $error->getCode()
            . ')';
    }
}
