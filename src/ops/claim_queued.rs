//! Claim: a worker takes a queued run.
//!
//! Guard: the run's uid, and `queued`. Effect: `running`, owner, lease, `started_at`, `tstamp`.

use super::confirm::{self, Statement};
use super::sql::{Context, OWNED};
use crate::db::{Session, params};
use crate::error::Result;

const COLUMNS: &[&str] = &["uid", "status", "claimed_by", "lease_expires", "started_at", "tstamp"];

/// Claims a queued run. False: somebody else has it, or it is not queued (any more).
///
/// # Errors
///
/// An argument error for an owner the column cannot hold; a connection error, after which the run is either unclaimed or
/// claimed by this owner under this lease.
pub async fn claim_queued(
    session: &mut Session,
    context: Context<'_>,
    uid: u64,
    owner: &str,
    lease_expires: i64,
) -> Result<bool> {
    let facts = session.table(context.table()).await?;
    facts.require(COLUMNS)?;
    facts.check_storable("claimed_by", "claimedBy", owner)?;
    let (table, time) = (context.quoted(), context.time_sql());
    let write = Statement {
        sql: format!(
            "UPDATE {table} FORCE INDEX (PRIMARY) SET status = 'running', claimed_by = ?, lease_expires = {time}, started_at = {time}, \
             tstamp = {time} WHERE uid = ? AND status = 'queued'"
        ),
        params: params![owner, context.at(lease_expires), context.at_now(), context.at_now(), uid],
    };
    // Ours if owner and lease are: two processes never share an identity.
    let exact = if context.lease_is_exact() {
        " AND lease_expires = ?"
    } else {
        " AND lease_expires > ? * 0"
    };
    let read_back = Statement {
        sql: format!(
            "SELECT status = 'running' AND {OWNED}{exact}, status = 'queued' FROM {table} WHERE uid = ? FOR UPDATE"
        ),
        params: params![owner, lease_expires, uid],
    };
    Ok(confirm::write(session, &write, &read_back).await?.is_done())
}
