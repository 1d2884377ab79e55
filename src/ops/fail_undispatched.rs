//! Fail an undispatched run: its wake-up could not be sent, so no worker would execute it (rule
//! 15).
//!
//! Guard: the run's uid, still `queued` by this requeue (the same count), and no owner. Effect:
//! `failed`, `provider_failed`, the error's class, both payloads empty, `finished_at`, `tstamp`.

use super::confirm::GuardedWrite;
use super::sql::{Context, END_COLUMNS, Sql, bind, end, queued_by, sql, update, with_columns};
use crate::db::Session;
use crate::domain::status::Status;
use crate::error::Result;

/// Ends a requeued run whose wake-up failed. Returns false, and writes nothing, where a worker has
/// claimed it or its status has changed otherwise.
///
/// `requeue_count` is the count that the requeue left in the row; 0 for a first dispatch.
///
/// # Errors
///
/// A connection or query error.
pub async fn fail_undispatched(
    session: &mut Session,
    context: Context<'_>,
    run_uid: u64,
    requeue_count: u32,
    error_class: &str,
) -> Result<bool> {
    let error_class = session.storable(context.table(), "error_class", error_class).await?;
    let failed = end(
        Status::Failed,
        Sql::from("'provider_failed'"),
        bind(error_class.as_str()),
        context.bound_now(),
    );
    let read_back = sql!(
        "SELECT status = 'failed' AND termination_reason = 'provider_failed' \
         AND requeue_count = {}, {} FROM {} WHERE uid = {} FOR UPDATE",
        bind(requeue_count),
        queued_by(requeue_count),
        context.table(),
        bind(run_uid)
    );
    let guard = sql!("uid = {} AND {}", bind(run_uid), queued_by(requeue_count));
    let write = GuardedWrite::new(update(context, failed, guard), read_back);
    with_columns(session, context, &[END_COLUMNS, &["requeue_count"]], async |session| {
        Ok(write.execute(session).await?.is_done())
    })
    .await
}
