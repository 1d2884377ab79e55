//! Fail an undispatched run: its wake-up could not be sent, so no worker will ever take it up (rule 15).
//!
//! Guard: the run's uid, still `queued` by this requeue (the same count) and owned by nobody. Effect: `failed`,
//! `provider_failed`, the error's class, both payloads empty, `finished_at`, `tstamp`.

use super::confirm::{self, Statement};
use super::dead_letter_stale::{COLUMNS, RELEASED};
use super::sql::Context;
use crate::db::{Session, params};
use crate::error::Result;

/// Settles a requeued run whose wake-up failed. False: a worker has it already, or it moved on; it is left alone.
///
/// `requeue_count` is the count that the requeue left in the row; 0 for a first dispatch.
///
/// # Errors
///
/// A connection or query error.
pub async fn fail_undispatched(
    session: &mut Session,
    context: Context<'_>,
    uid: u64,
    requeue_count: u32,
    error_class: &str,
) -> Result<bool> {
    let facts = session.table(context.table()).await?;
    facts.require(COLUMNS)?;
    facts.require(&["requeue_count"])?;
    let error_class = facts.storable("error_class", error_class);
    let (table, time) = (context.quoted(), context.time_sql());
    let guard = "status = 'queued' AND requeue_count = ? AND OCTET_LENGTH(claimed_by) = 0";
    let write = Statement {
        sql: format!(
            "UPDATE {table} FORCE INDEX (PRIMARY) SET status = 'failed', termination_reason = 'provider_failed', error_class = ?, \
             {RELEASED}, finished_at = {time}, tstamp = {time} WHERE uid = ? AND {guard}"
        ),
        params: params![
            error_class.as_str(),
            context.at_now(),
            context.at_now(),
            uid,
            requeue_count
        ],
    };
    let read_back = Statement {
        sql: format!(
            "SELECT status = 'failed' AND termination_reason = 'provider_failed' AND requeue_count = ?, {guard} FROM {table} \
             WHERE uid = ? FOR UPDATE"
        ),
        params: params![requeue_count, requeue_count, uid],
    };
    Ok(confirm::write(session, &write, &read_back).await?.is_done())
}
