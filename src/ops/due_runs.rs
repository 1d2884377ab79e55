//! When a queued run is due: its last time on the queue plus the backoff of its requeues, computed by the server as Rust does; and
//! the runs that are, for a worker without a bus.

use mysql_async::Params;

use super::outbox::UUID;
use super::sql::Context;
use crate::db::row::{count, signed, text, unsigned};
use crate::db::schema::TableSchema;
use crate::db::{Session, idempotent};
use crate::error::Result;

/// The columns that tell when a queued run is due.
pub(crate) const COLUMNS: &[&str] =
    &["uid", "uuid", "status", "queued_request", "requeue_count", "tstamp", "crdate"];

/// The unix time, in seconds with a fraction, from which a queued run may be executed, as SQL over its row: `since` plus the
/// backoff of `requeue_count - 1` with jitter. A run that was never requeued is due at once.
pub(crate) fn due_sql(context: &Context<'_>, since: &str) -> String {
    let backoff = context.options.backoff;
    // Beyond 2^40 any base of a millisecond or more is over every cap. The column is unsigned: 0 - 1 would be an error.
    let doublings = "LEAST(GREATEST(requeue_count, 1) - 1, 40)";
    let plain = format!(
        "LEAST({cap}, {base} * POW(2, {doublings}))",
        cap = backoff.cap_ms,
        base = backoff.base_ms
    );
    let delay = if backoff.jitter == 0.0 {
        plain
    } else {
        // The same expression as in Backoff::delay_ms(), in the same order, so that both round alike.
        format!(
            "FLOOR({plain} * (1 + {:?} * (CRC32(CONCAT({UUID}, ':', requeue_count)) / 4294967296e0)))",
            backoff.jitter
        )
    };
    format!("({since} + IF(requeue_count = 0, 0, {delay} / 1000))")
}

/// Since when a run has been queued, as SQL over its row: the column of later releases where it is known.
pub(crate) fn queued_since(facts: &TableSchema) -> &'static str {
    if facts.has("queued_at") { "IF(queued_at > 0, queued_at, tstamp)" } else { "tstamp" }
}

/// When anything last touched a queued run, as SQL over its row: its requeue, or the sweep that woke it.
pub(crate) fn last_touched(facts: &TableSchema) -> &'static str {
    if facts.has("queued_at") { "GREATEST(tstamp, queued_at)" } else { "tstamp" }
}

/// How long a run has been queued at `now`, in seconds, as SQL over its row; 0 where its host's clock is ahead.
pub(crate) fn queued_seconds(facts: &TableSchema, now: &str) -> String {
    format!("GREATEST(0, CAST({now} AS SIGNED) - CAST({} AS SIGNED))", queued_since(facts))
}

/// Queued runs that meet `condition`, as a derived table `q` of `columns`, and joined to it by key those that have a stored
/// request. Only rows that meet the condition have their payload looked at, and no payload is loaded by the client (rule 11):
/// a thousand runs of a megabyte that are not due yet cost no more than a thousand small ones.
pub(crate) fn with_request(
    context: &Context<'_>,
    columns: &str,
    condition: &str,
    limit: u64,
) -> String {
    let table = context.quoted();
    format!(
        "SELECT q.* FROM (SELECT {columns} FROM {table} WHERE status = 'queued' AND {condition}) AS q STRAIGHT_JOIN {table} AS payload \
         FORCE INDEX (PRIMARY) ON payload.uid = q.uid WHERE COALESCE(OCTET_LENGTH(payload.queued_request), 0) > 0 \
         ORDER BY q.crdate, q.uid LIMIT {limit}"
    )
}

/// A queued run that may be executed now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueRun {
    /// The run's uid.
    pub uid: u64,
    /// The run's uuid.
    pub uuid: String,
    /// The counter.
    pub requeue_count: u32,
    /// How long it has been queued.
    pub queued_seconds: i64,
}

/// The queued runs with a stored request whose backoff is over, oldest first, at most `limit` of them. Takes nothing and locks
/// nothing: the claim decides.
///
/// # Errors
///
/// A configuration error that names a missing table or column; a connection or query error.
pub async fn due_runs(
    session: &mut Session,
    context: Context<'_>,
    limit: u64,
    now: Option<i64>,
) -> Result<Vec<DueRun>> {
    let now = now.unwrap_or(context.time);
    idempotent(session, async |session| {
        let facts = session.table(context.table()).await?;
        facts.require(COLUMNS)?;
        if now == 0 {
            return Ok(Vec::new());
        }
        let now = context.time_literal(now);
        let columns = format!(
            "uid, uuid, requeue_count, crdate, {} AS seconds",
            queued_seconds(&facts, &now)
        );
        let condition = format!("{} <= {now}", due_sql(&context, queued_since(&facts)));
        let sql = with_request(&context, &columns, &condition, limit);
        let rows = session.query(&sql, Params::Empty).await?;
        rows.into_iter()
            .map(|mut row| {
                Ok(DueRun {
                    uid: unsigned(&mut row, 0)?,
                    uuid: text(&mut row, 1)?,
                    requeue_count: count(&mut row, 2)?,
                    queued_seconds: signed(&mut row, 4)?,
                })
            })
            .collect()
    })
    .await
}
