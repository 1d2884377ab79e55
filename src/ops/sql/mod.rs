//! Every predicate and assignment of the protocol, once, and the columns that they need.
//!
//! Predicates are conditions over a row of the run table, assignments are lists for `SET`. An
//! operation combines them into its statement; `tests/sql/` shows the result.

mod clock;
mod fragment;

pub use clock::{Context, unix_time, unix_time_ms};
use fragment::numbers;
pub(in crate::ops) use fragment::{Sql, bind, number, places, sql};

use std::sync::Arc;

use mysql_async::Value;

use crate::db::Session;
use crate::db::schema::TableSchema;
use crate::domain::holder::Holder;
use crate::domain::status::{Reason, Status};
use crate::error::Result;

/// The columns of [`held_by`] and [`renewal`].
pub(super) const LEASE_COLUMNS: &[&str] =
    &["uid", "status", "claimed_by", "lease_expires", "tstamp"];

/// The columns of [`requeue`] and of its guards.
pub(super) const REQUEUE_COLUMNS: &[&str] =
    &["uid", "status", "claimed_by", "lease_expires", "requeue_count", "pending_effect", "tstamp"];

/// The columns of [`end`] and of its guards.
pub(super) const END_COLUMNS: &[&str] = &[
    "uid",
    "status",
    "termination_reason",
    "error_class",
    "suspended_state",
    "queued_request",
    "claimed_by",
    "lease_expires",
    "finished_at",
    "tstamp",
];

/// The columns that determine when a queued run is due.
pub(super) const DUE_COLUMNS: &[&str] =
    &["uid", "uuid", "status", "queued_request", "requeue_count", "tstamp", "crdate"];

/// From 1 000 literals on, `MariaDB` turns an `IN` list into a derived table (rule 6).
pub(super) const IN_LIST: usize = 900;

macro_rules! owned_by {
    () => {
        "CAST(CONVERT(claimed_by USING utf8mb4)AS BINARY)=CAST(? AS BINARY)"
    };
}

macro_rules! has_request {
    ($payload:literal) => {
        concat!("COALESCE(OCTET_LENGTH(", $payload, "), 0) > 0")
    };
}

// Predicates

/// The owner, byte by byte, whatever collation and character set the column has (rule 3). One
/// placeholder.
pub(super) const OWNED_BY: &str = owned_by!();

/// Running under the owner. One placeholder.
pub(super) const HELD_BY: &str = concat!("status='running' AND ", owned_by!());

/// Not ended. A terminal status never leaves.
pub(super) const NOT_TERMINAL: &str = "status NOT IN ('completed', 'failed', 'cancelled')";

/// A stored request that a worker could run. The payload's length is read, the payload itself is
/// never loaded (rule 11).
pub(super) const HAS_REQUEST: &str = has_request!("queued_request");

/// The owner, byte by byte.
pub(super) fn owned_by(owner: &str) -> Sql {
    Sql::with(OWNED_BY, [Value::from(owner)])
}

/// Running under the owner.
pub(super) fn held_by(owner: &str) -> Sql {
    Sql::with(HELD_BY, [Value::from(owner)])
}

/// Running with a lease that expired before `now`. A run without a lease is never stale.
pub(super) fn stale(now: Sql) -> Sql {
    sql!("status = 'running' AND lease_expires > 0 AND lease_expires < {}", now)
}

/// Queued by exactly this requeue, and not claimed since.
pub(super) fn queued_by(requeue_count: u32) -> Sql {
    let count = bind(requeue_count);
    sql!("status = 'queued' AND requeue_count = {} AND OCTET_LENGTH(claimed_by) = 0", count)
}

/// The uuid, byte by byte. The plain comparison finds the rows by their key, the other one makes it
/// exact.
pub(super) fn uuid_is(uuid: &str) -> Sql {
    sql!(
        "uuid = {} AND CAST(CONVERT(uuid USING utf8mb4) AS BINARY) = CAST({} AS BINARY)",
        bind(uuid),
        bind(uuid)
    )
}

/// One of these runs. The list is never empty.
pub(super) fn uid_in(uids: impl IntoIterator<Item = u64>) -> Sql {
    sql!("uid IN ({})", numbers(uids))
}

