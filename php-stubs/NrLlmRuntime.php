<?php

/**
 * The lease protocol of nr_llm's agent runs, on the table `tx_nrllm_agentrun` of a MySQL or MariaDB
 * server.
 *
 * An object holds a set of settings. Objects with equal settings share one connection per process,
 * which the first call opens. Every method may be called after a fork: the child opens its own
 * connection. The session is in autocommit mode and never takes part in a transaction of PHP's own
 * connection.
 *
 * Times are unix seconds, up to 4 294 967 295. With the option `clock` at `caller` (the default)
 * they are used as given. With `database`, a time is taken relative to this process's `time()` and
 * written by the database's clock.
 *
 * Parameters have the types of PHP's own expressions, such as `time() + 60` and `(int)
 * $row['uid']`: their ranges are in the text and checked at run time. What methods return has its
 * exact range.
 *
 * Not cloneable, not serializable.
 *
 * @phpstan-type DueRun array{
 *     uid: positive-int,
 *     uuid: string,
 *     requeueCount: int<0, max>,
 *     queuedSeconds: int<0, max>
 * }
 * @phpstan-type StrandedRun array{
 *     uid: positive-int,
 *     uuid: string,
 *     requeueCount: int<0, max>,
 *     queuedSeconds: int<0, max>,
 *     wokenUp: bool
 * }
 * @phpstan-type WakeUp array{
 *     table: string,
 *     queue: string,
 *     body: string,
 *     headers: string,
 *     placeholder: string
 * }
 * @phpstan-type ConnectionArray array{
 *     driver?: 'mysqli'|'pdo_mysql',
 *     host?: string,
 *     port?: int|numeric-string,
 *     unix_socket?: string,
 *     user?: string,
 *     password?: string,
 *     dbname?: string,
 *     charset?: string,
 *     url?: string,
 *     ssl_key?: string,
 *     ssl_cert?: string,
 *     ssl_ca?: string,
 *     driverOptions?: array<int|string, mixed>,
 *     ...
 * }
 * @phpstan-type Options array{
 *     table?: string,
 *     clock?: 'caller'|'database',
 *     connectTimeoutMs?: int,
 *     queryTimeoutMs?: int,
 *     maxRequeues?: int,
 *     backoffBaseMs?: int,
 *     backoffCapMs?: int,
 *     jitter?: float|int
 * }
 */
final class NrLlmRuntime
{
    /** The version of the extension, `phpversion('nrllm_runtime')`, and of the C library. */
    public const VERSION = '0.1.0';

    /** nr_llm's lease length in seconds. */
    public const LEASE_SECONDS = 900;

    /** The retry budget: how often a run is requeued before it is dead-lettered. */
    public const MAX_REQUEUES = 3;

    /** The backoff before the first retry, in milliseconds. It doubles with each requeue. */
    public const REQUEUE_BACKOFF_MS = 30000;

    /** The longest backoff, in milliseconds. */
    public const REQUEUE_BACKOFF_CAP_MS = 600000;

