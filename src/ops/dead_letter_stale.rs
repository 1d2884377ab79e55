//! Dead-letter: a run ends as failed, with a reason, and is not tried again.
//!
//! Guard of [`dead_letter_stale`]: the run's uid, and stale. Effect: `failed`, the reason, no `error_class`, both payloads empty,
//! no owner, no lease, `finished_at`, `tstamp`. Fence, iterations, totals and cost stay as they were.

use super::confirm::{self, Statement};
use super::requeue::stale_guard;
use super::sql::Context;
use crate::db::{Session, params};
use crate::error::Result;

pub(crate) const COLUMNS: &[&str] = &[
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

/// What every settled run loses: payloads, owner and lease.
pub(crate) const RELEASED: &str =
    "suspended_state = '', queued_request = '', claimed_by = '', lease_expires = 0";

/// Dead-letters a stale run. False: it is not stale (any more).
///
/// # Errors
///
/// An argument error for a reason the column cannot hold; a connection or query error.
pub async fn dead_letter_stale(
    session: &mut Session,
    context: Context<'_>,
    uid: u64,
    now: i64,
    reason: &str,
) -> Result<bool> {
    let facts = session.table(context.table()).await?;
    facts.require(COLUMNS)?;
    facts.check_storable("termination_reason", "terminationReason", reason)?;
    let (table, time) = (context.quoted(), context.time_sql());
    let guard = stale_guard(&context);
    let write = Statement {
        sql: format!(
            "UPDATE {table} FORCE INDEX (PRIMARY) SET status = 'failed', termination_reason = ?, error_class = '', {RELEASED}, \
             finished_at = {time}, tstamp = {time} WHERE uid = ? AND {guard}"
        ),
        params: params![reason, context.at_now(), context.at_now(), uid, context.at(now)],
    };
    let read_back = Statement {
        sql: format!(
            "SELECT status = 'failed' AND termination_reason = ?, {guard} FROM {table} WHERE uid = ? FOR UPDATE"
        ),
        params: params![reason, context.at(now), uid],
    };
    Ok(confirm::write(session, &write, &read_back).await?.is_done())
}