// Assignments

/// A renewed lease. This, [`HELD_BY`] and [`update_held`] are written without optional blanks:
/// where the server logs statements, every heartbeat writes its text to the binary log (rule 33).
pub(super) fn renewal(lease_expires: Sql, now: Sql) -> Sql {
    sql!("lease_expires={},tstamp={}", lease_expires, now)
}

/// Back on the queue, with one requeue more. `SET` is evaluated left to right, so nothing behind
/// the counter reads it (rule 10).
pub(super) fn requeue(schema: &TableSchema, now: Sql) -> Sql {
    requeue_since(schema, &now, &now)
}

/// As [`requeue`], where `queued_at` is the time from which the backoff counts.
pub(super) fn requeue_since(schema: &TableSchema, now: &Sql, queued_at: &Sql) -> Sql {
    sql!("{}, requeue_count = requeue_count + 1", back_on_queue(schema, now, queued_at))
}

/// Back on the queue with the counter unchanged: no owner, no lease, no write fence. `queued_at` is
/// the time from which the backoff counts, where that column exists.
pub(super) fn back_on_queue(schema: &TableSchema, now: &Sql, queued_at: &Sql) -> Sql {
    let queued_at =
        if schema.has("queued_at") { sql!(", queued_at = {}", queued_at) } else { Sql::from("") };
    sql!(
        "status = 'queued', claimed_by = '', lease_expires = 0, pending_effect = '', tstamp = {}{}",
        now,
        queued_at
    )
}

/// The columns that the end of a run clears: payloads, owner and lease.
const RELEASE: &str =
    "suspended_state = '', queued_request = '', claimed_by = '', lease_expires = 0";

/// The end of a run: `status` is terminal. Write fence, iterations, totals and cost stay as they
/// are.
pub(super) fn end(status: Status, reason: Sql, error_class: Sql, now: Sql) -> Sql {
    end_with(status, reason, error_class, "", now)
}

/// The end of a run whose attempt failed: as [`end`], and nothing is left of what it had
/// counted.
pub(super) fn end_without_totals(reason: Sql, error_class: Sql, now: Sql) -> Sql {
    let totals = "iterations = 0, truncated = 0, total_prompt_tokens = 0, \
                  total_completion_tokens = 0, total_tokens = 0, estimated_cost = 0, ";
    end_with(Status::Failed, reason, error_class, totals, now)
}

fn end_with(status: Status, reason: Sql, error_class: Sql, others: &'static str, now: Sql) -> Sql {
    sql!(
        "status = '{}', termination_reason = {}, error_class = {}, {}{}, finished_at = {}, tstamp \
         = {}",
        status.as_str(),
        reason,
        error_class,
        others,
        RELEASE,
        &now,
        &now
    )
}

/// A termination reason as text.
pub(super) fn reason(reason: Reason) -> Sql {
    sql!("'{}'", reason.as_str())
}

// Statements

/// A write by primary key: whatever keys the table has, no other row is locked (rule 6).
pub(super) fn update(context: Context<'_>, assignments: Sql, condition: Sql) -> Sql {
    sql!("UPDATE {} FORCE INDEX (PRIMARY) SET {} WHERE {}", context.table(), assignments, condition)
}

/// A write to the run of a holder that still holds it.
pub(super) fn update_held(context: Context<'_>, assignments: Sql, holder: Holder<'_>) -> Sql {
    let condition = sql!("uid={} AND {}", bind(holder.run_uid), held_by(holder.owner));
    update(context, assignments, condition)
}

// When a queued run is due

/// A run's uuid in the character set of the connection: what is read, hashed and written is the
/// same text.
pub(super) const UUID: &str = "CONVERT(uuid USING utf8mb4)";

/// Since when a run has been queued: the column of later releases where its value is known.
pub(super) fn queued_since(schema: &TableSchema) -> &'static str {
    if schema.has("queued_at") { "IF(queued_at > 0, queued_at, tstamp)" } else { "tstamp" }
}

