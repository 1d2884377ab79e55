<?php

declare(strict_types=1);

use NrLlmRuntime\Ffi\Call;
use NrLlmRuntime\Ffi\Caller;
use NrLlmRuntime\Ffi\Facts;
use NrLlmRuntime\Ffi\Json;
use NrLlmRuntime\Ffi\Lease;
use NrLlmRuntime\Ffi\Settings;
use NrLlmRuntime\Ffi\Values;

require_once __DIR__ . '/../autoload.php';

// The extension declares the same class; then this file has nothing to do.
if (!class_exists(NrLlmRuntime::class, false)) {
    /**
     * The lease protocol of nr_llm's agent runs, on the table `tx_nrllm_agentrun` of a MySQL or MariaDB server.
     *
     * An object is a set of settings: objects of equal settings share one connection per process, opened at the first call that needs it.
     * Every method may be called after a fork; the child opens a connection of its own. The session is in autocommit mode and never takes
     * part in a transaction of PHP's own connection.
     *
     * Times are unix seconds. With the option `clock` at `caller` (the default) they are used as given; with `database` a time is taken
     * relative to this process's `time()` and written by the database's clock.
     *
     * Not cloneable, not serializable.
     *
     * @phpstan-type DueRun array{uid: int, uuid: string, requeueCount: int, queuedSeconds: int}
     * @phpstan-type StrandedRun array{uid: int, uuid: string, requeueCount: int, queuedSeconds: int, wokenUp: bool}
     * @phpstan-type WakeUp array{table: non-empty-string, queue: non-empty-string, body: non-empty-string, headers: string, placeholder: non-empty-string}
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
     *     table?: non-empty-string,
     *     clock?: 'caller'|'database',
     *     connectTimeoutMs?: positive-int,
     *     queryTimeoutMs?: positive-int,
     *     maxRequeues?: int<0, max>,
     *     backoffBaseMs?: int<0, max>,
     *     backoffCapMs?: int<0, max>,
     *     jitter?: float
     * }
     */
    final readonly class NrLlmRuntime
    {
        /** The version of the module: that of the crate, of `phpversion('nrllm_runtime')` and of the C library. */
        public const VERSION = '0.1.0';

        /** nr_llm's lease length in seconds. */
        public const LEASE_SECONDS = 900;

        /** How often a run is requeued before it is dead-lettered, whatever requeued it. */
        public const MAX_REQUEUES = 3;

        /** The backoff before the first repetition, in milliseconds; it doubles with each requeue. */
        public const REQUEUE_BACKOFF_MS = 30000;

        /** The longest backoff, in milliseconds. */
        public const REQUEUE_BACKOFF_CAP_MS = 600000;

        /**
         * Takes the settings and checks them. Nothing is sent: the connection is opened by the first call that needs it.
         *
         * @param ConnectionArray|non-empty-string $connection TYPO3's connection array, or a URL `mysql://user:pass@host:port/db?socket=…`.
         *     Empty strings count as absent. A `unix_socket` is used with an empty host or `localhost`, as PHP's drivers do. TLS is asked for
         *     in the spelling of the driver that is named: `ssl_ca` and its kin at the top level for mysqli, the `PDO::MYSQL_ATTR_SSL_*` keys in
         *     `driverOptions` for pdo_mysql. Other keys are ignored: the session has its own settings.
         * @param Options $options `table` (default `tx_nrllm_agentrun`, optionally with a schema), `clock` (`caller`), `connectTimeoutMs` (3000),
         *     `queryTimeoutMs` (5000), `maxRequeues` (3), `backoffBaseMs` (30000), `backoffCapMs` (600000), `jitter` (0.0, up to 1.0: the share
         *     of the backoff that is added at most)
         *
         * @throws NrLlmConfigurationException for a driver other than mysqli and pdo_mysql, an unknown or wrong option, a wrong setting, or TLS
         *     that cannot be had as asked for
         */
        public function __construct(
            #[\SensitiveParameter]
            mixed $connection,
            array $options = [],
        ) {
            if (!is_array($connection) && !is_string($connection)) {
                throw Caller::blame(new TypeError('NrLlmRuntime::__construct(): Argument #1 ($connection) must be of type array|string, ' . Json::given($connection) . ' given'));
            }
            Values::set($this, new Settings($connection, $options));
        }

        /**
         * Takes a queued run: it becomes running, owned by `$claimedBy` until `$leaseExpires`.
         *
         * @param positive-int $runUid the run's uid
         * @param non-empty-string $claimedBy who takes it, 1 to 64 characters, unique to this process (see {@see identity()})
         * @param int<1, 4294967295> $leaseExpires until when, in unix seconds
         *
         * @return bool false when somebody else has it, it was cancelled, or it does not exist
         *
         * @throws ValueError for an argument out of its range
         * @throws NrLlmConfigurationException when the table or a column is missing
         * @throws NrLlmConnectionException when the server cannot be reached in time; `outcome unknown` when the reply was lost for good
         * @throws NrLlmQueryException when the server refuses the statement
         */
        public function claimQueued(int $runUid, string $claimedBy, int $leaseExpires): bool
        {
            return Call::flag('nrllm_claim_queued', Values::of($this)->handle(), $runUid, $claimedBy, strlen($claimedBy), $leaseExpires);
        }

        /**
         * Extends the lease of a running run. A renewal that changes nothing is still a renewal.
         *
         * @param positive-int $runUid the run's uid
         * @param non-empty-string $claimedBy the owner, compared byte by byte
         * @param int<1, 4294967295> $leaseExpires the new end of the lease, in unix seconds
         *
         * @return bool false when the lease is lost ({@see leaseState()} says how)
         *
         * @throws ValueError for an argument out of its range
         * @throws NrLlmConfigurationException when the table or a column is missing
         * @throws NrLlmConnectionException when the server cannot be reached in time: says nothing about the ownership
         * @throws NrLlmQueryException when the server refuses the statement
         */
        public function renewLease(int $runUid, string $claimedBy, int $leaseExpires): bool
        {
            return Call::flag('nrllm_renew_lease', Values::of($this)->handle(), $runUid, $claimedBy, strlen($claimedBy), $leaseExpires);
        }

        /**
         * Writes the fence: the effect of the tool about to be executed, or `''` when it is done. Renews the lease in the same write.
         *
         * Only `non_idempotent_write` keeps a run from another attempt.
         *
         * @param positive-int $runUid the run's uid
         * @param non-empty-string $claimedBy the owner, compared byte by byte
         * @param string $effect `''`, `read_only`, `idempotent_write`, `non_idempotent_write`, or another of at most 32 characters
         * @param int<1, 4294967295> $leaseExpires the new end of the lease, in unix seconds
         *
         * @return bool false when the lease is lost: the tool must not be executed
         *
         * @throws ValueError for an argument out of its range
         * @throws NrLlmConfigurationException when the table or a column (`pending_effect` before nr_llm 0.23) is missing
         * @throws NrLlmConnectionException when the server cannot be reached in time
         * @throws NrLlmQueryException when the server refuses the statement
         */
        public function markPendingEffect(int $runUid, string $claimedBy, string $effect, int $leaseExpires): bool
        {
            return Call::flag('nrllm_mark_pending_effect', Values::of($this)->handle(), $runUid, $claimedBy, strlen($claimedBy), $effect, strlen($effect), $leaseExpires);
        }

        /**
         * Puts the caller's own run back on the queue. Neither the budget nor the fence is asked: the caller has decided. To have it decided, call
         * {@see recoverFailure()}.
         *
         * @param positive-int $runUid the run's uid
         * @param non-empty-string $claimedBy the owner, compared byte by byte
         *
         * @return bool false when the lease is lost
         *
         * @throws ValueError for an argument out of its range
         * @throws NrLlmConfigurationException when the table or a column (`requeue_count` before nr_llm 0.21) is missing
         * @throws NrLlmConnectionException when the server cannot be reached in time; `outcome unknown` when the reply was lost for good
         * @throws NrLlmQueryException when the server refuses the statement
         */
        public function requeue(int $runUid, string $claimedBy): bool
        {
            return Call::flag('nrllm_requeue', Values::of($this)->handle(), $runUid, $claimedBy, strlen($claimedBy));
        }

        /**
         * Puts a stale run back on the queue. Neither the budget nor the fence is asked: the caller has decided. To have it decided, call
         * {@see reap()}.
         *
         * @param positive-int $runUid the run's uid
         * @param int<0, 4294967295> $now the time by which the lease has run out, in unix seconds; 0 handles nothing
         *
         * @return bool false when the run is not stale (any more)
         *
         * @throws ValueError for an argument out of its range
         * @throws NrLlmConfigurationException when the table or a column (`requeue_count` before nr_llm 0.21) is missing
         * @throws NrLlmConnectionException when the server cannot be reached in time; `outcome unknown` when the reply was lost for good
         * @throws NrLlmQueryException when the server refuses the statement
         */
        public function requeueStale(int $runUid, int $now): bool
        {
            return Call::flag('nrllm_requeue_stale', Values::of($this)->handle(), $runUid, $now);
        }

        /**
         * Ends a stale run as failed: `$terminationReason` is stored, both payloads and the lease are cleared.
         *
         * @param positive-int $runUid the run's uid
         * @param int<0, 4294967295> $now the time by which the lease has run out, in unix seconds; 0 handles nothing
         * @param string $terminationReason at most 32 characters: `retries_exhausted`, `not_retryable`, …
         *
         * @return bool false when the run is not stale (any more)
         *
         * @throws ValueError for an argument out of its range
         * @throws NrLlmConfigurationException when the table or a column is missing
         * @throws NrLlmConnectionException when the server cannot be reached in time; `outcome unknown` when the reply was lost for good
         * @throws NrLlmQueryException when the server refuses the statement
         */
        public function deadLetterStale(int $runUid, int $now, string $terminationReason): bool
        {
            return Call::flag('nrllm_dead_letter_stale', Values::of($this)->handle(), $runUid, $now, $terminationReason, strlen($terminationReason));
        }

        /**
         * What the row says about the caller's lease. It reads the committed row and does not queue behind a row lock.
         *
         * For telling and logging: a write ({@see renewLease()}) decides by its own guard.
         *
         * @param positive-int $runUid the run's uid
         * @param non-empty-string $claimedBy the owner, compared byte by byte
         *
         * @return 'held'|'taken'|'requeued'|'waiting'|'cancelled'|'completed'|'failed'|'gone'|'other' `held` also when the lease has expired but
         *     nobody took it; `taken`: running under another owner or none
         *
         * @throws ValueError for an argument out of its range
         * @throws NrLlmConfigurationException when the table or a column is missing
         * @throws NrLlmConnectionException when the server cannot be reached in time
         * @throws NrLlmQueryException when the server refuses the statement
         */
        public function leaseState(int $runUid, string $claimedBy): string
        {
            return (string) Call::text('nrllm_lease_state', Values::of($this)->handle(), $runUid, $claimedBy, strlen($claimedBy));
        }

        /**
         * Renews the lease once, then keeps renewing it from a thread of its own until the result is released or destroyed.
         *
         * Keep the result in a variable: an unused one is destroyed, and with it the heartbeat, at once.
         *
         * @param positive-int $runUid the run's uid
         * @param non-empty-string $claimedBy the owner, compared byte by byte
         * @param int<2, max> $leaseSeconds how long each beat extends the lease, in seconds
         * @param array{everyMs?: positive-int, maxSilentSeconds?: positive-int, maxSeconds?: positive-int, interruptOnLoss?: bool} $options
         *     `everyMs`: between two beats (default: a third of the lease; 100 to half the lease); `maxSilentSeconds`: without a
         *     {@see NrLlmLease::step()} for so long the beats stop (3600); `maxSeconds`: after so long the beats stop for good (86400);
         *     `interruptOnLoss`: throw into the running PHP code, once, when the lease is lost or the run cancelled (false)
         *
         * @throws ValueError for an argument or option out of its range, or an unknown option
         * @throws TypeError for an option of the wrong type
         * @throws NrLlmLeaseLostException when `$claimedBy` does not own the run
         * @throws NrLlmRunCancelledException when the run was cancelled
         * @throws NrLlmConfigurationException when the table or a column is missing
         * @throws NrLlmConnectionException when the server cannot be reached in time
         * @throws NrLlmQueryException when the server refuses the statement
         */
        public function keepLease(int $runUid, string $claimedBy, int $leaseSeconds = self::LEASE_SECONDS, array $options = []): NrLlmLease
        {
            $options = Json::encode($options);

            return Values::make(NrLlmLease::class, new Lease($runUid, $claimedBy, Call::handle('NrllmKeptLease', 'nrllm_keep_lease', Values::of($this)->handle(), $runUid, $claimedBy,
                strlen($claimedBy), $leaseSeconds, $options, strlen($options))));
        }

        /**
         * Which class of failure a throwable belongs to, by its type. Never autoloads, never throws, sends nothing.
         *
         * @param Throwable $error the error that ended the attempt
         */
        public static function classifyFailure(Throwable $error): NrLlmFailure
        {
            return Values::make(NrLlmFailure::class, Call::json('nrllm_classify_failure', ...Facts::of($error)));
        }

        /**
         * Settles the caller's run after a failure, in one guarded transaction: requeued with backoff when another attempt may help and is
         * allowed, else dead-lettered.
         *
         * @param positive-int $runUid the run's uid
         * @param non-empty-string $claimedBy the owner, compared byte by byte
         * @param Throwable $error the error that ended the attempt
         * @param WakeUp|null $wakeUp the message that wakes a worker, written with the requeue; without it the caller wakes one after
         *     {@see NrLlmRecovery::delayMs()}
         *
         * @throws ValueError for an argument out of its range
         * @throws NrLlmConfigurationException when a table or column is missing, or `$wakeUp` is wrong
         * @throws NrLlmConnectionException when the server cannot be reached in time; `outcome unknown` when the reply was lost for good
         * @throws NrLlmQueryException when the server refuses a statement
         */
        public function recoverFailure(int $runUid, string $claimedBy, Throwable $error, ?array $wakeUp = null): NrLlmRecovery
        {
            $wakeUp = $wakeUp === null ? null : Json::encode($wakeUp);

            return Values::make(NrLlmRecovery::class, Call::json('nrllm_recover_failure', Values::of($this)->handle(), $runUid, $claimedBy, strlen($claimedBy),
                ...[...Facts::of($error), $wakeUp, strlen((string) $wakeUp)]));
        }

        /**
         * Gives the caller's run back to the queue without spending its retry budget: for a worker that must stop, as in a deploy. The run is
         * due at once; `requeue_count` is unchanged.
         *
         * @param positive-int $runUid the run's uid
         * @param non-empty-string $claimedBy the owner, compared byte by byte
         * @param WakeUp|null $wakeUp the message that wakes a worker, written in the same transaction and available at once; without it the
         *     caller wakes one
         *
         * @return bool false when the lease is lost, the write fence forbids another attempt, or no request is stored; nothing was written then
         *
         * @throws ValueError for an argument out of its range
         * @throws NrLlmConfigurationException when a table or column is missing, or `$wakeUp` is wrong
         * @throws NrLlmConnectionException when the server cannot be reached in time; `outcome unknown` when the reply was lost for good
         * @throws NrLlmQueryException when the server refuses a statement
         */
        public function handBack(int $runUid, string $claimedBy, ?array $wakeUp = null): bool
        {
            $wakeUp = $wakeUp === null ? null : Json::encode($wakeUp);

            return Call::flag('nrllm_hand_back', Values::of($this)->handle(), $runUid, $claimedBy, strlen($claimedBy), $wakeUp, strlen((string) $wakeUp));
        }

        /**
         * Settles stale runs, oldest lease first: requeues them or, when the fence, a missing request or the budget forbids it, dead-letters them.
         * Never waits for, and never blocks, a live worker; several may run at once and share the work.
         *
         * @param positive-int $limit how many runs are handled (requeued and dead-lettered together) at most
         * @param int<0, 4294967295>|null $now the time by which a lease has run out, in unix seconds; null: now; 0 handles nothing
         * @param array{dryRun?: bool, only?: list<positive-int>, except?: list<positive-int>, wakeUp?: WakeUp|null} $options `dryRun`: report and
         *     change nothing; `only`: touch no other uid; `except`: leave these uids alone; `wakeUp`: the message that wakes a worker, written with
         *     each requeue
         *
         * @throws ValueError for an argument or option out of its range, or an unknown option
         * @throws TypeError for an option of the wrong type
         * @throws NrLlmConfigurationException when a table or column is missing, or `wakeUp` is wrong
         * @throws NrLlmConnectionException when the server cannot be reached in time
         * @throws NrLlmQueryException when the server refuses a statement
         */
        public function reap(int $limit = 50, ?int $now = null, array $options = []): NrLlmReapReport
        {
            $options = Json::encode($options);

            return Values::make(NrLlmReapReport::class, Call::json('nrllm_reap', Values::of($this)->handle(), $limit, Call::optional($now), $options, strlen($options)));
        }

        /**
         * Ends a run as failed (`provider_failed`) whose wake-up could not be sent, if no worker has taken it meanwhile.
         *
         * @param positive-int $runUid the run's uid
         * @param int<0, max> $requeueCount the count that the requeue gave it; 0 for a first dispatch
         * @param Throwable $error why the wake-up could not be sent; its class is stored
         *
         * @return bool false when the run has moved on: a worker has it
         *
         * @throws ValueError for an argument out of its range
         * @throws NrLlmConfigurationException when the table or a column is missing
         * @throws NrLlmConnectionException when the server cannot be reached in time; `outcome unknown` when the reply was lost for good
         * @throws NrLlmQueryException when the server refuses the statement
         */
        public function failUndispatched(int $runUid, int $requeueCount, Throwable $error): bool
        {
            $class = $error::class;

            return Call::flag('nrllm_fail_undispatched', Values::of($this)->handle(), $runUid, $requeueCount, $class, strlen($class));
        }

        /**
         * Claims the waking of queued runs that nothing woke: due for longer than `$olderThanSeconds`, oldest first. Each is returned at most once
         * within that time, also to several callers at once. With `$wakeUp`, a run whose uuid does not fit into the message is left to a call without.
         *
         * @param int<0, 4294967295> $olderThanSeconds how long after its backoff a run counts as stranded
         * @param positive-int $limit how many at most
         * @param int<0, 4294967295>|null $now the time that judges and marks, in unix seconds; null: now
         * @param WakeUp|null $wakeUp the message that wakes a worker, written in the same transaction; without it the caller wakes them
         *
         * @return list<StrandedRun>
         *
         * @throws ValueError for an argument out of its range
         * @throws NrLlmConfigurationException when a table or column is missing, or `$wakeUp` is wrong
         * @throws NrLlmConnectionException when the server cannot be reached in time
         * @throws NrLlmQueryException when the server refuses a statement
         */
        public function strandedRuns(int $olderThanSeconds, int $limit = 50, ?int $now = null, ?array $wakeUp = null): array
        {
            $wakeUp = $wakeUp === null ? null : Json::encode($wakeUp);

            return Call::json('nrllm_stranded_runs', Values::of($this)->handle(), $olderThanSeconds, $limit, Call::optional($now), $wakeUp, strlen((string) $wakeUp));
        }

        /**
         * Queued runs with a stored request whose backoff is over, oldest first, for a worker without a message bus. Takes nothing: the claim decides.
         *
         * @param positive-int $limit how many at most
         * @param int<0, 4294967295>|null $now the time to judge by, in unix seconds; null: now
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
            return Call::json('nrllm_due_runs', Values::of($this)->handle(), $limit, Call::optional($now));
        }

        /**
         * Cancels a run that is not finished: totals are kept, both payloads and the lease are cleared. Authorises nobody: that is the caller's part.
         *
         * @param non-empty-string $uuid the run's uuid, at most 36 characters
         *
         * @return bool false when it is finished or does not exist
         *
         * @throws ValueError for an argument out of its range
         * @throws NrLlmConfigurationException when the table or a column is missing
         * @throws NrLlmConnectionException when the server cannot be reached in time; `outcome unknown` when the reply was lost for good
         * @throws NrLlmQueryException when the server refuses the statement
         */
        public function cancelRun(string $uuid): bool
        {
            return Call::flag('nrllm_cancel_run', Values::of($this)->handle(), $uuid, strlen($uuid));
        }

        /**
         * What monitoring wants to know about the table and the connection.
         *
         * @param int<0, 4294967295>|null $now the time to judge by, in unix seconds; null: now
         * @param int<0, 4294967295>|null $since count only runs created since then, in unix seconds; null: all
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
         *     settings: array<string, mixed>
         * } `counts` by status, `deadLetters` by termination reason; `leaseKey`: whether a key over (status, lease_expires) exists; `settings`
         *     never holds the password; `clockSkewMs`: how far the server's clock is ahead of this host's
         *
         * @throws ValueError for an argument out of its range
         * @throws NrLlmConfigurationException when the table or a column is missing
         * @throws NrLlmConnectionException when the server cannot be reached in time
         * @throws NrLlmQueryException when the server refuses a statement
         */
        public function status(?int $now = null, ?int $since = null): array
        {
            return Call::json('nrllm_status', Values::of($this)->handle(), Call::optional($now), Call::optional($since));
        }

        /**
         * An identity for `$claimedBy` that no other process has: `<segment>:<host>:<pid>:<nonce>`, at most 64 bytes. The same for a segment within a
         * process, another after a fork.
         *
         * @param non-empty-string $segment what the process does, 1 to 24 bytes: `worker`, for example
         *
         * @return non-empty-string
         *
         * @throws ValueError for a segment that is empty, too long, or cannot be stored
         */
        public static function identity(string $segment): string
        {
            return (string) Call::text('nrllm_identity', $segment, strlen($segment));
        }

        /**
         * The backoff before the next attempt of a run that was requeued `$requeueCount` times before, in milliseconds, without jitter:
         * min(30 000 × 2^n, 600 000), exact for any n.
         *
         * @param int<0, max> $requeueCount how often it was requeued before
         *
         * @return int<0, max>
         *
         * @throws ValueError for a negative count
         */
        public static function backoffMs(int $requeueCount): int
        {
            return Call::integer('nrllm_backoff_ms', $requeueCount);
        }

        /**
         * Closes the connection that objects of these settings share. The next call opens a new one. Kept leases have a connection of their own
         * and go on.
         */
        public function close(): void
        {
            Call::action('nrllm_runtime_close', Values::of($this)->handle());
        }

        /** @internal not cloneable */
        private function __clone()
        {
        }

        /** @internal not serializable */
        public function __serialize(): array
        {
            throw Caller::blame(new Exception("Serialization of 'NrLlmRuntime' is not allowed"));
        }

        /** @internal not serializable */
        public function __unserialize(array $data): void
        {
            throw Caller::blame(new Exception("Unserialization of 'NrLlmRuntime' is not allowed"));
        }
    }
}
