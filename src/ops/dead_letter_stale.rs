//! Dead-letter: a stale run ends as failed, with a reason, and is not tried again.
//!
//! Guard: the run's uid, and stale. Effect: `failed`, the reason, no `error_class`, both payloads
//! empty, no owner, no lease, `finished_at`, `tstamp`. Write fence, iterations, totals and cost
//! stay as they were.

use super::confirm::GuardedWrite;
use super::sql::{Context, END_COLUMNS, Sql, bind, end, sql, stale, update, with_columns};
use crate::db::Session;
use crate::domain::status::Status;
use crate::error::Result;

/// Dead-letters a run that is stale at `now` (unix seconds). Returns false where it is not stale.
///
/// # Errors
///
/// An argument error for a reason that the column cannot hold; a connection or query error.
pub async fn dead_letter_stale(
    session: &mut Session,
    context: Context<'_>,
    run_uid: u64,
    now: i64,
    reason: &str,
) -> Result<bool> {
    session
        .check_storable(context.table(), "termination_reason", "terminationReason", reason)
        .await?;
    let guard = || stale(context.bound(now));
    let failed = end(Status::Failed, bind(reason), Sql::from("''"), context.bound_now());
    let read_back = sql!(
        "SELECT status = 'failed' AND termination_reason = {}, {} FROM {} WHERE uid = {} FOR \
         UPDATE",
        bind(reason),
        guard(),
        context.table(),
        bind(run_uid)
    );
    let write = update(context, failed, sql!("uid = {} AND {}", bind(run_uid), guard()));
    with_columns(session, context, &[END_COLUMNS], async |session| {
        Ok(GuardedWrite::new(write, read_back).execute(session).await?.is_done())
    })
    .await
}