    /**
     * Checks and stores the settings. Sends nothing: the first call that needs the server connects.
     *
     * @param ConnectionArray|string $connection TYPO3's connection array, or a URL
     *     `mysql://user:pass@host:port/db?socket=…`. Empty strings count as absent. A `unix_socket`
     *     is used with an empty host or `localhost`, as PHP's drivers do. TLS is requested in the
     *     spelling of the named driver: `ssl_ca`, `ssl_cert`, `ssl_key` at the top level for
     *     mysqli, the `PDO::MYSQL_ATTR_SSL_*` keys in `driverOptions` for pdo_mysql. Other keys are
     *     ignored: the session has its own settings.
     * @param Options $options `table` (default `tx_nrllm_agentrun`, optionally with a schema),
     *     `clock` (`caller`), `connectTimeoutMs` (3000), `queryTimeoutMs` (5000), `maxRequeues`
     *     (3), `backoffBaseMs` (30000), `backoffCapMs` (600000), `jitter` (0.0, up to 1.0: the
     *     largest share of the backoff that is added to it)
     *
     * @throws NrLlmConfigurationException for a driver other than mysqli and pdo_mysql, an unknown
     *     or wrong option, a wrong setting, or a TLS configuration that is not supported
     */
    public function __construct(
        #[\SensitiveParameter]
        array|string $connection,
        array $options = [],
    ) {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Claims a queued run: it becomes running, owned by `$claimedBy` until `$leaseExpires`.
     *
     * @param int $runUid the run's uid, at least 1
     * @param string $claimedBy the owner, 1 to 64 characters, unique to this process (see {@see
     *     identity()})
     * @param int $leaseExpires when the lease expires, in unix seconds
     *
     * @return bool false when another worker has the run, it was cancelled, or it does not exist
     *
     * @throws ValueError for an argument out of its range
     * @throws NrLlmConfigurationException when the table or a column is missing
     * @throws NrLlmConnectionException when the server cannot be reached in time, or with `outcome
     *     unknown` when the reply was lost and could not be read back
     * @throws NrLlmQueryException when the server refuses the statement
     */
    public function claimQueued(int $runUid, string $claimedBy, int $leaseExpires): bool
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Renews the lease of a running run. A renewal that changes no value is still a renewal.
     *
     * @param int $runUid the run's uid, at least 1
     * @param string $claimedBy the owner, compared byte by byte, 1 to 64 characters
     * @param int $leaseExpires when the lease expires from now on, in unix seconds
     *
     * @return bool false when the lease is lost ({@see leaseState()} reports how)
     *
     * @throws ValueError for an argument out of its range
     * @throws NrLlmConfigurationException when the table or a column is missing
     * @throws NrLlmConnectionException when the server cannot be reached in time. The ownership is
     *     then unknown: it does not change because of the error
     * @throws NrLlmQueryException when the server refuses the statement
     */
    public function renewLease(int $runUid, string $claimedBy, int $leaseExpires): bool
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Writes the write fence: the effect of the tool that is about to run, or `''` when it is done.
     * Renews the lease in the same write.
     *
     * Only `non_idempotent_write` forbids another attempt.
     *
     * @param int $runUid the run's uid, at least 1
     * @param string $claimedBy the owner, compared byte by byte, 1 to 64 characters
     * @param string $effect `''`, `read_only`, `idempotent_write`, `non_idempotent_write`, or
     *     another effect of at most 32 characters
     * @param int $leaseExpires when the lease expires from now on, in unix seconds
     *
     * @return bool false when the lease is lost: the tool must not run
     *
     * @throws ValueError for an argument out of its range
     * @throws NrLlmConfigurationException when the table or a column (`pending_effect` before
     *     nr_llm 0.23) is missing
     * @throws NrLlmConnectionException when the server cannot be reached in time
     * @throws NrLlmQueryException when the server refuses the statement
     */
    public function markPendingEffect(
        int $runUid,
        string $claimedBy,
        string $effect,
        int $leaseExpires,
    ): bool {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Puts the caller's own run back on the queue. Checks neither the retry budget nor the write
     * fence: the caller has decided. {@see recoverFailure()} decides by itself.
     *
     * @param int $runUid the run's uid, at least 1
     * @param string $claimedBy the owner, compared byte by byte, 1 to 64 characters
     *
     * @return bool false when the lease is lost
     *
     * @throws ValueError for an argument out of its range
     * @throws NrLlmConfigurationException when the table or a column (`requeue_count` before nr_llm
     *     0.21) is missing
     * @throws NrLlmConnectionException when the server cannot be reached in time, or with `outcome
     *     unknown` when the reply was lost and could not be read back
     * @throws NrLlmQueryException when the server refuses the statement
     */
    public function requeue(int $runUid, string $claimedBy): bool
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Puts a stale run back on the queue. Checks neither the retry budget nor the write fence: the
     * caller has decided. {@see reap()} decides by itself.
     *
     * @param int $runUid the run's uid, at least 1
     * @param int $now the time at which the lease must have expired, in unix seconds. 0 matches no
     *     run
     *
     * @return bool false when the run is not stale, or no longer
     *
     * @throws ValueError for an argument out of its range
     * @throws NrLlmConfigurationException when the table or a column (`requeue_count` before nr_llm
     *     0.21) is missing
     * @throws NrLlmConnectionException when the server cannot be reached in time, or with `outcome
     *     unknown` when the reply was lost and could not be read back
     * @throws NrLlmQueryException when the server refuses the statement
     */
    public function requeueStale(int $runUid, int $now): bool
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Dead-letters a stale run: stores `$terminationReason` and clears both payloads and the lease.
     *
     * @param int $runUid the run's uid, at least 1
     * @param int $now the time at which the lease must have expired, in unix seconds. 0 matches no
     *     run
     * @param string $terminationReason at most 32 characters: `retries_exhausted`, `not_retryable`,
     *     …
     *
     * @return bool false when the run is not stale, or no longer
     *
     * @throws ValueError for an argument out of its range
     * @throws NrLlmConfigurationException when the table or a column is missing
     * @throws NrLlmConnectionException when the server cannot be reached in time, or with `outcome
     *     unknown` when the reply was lost and could not be read back
     * @throws NrLlmQueryException when the server refuses the statement
     */
    public function deadLetterStale(int $runUid, int $now, string $terminationReason): bool
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Returns what the row says about the caller's lease. Reads the committed row and does not wait
     * for row locks.
     *
     * For reports and logs. A write such as {@see renewLease()} decides by its own guard.
     *
     * @param int $runUid the run's uid, at least 1
     * @param string $claimedBy the owner, compared byte by byte, 1 to 64 characters
     *
     * @return 'held'|'taken'|'requeued'|'waiting'|'cancelled'|'completed'|'failed'|'gone'|'other'
     *     `held` also when the lease has expired and no other worker has the run; `taken`: running
     *     under another owner or none
     *
     * @throws ValueError for an argument out of its range
     * @throws NrLlmConfigurationException when the table or a column is missing
     * @throws NrLlmConnectionException when the server cannot be reached in time
     * @throws NrLlmQueryException when the server refuses the statement
     */
    public function leaseState(int $runUid, string $claimedBy): string
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Renews the lease once, then keeps it renewed by the heartbeat thread until the result is
     * released or destroyed.
     *
     * Keep the result in a variable: an unused result is destroyed at once, and the heartbeat ends.
     *
     * @param int $runUid the run's uid, at least 1
     * @param string $claimedBy the owner, compared byte by byte, 1 to 64 characters
     * @param int $leaseSeconds how long each heartbeat extends the lease, in seconds, at least 2
     * @param array{
     *     everyMs?: int,
     *     maxSilentSeconds?: int,
     *     maxSeconds?: int,
     *     interruptOnLoss?: bool
     * } $options `everyMs`: the interval of the heartbeats (default: a third of the lease; 100 to
     *     half the lease); `maxSilentSeconds`: renewal pauses after so long without a {@see
     *     NrLlmLease::step()} (3600); `maxSeconds`: renewal ends for good after so long (86400);
     *     `interruptOnLoss`: throw into the running PHP code, once, when the lease is lost or the
     *     run is cancelled (false)
     *
     * @throws ValueError for an argument or option out of its range, or an unknown option
     * @throws TypeError for an option of the wrong type
     * @throws NrLlmLeaseLostException when `$claimedBy` does not own the run
     * @throws NrLlmRunCancelledException when the run was cancelled
     * @throws NrLlmConfigurationException when the table or a column is missing
     * @throws NrLlmConnectionException when the server cannot be reached in time
     * @throws NrLlmQueryException when the server refuses the statement
     */
    public function keepLease(
        int $runUid,
        string $claimedBy,
        int $leaseSeconds = self::LEASE_SECONDS,
        array $options = [],
    ): NrLlmLease {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Classifies a throwable by its type. Never autoloads, never throws, sends nothing.
     *
     * @param Throwable $error the error that ended the attempt
     */
    public static function classifyFailure(Throwable $error): NrLlmFailure
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Recovers the caller's run after a failure, in one guarded transaction: requeues it with
     * backoff when another attempt may help and is allowed, else dead-letters it.
     *
     * @param int $runUid the run's uid, at least 1
     * @param string $claimedBy the owner, compared byte by byte, 1 to 64 characters
     * @param Throwable $error the error that ended the attempt
     * @param WakeUp|null $wakeUp the wake-up, written with the requeue. Without it the caller
     *     notifies a worker after {@see NrLlmRecovery::delayMs()}
     *
     * @throws ValueError for an argument out of its range
     * @throws NrLlmConfigurationException when a table or column is missing, or `$wakeUp` is wrong
     * @throws NrLlmConnectionException when the server cannot be reached in time, or with `outcome
     *     unknown` when the reply was lost and could not be read back
     * @throws NrLlmQueryException when the server refuses a statement
     */
    public function recoverFailure(
        int $runUid,
        string $claimedBy,
        Throwable $error,
        ?array $wakeUp = null,
    ): NrLlmRecovery {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Gives the caller's run back to the queue without spending its retry budget: for a worker that
     * must stop, as in a deploy. The run is due at once; `requeue_count` is unchanged.
     *
     * @param int $runUid the run's uid, at least 1
     * @param string $claimedBy the owner, compared byte by byte, 1 to 64 characters
     * @param WakeUp|null $wakeUp the wake-up, written in the same transaction and available at
     *     once. Without it the caller notifies a worker
     *
     * @return bool false when the lease is lost, the write fence forbids another attempt, or no
     *     request is stored. Nothing was written then
     *
     * @throws ValueError for an argument out of its range
     * @throws NrLlmConfigurationException when a table or column is missing, or `$wakeUp` is wrong
     * @throws NrLlmConnectionException when the server cannot be reached in time, or with `outcome
     *     unknown` when the reply was lost and could not be read back
     * @throws NrLlmQueryException when the server refuses a statement
     */
    public function handBack(int $runUid, string $claimedBy, ?array $wakeUp = null): bool
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Reaps stale runs, oldest lease first: requeues them, or dead-letters them when the write
     * fence, a missing request or the retry budget forbids another attempt. Never waits for a live
     * worker and never blocks one. Several reapers may run at once and share the work.
     *
     * @param int $limit at least 1: the maximum number of runs handled (requeued and dead-lettered)
     * @param int|null $now the time at which a lease must have expired, in unix seconds. null: now.
     *     0 matches no run
     * @param array{
     *     dryRun?: bool,
     *     only?: list<int>,
     *     except?: list<int>,
     *     wakeUp?: WakeUp|null
     * } $options `dryRun`: report and change nothing; `only`: handle no other uid; `except`: leave
     *     these uids alone; `wakeUp`: the wake-up, written with each requeue
     *
     * @throws ValueError for an argument or option out of its range, or an unknown option
     * @throws TypeError for an option of the wrong type
     * @throws NrLlmConfigurationException when a table or column is missing, or `wakeUp` is wrong
     * @throws NrLlmConnectionException when the server cannot be reached in time
     * @throws NrLlmQueryException when the server refuses a statement
     */
    public function reap(int $limit = 50, ?int $now = null, array $options = []): NrLlmReapReport
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Ends a run as failed (`provider_failed`) when its wake-up could not be sent and no worker has
     * claimed it since.
     *
     * @param int $runUid the run's uid, at least 1
     * @param int $requeueCount the count that the requeue wrote; 0 for a first dispatch
     * @param Throwable $error why the wake-up could not be sent. Its class is stored
     *
     * @return bool false when a worker has claimed the run, or it has changed otherwise
     *
     * @throws ValueError for an argument out of its range
     * @throws NrLlmConfigurationException when the table or a column is missing
     * @throws NrLlmConnectionException when the server cannot be reached in time, or with `outcome
     *     unknown` when the reply was lost and could not be read back
     * @throws NrLlmQueryException when the server refuses the statement
     */
    public function failUndispatched(int $runUid, int $requeueCount, Throwable $error): bool
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Sweeps: returns stranded runs, which are queued and have been due for longer than
     * `$olderThanSeconds`, oldest first, and marks them. A run is returned at most once within that
     * time, also to several callers at once. With `$wakeUp`, a run whose uuid does not fit into the
     * message is left to a call without it.
     *
     * @param int $olderThanSeconds how long after its backoff a run counts as stranded
     * @param int $limit at least 1: the maximum number of runs
     * @param int|null $now the time to evaluate and mark by, in unix seconds. null: now
     * @param WakeUp|null $wakeUp the wake-up, written in the same transaction. Without it the
     *     caller notifies the workers
     *
     * @return list<StrandedRun>
     *
     * @throws ValueError for an argument out of its range
     * @throws NrLlmConfigurationException when a table or column is missing, or `$wakeUp` is wrong
     * @throws NrLlmConnectionException when the server cannot be reached in time
     * @throws NrLlmQueryException when the server refuses a statement
     */
    public function strandedRuns(
        int $olderThanSeconds,
        int $limit = 50,
        ?int $now = null,
        ?array $wakeUp = null,
    ): array {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Returns queued runs with a stored request whose backoff is over, oldest first, for workers
     * without a message bus. Claims nothing: {@see claimQueued()} decides.
     *
     * @param int $limit at least 1: the maximum number of runs
     * @param int|null $now the time to evaluate by, in unix seconds. null: now
     *
     * @return list<DueRun>
     *
     * @throws ValueError for an argument out of its range
     * @throws NrLlmConfigurationException when the table or a column is missing
     * @throws NrLlmConnectionException when the server cannot be reached in time
     * @throws NrLlmQueryException when the server refuses the statement
     */
    public function dueRuns(int $limit = 10, ?int $now = null): array
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Cancels a run that is not terminal: keeps its totals, clears both payloads and the lease.
     * Does not authorise: the caller does.
     *
     * @param string $uuid the run's uuid, at most 36 characters
     *
     * @return bool false when the run is terminal or does not exist
     *
     * @throws ValueError for an argument out of its range
     * @throws NrLlmConfigurationException when the table or a column is missing
     * @throws NrLlmConnectionException when the server cannot be reached in time, or with `outcome
     *     unknown` when the reply was lost and could not be read back
     * @throws NrLlmQueryException when the server refuses the statement
     */
    public function cancelRun(string $uuid): bool
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Returns the state of the table and of the connection, for monitoring.
     *
     * @param int|null $now the time to evaluate by, in unix seconds. null: now
     * @param int|null $since count only runs created since then, in unix seconds. null: all
     *
     * @return array{
     *     counts: array<string, int>,
     *     deadLetters: array<string, int>,
     *     expiredLeases: int,
     *     unleasedRunning: int,
     *     oldestLease: int|null,
     *     oldestQueuedSeconds: int|null,
     *     stranded: int,
     *     clockSkewMs: int,
     *     leaseKey: bool,
     *     server: string,
     *     isolation: string,
     *     binlog: array{
     *         format: string|null,
     *         rowImage: string|null,
     *         bytesPerHeartbeat: int,
     *         remedy: string|null
     *     },
     *     settings: array<string, mixed>
     * } `counts` by status, `deadLetters` by termination reason; `leaseKey`: whether a key over
     *     (status, lease_expires) exists; `settings` never holds the password; `clockSkewMs`: how
     *     far the server's clock is ahead of this host's; `binlog`: what a heartbeat costs the
     *     binary log (estimated), and what to change where that is much
     *
     * @throws ValueError for an argument out of its range
     * @throws NrLlmConfigurationException when the table or a column is missing
     * @throws NrLlmConnectionException when the server cannot be reached in time
     * @throws NrLlmQueryException when the server refuses a statement
     */
    public function status(?int $now = null, ?int $since = null): array
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Returns an identity for `$claimedBy` that no other process has,
     * `<segment>:<host>:<pid>:<nonce>`, at most 64 bytes. It is the same for a segment within a
     * process, and another after a fork.
     *
     * @param string $segment what the process does, 1 to 24 bytes: `worker`, for example
     *
     * @return non-empty-string
     *
     * @throws ValueError for a segment that is empty, too long, or cannot be stored
     */
    public static function identity(string $segment): string
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Returns the backoff before the next attempt of a run that has been requeued `$requeueCount`
     * times, in milliseconds, without jitter: min(30 000 × 2^n, 600 000), exact for any n.
     *
     * @param int $requeueCount how often the run has been requeued
     *
     * @return int<0, max>
     *
     * @throws ValueError for a negative count
     */
    public static function backoffMs(int $requeueCount): int
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /**
     * Closes the connection that objects with these settings share. The next call opens a new one.
     * Kept leases have their own connection and stay renewed.
     */
    public function close(): void
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }

    /** @internal not cloneable */
    private function __clone()
    {
        throw new Error('This is a stub: the extension nrllm_runtime is not loaded.');
    }
}
