//! Requeue: a run goes back on the queue, for another attempt by any worker.
//!
//! Guard: the run's uid, and either `running` with the owner byte by byte or stale; the counter below its end. Effect: `queued`,
//! one requeue more, no owner, no lease, no fence, `tstamp`, and `queued_at` where that column exists. The payload is untouched.
//! Neither budget nor fence is asked: the caller has decided.

use mysql_async::{Params, Value};

use super::confirm::{self, Statement};
use super::sql::{Context, OWNED};
use crate::db::row::count;
use crate::db::schema::TableSchema;
use crate::db::{Session, idempotent};
use crate::error::Result;

pub(crate) const COLUMNS: &[&str] =
    &["uid", "status", "claimed_by", "lease_expires", "requeue_count", "pending_effect", "tstamp"];

/// The assignments of a requeue, with `time` for now. `SET` is evaluated left to right, so nothing that follows the counter
/// reads it (rule 10).
pub(crate) fn assignments(facts: &TableSchema, time: &str) -> String {
    let queued_at =
        if facts.has("queued_at") { format!(", queued_at = {time}") } else { String::new() };
    format!(
        "status = 'queued', claimed_by = '', lease_expires = 0, pending_effect = '', tstamp = {time}{queued_at}, \
         requeue_count = requeue_count + 1"
    )
}

/// Puts a run that the caller holds back on the queue. False: the lease is lost, or the counter is at its end.
///
/// # Errors
///
/// A connection or query error.
pub async fn requeue(
    session: &mut Session,
    context: Context<'_>,
    uid: u64,
    owner: &str,
) -> Result<bool> {
    session.table(context.table()).await?.check_storable("claimed_by", "claimedBy", owner)?;
    let guard = format!("status = 'running' AND {OWNED}");
    guarded_requeue(session, context, uid, &guard, &[Value::from(owner)]).await
}

/// Puts a stale run back on the queue. False: it is not stale (any more), or the counter is at its end.
///
/// # Errors
///
/// A connection or query error.
pub async fn requeue_stale(
    session: &mut Session,
    context: Context<'_>,
    uid: u64,
    now: i64,
) -> Result<bool> {
    let guard = stale_guard(&context);
    guarded_requeue(session, context, uid, &guard, &[Value::from(context.at(now))]).await
}

/// The guard of a stale run, with one parameter for [`Context::time_sql`].
pub(crate) fn stale_guard(context: &Context<'_>) -> String {
    format!("status = 'running' AND lease_expires > 0 AND lease_expires < {}", context.time_sql())
}

async fn guarded_requeue(
    session: &mut Session,
    context: Context<'_>,
    uid: u64,
    guard: &str,
    guard_params: &[Value],
) -> Result<bool> {
    let facts = session.table(context.table()).await?;
    facts.require(COLUMNS)?;
    let (table, time) = (context.quoted(), context.time_sql());
    // The count before tells afterwards whether a write took effect whose reply was lost. Read under the row's lock, so that a
    // read/write splitter cannot answer it from a replica.
    let sql = format!("SELECT requeue_count FROM {table} WHERE uid = ? AND {guard} FOR UPDATE");
    let params = with(&[Value::from(uid)], guard_params, &[]);
    let rows =
        idempotent(session, async |session| session.query(&sql, params.clone()).await).await?;
    let Some(mut row) = rows.into_iter().next() else {
        return Ok(false);
    };
    let before = count(&mut row, 0)?;
    let Some(after) = before.checked_add(1) else {
        return Ok(false);
    };
    let mut times = vec![Value::from(context.at_now())];
    if facts.has("queued_at") {
        times.push(Value::from(context.at_now()));
    }
    times.push(Value::from(uid));
    let write = Statement {
        sql: format!(
            "UPDATE {table} FORCE INDEX (PRIMARY) SET {} WHERE uid = ? AND {guard} AND requeue_count = ?",
            assignments(&facts, time)
        ),
        params: with(&times, guard_params, &[Value::from(before)]),
    };
    let read_back = Statement {
        sql: format!(
            "SELECT requeue_count = ?, {guard} AND requeue_count = ? FROM {table} WHERE uid = ? FOR UPDATE"
        ),
        params: with(&[Value::from(after)], guard_params, &[Value::from(before), Value::from(uid)]),
    };
    Ok(confirm::write(session, &write, &read_back).await?.is_done())
}

fn with(first: &[Value], second: &[Value], third: &[Value]) -> Params {
    Params::Positional([first, second, third].concat())
}
