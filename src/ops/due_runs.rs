//! Due runs: queued runs whose backoff is over, for a worker without a message bus.
//!
//! A plain read, which claims and locks nothing: the claim decides.

use super::sql::{
    Context, DUE_COLUMNS, due, queued_seconds, queued_since, queued_with_request, sql,
};
use crate::db::row::{count, signed, text, unsigned};
use crate::db::{Session, idempotent};
use crate::error::Result;

/// A queued run that may be executed now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueRun {
    /// The run's uid.
    pub uid: u64,
    /// The run's uuid.
    pub uuid: String,
    /// How often it was requeued.
    pub requeue_count: u32,
    /// For how many seconds it has been queued.
    pub queued_seconds: i64,
}

/// Lists the queued runs with a stored request whose backoff is over at `now` (unix seconds; the
/// caller's time where absent), oldest first, at most `limit` of them.
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
        let schema = session.current_table(context.table()).await?;
        schema.require(DUE_COLUMNS)?;
        if now == 0 {
            return Ok(Vec::new());
        }
        let now = context.literal(now);
        let columns =
            sql!("uid, uuid, requeue_count, crdate, {} AS seconds", queued_seconds(&schema, &now));
        let is_due = sql!("{} <= {}", due(&context, queued_since(&schema)), now);
        let rows = queued_with_request(&context, columns, is_due, limit).query(session).await?;
        rows.into_iter().map(due_run).collect()
    })
    .await
}

fn due_run(mut row: mysql_async::Row) -> Result<DueRun> {
    Ok(DueRun {
        uid: unsigned(&mut row, 0)?,
        uuid: text(&mut row, 1)?,
        requeue_count: count(&mut row, 2)?,
        queued_seconds: signed(&mut row, 4)?,
    })
}
