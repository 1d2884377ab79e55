//! Status: what an operator wants to know about the run table, by plain reads.

use super::sql::{
    Context, HAS_REQUEST, Sql, due, last_touched, number, queued_since, sql, unix_time_ms,
};
use crate::db::has_lease_key;
use crate::db::row::{optional_signed, signed, text, unsigned};
use crate::db::{Session, idempotent};
use crate::domain::status::Status;
use crate::error::Result;

/// For how many seconds after it was due a queued run is without a worker before it counts as
/// stranded.
pub const STRANDED_AFTER_SECONDS: i64 = 300;

/// The report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusReport {
    /// Runs by status; every known status is there.
    pub counts: Vec<(String, u64)>,
    /// Failed runs by termination reason.
    pub dead_letters: Vec<(String, u64)>,
    /// Running runs whose lease has expired.
    pub expired_leases: u64,
    /// Running runs without a lease.
    pub unleased_running: u64,
    /// The smallest end of a lease among the running runs.
    pub oldest_lease: Option<i64>,
    /// How long the oldest queued run has been waiting, in seconds.
    pub oldest_queued_seconds: Option<i64>,
    /// Queued runs that no wake-up is left for, since longer than [`STRANDED_AFTER_SECONDS`] after
    /// they were due.
    pub stranded: u64,
    /// How far the database's clock is ahead of this machine's, in milliseconds.
    pub clock_skew_ms: i64,
    /// Whether a key begins with (status, `lease_expires`).
    pub lease_key: bool,
    /// The server's version.
    pub server: String,
    /// The isolation level of the session.
    pub isolation: String,
}

/// Reads the report. `now` judges leases and waits, `since` bounds the counts by creation time.
///
/// # Errors
///
/// A connection or query error.
pub async fn status(
    session: &mut Session,
    context: Context<'_>,
    now: Option<i64>,
    since: Option<i64>,
) -> Result<StatusReport> {
    idempotent(session, async |session| read(session, context, now, since).await).await
}

async fn read(
    session: &mut Session,
    context: Context<'_>,
    now: Option<i64>,
    since: Option<i64>,
) -> Result<StatusReport> {
    let schema = session.current_table(context.table()).await?;
    schema.require(&[
        "uid",
        "status",
        "termination_reason",
        "claimed_by",
        "lease_expires",
        "queued_request",
        "tstamp",
        "crdate",
    ])?;
    let mut report = StatusReport::default();
    let table = context.table();
    let now = context.literal(now.unwrap_or(context.time));
    let created = since.map(|since| sql!("crdate >= {}", context.literal(since)));

    let all = match &created {
        Some(created) => sql!(" WHERE {}", created),
        None => Sql::from(""),
    };
    let by_status = sql!("SELECT status, COUNT(*) FROM {}{} GROUP BY status", table, all);
    let counted = groups(session, &by_status).await?;
    for status in Status::ALL {
        let count =
            counted.iter().find(|(name, _)| name == status.as_str()).map_or(0, |(_, count)| *count);
        report.counts.push((status.as_str().to_owned(), count));
    }
    report.counts.extend(counted.into_iter().filter(|(name, _)| Status::parse(name).is_none()));

    let failed = match created {
        Some(created) => sql!("{} AND status = 'failed'", created),
        None => Sql::from("status = 'failed'"),
    };
    let by_reason = sql!(
        "SELECT termination_reason, COUNT(*) FROM {} WHERE {} AND termination_reason <> '' \
         GROUP BY termination_reason ORDER BY termination_reason",
        table,
        failed
    );
    report.dead_letters = groups(session, &by_reason).await?;

    let leases = sql!(
        "SELECT COALESCE(SUM(lease_expires > 0 AND lease_expires < {}), 0), \
         COALESCE(SUM(lease_expires = 0), 0), \
         MIN(NULLIF(lease_expires, 0)) FROM {} WHERE status = 'running'",
        &now,
        table
    );
    if let Some(mut row) = leases.query(session).await?.into_iter().next() {
        report.expired_leases = unsigned(&mut row, 0)?;
        report.unleased_running = unsigned(&mut row, 1)?;
        report.oldest_lease = optional_signed(&mut row, 2)?;
    }

    let touched = last_touched(&schema);
    let due = if schema.has("requeue_count") { due(&context, touched) } else { Sql::from(touched) };
    let waits = sql!(
        "SELECT MAX(CAST({} AS SIGNED) - CAST({} AS SIGNED)), \
         COALESCE(SUM({} AND {} + {} < {}), 0) FROM {} WHERE status = 'queued'",
        &now,
        queued_since(&schema),
        HAS_REQUEST,
        due,
        number(STRANDED_AFTER_SECONDS),
        &now,
        table
    );
    if let Some(mut row) = waits.query(session).await?.into_iter().next() {
        report.oldest_queued_seconds = optional_signed(&mut row, 0)?.map(|seconds| seconds.max(0));
        report.stranded = unsigned(&mut row, 1)?;
    }

    let database_time = Sql::from("SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)");
    let before = unix_time_ms();
    if let Some(mut row) = database_time.query(session).await?.into_iter().next() {
        let after = unix_time_ms();
        report.clock_skew_ms = signed(&mut row, 0)? - (before + (after - before) / 2);
    }
    report.lease_key = has_lease_key(session, context.table()).await?;
    let server = session.server().await?;
    report.isolation = server.isolation;
    report.server = server.version;
    Ok(report)
}

/// Reads pairs of a name and a count.
async fn groups(session: &mut Session, counts: &Sql) -> Result<Vec<(String, u64)>> {
    let rows = counts.query(session).await?;
    rows.into_iter().map(|mut row| Ok((text(&mut row, 0)?, unsigned(&mut row, 1)?))).collect()
}
