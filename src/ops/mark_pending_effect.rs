//! Fence: before a tool runs, its effect is written to the row; after it, cleared. A reaper then knows what a dead worker was
//! in the middle of.
//!
//! Guard: the run's uid, `running`, and the owner byte by byte. Effect: `pending_effect`, `lease_expires`, `tstamp`.

use super::renew_lease::is_held;
use super::sql::{Context, OWNED};
use crate::db::schema::TableSchema;
use crate::db::{Session, idempotent, params};
use crate::error::Result;

const COLUMNS: &[&str] =
    &["uid", "status", "claimed_by", "lease_expires", "tstamp", "pending_effect"];

/// Marks the effect of the tool that runs next (the empty one clears the fence) and renews the lease. False: the lease is lost.
///
/// # Errors
///
/// An argument error for an effect the column cannot hold; a connection or query error.
pub async fn mark_pending_effect(
    session: &mut Session,
    context: Context<'_>,
    uid: u64,
    owner: &str,
    effect: &str,
    lease_expires: i64,
) -> Result<bool> {
    idempotent(session, async |session| {
        let plan = session.plan("fence", context, |facts| sql(facts, context)).await?;
        plan.facts.check_storable("claimed_by", "claimedBy", owner)?;
        plan.facts.check_storable("pending_effect", "effect", effect)?;
        let params = || params![effect, context.at(lease_expires), context.at_now(), uid, owner];
        let reply = session.execute_with(&plan.sql, params).await?;
        is_held(session, context, uid, owner, reply).await
    })
    .await
}

fn sql(facts: &TableSchema, context: Context<'_>) -> Result<String> {
    facts.require(COLUMNS)?;
    let (table, time) = (context.quoted(), context.time_sql());
    Ok(format!(
        "UPDATE {table} FORCE INDEX (PRIMARY) SET pending_effect = ?, lease_expires = {time}, tstamp = {time} \
         WHERE uid = ? AND status = 'running' AND {OWNED}"
    ))
}
