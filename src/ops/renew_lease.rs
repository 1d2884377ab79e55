//! Renew: the holder of a lease moves its end.
//!
//! Guard: the run's uid, `running`, and the owner byte by byte. Effect: `lease_expires`, `tstamp`.

use super::sql::{Context, OWNED};
use crate::db::row::flag;
use crate::db::schema::TableSchema;
use crate::db::{Reply, Session, idempotent, params};
use crate::error::Result;

pub(crate) const COLUMNS: &[&str] = &["uid", "status", "claimed_by", "lease_expires", "tstamp"];

/// Renews a lease, in one round trip. False: the lease is lost.
///
/// Decided by the number of matched rows, so a renewal that changes nothing is one (rule 1). Safe to repeat: a connection that
/// is lost is opened again once.
///
/// # Errors
///
/// A connection or query error; it says nothing about who holds the lease.
pub async fn renew_lease(
    session: &mut Session,
    context: Context<'_>,
    uid: u64,
    owner: &str,
    lease_expires: i64,
) -> Result<bool> {
    idempotent(session, async |session| {
        let plan = session.plan("renew", context, |facts| sql(facts, context)).await?;
        plan.facts.check_storable("claimed_by", "claimedBy", owner)?;
        let params = || params![context.at(lease_expires), context.at_now(), uid, owner];
        let reply = session.execute_with(&plan.sql, params).await?;
        is_held(session, context, uid, owner, reply).await
    })
    .await
}

fn sql(facts: &TableSchema, context: Context<'_>) -> Result<String> {
    facts.require(COLUMNS)?;
    let (table, time) = (context.quoted(), context.time_sql());
    Ok(format!(
        "UPDATE {table} FORCE INDEX (PRIMARY) SET lease_expires = {time}, tstamp = {time} WHERE uid = ? AND status = 'running' AND {OWNED}"
    ))
}

/// Does the owner hold the run, by the reply to a write that asked for that? A locking read tells where the reply's text says nothing.
pub(crate) async fn is_held(
    session: &mut Session,
    context: Context<'_>,
    uid: u64,
    owner: &str,
    reply: Reply,
) -> Result<bool> {
    if let Some(matched) = reply.matched {
        return Ok(matched > 0);
    }
    let sql = format!(
        "SELECT status = 'running' AND {OWNED} FROM {} WHERE uid = ? FOR UPDATE",
        context.quoted()
    );
    let rows = session.query(&sql, params![owner, uid]).await?;
    match rows.into_iter().next() {
        Some(mut row) => flag(&mut row, 0),
        None => Ok(false),
    }
}