/// When a queued run was last written to: by its requeue, or by the sweep that notified a worker of
/// it.
pub(super) fn last_touched(schema: &TableSchema) -> &'static str {
    if schema.has("queued_at") { "GREATEST(tstamp, queued_at)" } else { "tstamp" }
}

/// For how many seconds a run has been queued at `now`; 0 where the clock that wrote the row is
/// ahead.
pub(super) fn queued_seconds(schema: &TableSchema, now: &Sql) -> Sql {
    sql!("GREATEST(0, CAST({} AS SIGNED) - CAST({} AS SIGNED))", now, queued_since(schema))
}

/// The unix time, in seconds with a fraction, from which a queued run may be executed: `since` plus
/// the backoff of `requeue_count - 1` with jitter. A run that was never requeued is due at once.
pub(super) fn due(context: &Context<'_>, since: &'static str) -> Sql {
    sql!("({} + IF(requeue_count = 0, 0, {} / 1000))", since, backoff(context))
}

/// The backoff of a requeued run in milliseconds, computed by the server as
/// [`crate::domain::backoff`] computes it.
fn backoff(context: &Context<'_>) -> Sql {
    let backoff = context.options.backoff;
    // Beyond 2^40 any base of a millisecond or more is over every cap. The column is unsigned: 0 -
    // 1 would be an error.
    let plain = sql!(
        "LEAST({}, {} * POW(2, LEAST(GREATEST(requeue_count, 1) - 1, 40)))",
        number(backoff.cap_ms),
        number(backoff.base_ms)
    );
    if backoff.jitter == 0.0 {
        return plain;
    }
    // The same expression as in `Backoff::delay_ms()`, in the same order, so that both round alike.
    sql!(
        "FLOOR({} * (1 + {} * (CRC32(CONCAT({}, ':', requeue_count)) / 4294967296e0)))",
        plain,
        number(backoff.jitter),
        UUID
    )
}

/// Queued runs that meet `condition`, as a derived table `q` of `columns`, joined by key to those
/// that have a stored request.
///
/// Only the payload of rows that meet the condition is read, and the client loads no payload
/// (rule 11): a thousand runs of a megabyte that are not due cost no more than a thousand small
/// ones.
pub(super) fn queued_with_request(
    context: &Context<'_>,
    columns: Sql,
    condition: Sql,
    limit: u64,
) -> Sql {
    sql!(
        "SELECT q.* FROM (SELECT {} FROM {} WHERE status = 'queued' AND {}) AS q \
         STRAIGHT_JOIN {} AS payload FORCE INDEX (PRIMARY) ON payload.uid = q.uid WHERE {} ORDER \
         BY q.crdate, q.uid LIMIT {}",
        columns,
        context.table(),
        condition,
        context.table(),
        has_request!("payload.queued_request"),
        number(limit)
    )
}

/// The statement of an operation on one connection, made by `make` where that connection has none
/// yet. It depends on the table and on the clock alone. A heartbeat is then one round trip and the
/// binding of its values.
///
/// # Errors
///
/// A connection error.
pub(super) async fn cached(
    session: &mut Session,
    operation: &'static str,
    context: Context<'_>,
    make: impl FnOnce() -> Sql,
) -> Result<Arc<str>> {
    let (table, clock) = (context.table(), context.options.clock);
    // The statements that are cached belong to an open connection.
    session.connect().await?;
    if let Some(query) = session.queries().and_then(|known| known.find(operation, table, clock)) {
        return Ok(query);
    }
    let query: Arc<str> = Arc::from(make().text());
    if let Some(known) = session.queries() {
        known.keep(operation, table, clock, &query);
    }
    Ok(query)
}

/// Runs an operation that needs these columns. Where the server does not know one of them, the
/// error names all that are missing. The server is not queried for the columns beforehand: a
/// migration could change them until the statement arrives (rule 30).
///
/// # Errors
///
/// The error of the operation.
pub(super) async fn with_columns<T>(
    session: &mut Session,
    context: Context<'_>,
    columns: &[&[&str]],
    operation: impl AsyncFnOnce(&mut Session) -> Result<T>,
) -> Result<T> {
    match operation(session).await {
        Err(error) => Err(session.explain(context.table(), &columns.concat(), error).await),
        done => done,
    }
}
