//! Requeue a stale run, for an attempt by another worker.
//!
//! Guard: the run's uid, and stale; the counter below its end. Effect: `queued`, one requeue more,
//! no owner, no lease, no write fence, `tstamp`, and `queued_at` where that column exists. The
//! payload is unchanged. Neither the retry budget nor the write fence is checked: the caller has
//! decided.

use super::confirm;
use super::sql::{Context, stale};
use crate::db::Session;
use crate::error::Result;

/// Puts a run that is stale at `now` (unix seconds) back on the queue. Returns false where it is
/// not stale, or the counter is at its end.
///
/// # Errors
///
/// A connection or query error.
pub async fn requeue_stale(
    session: &mut Session,
    context: Context<'_>,
    run_uid: u64,
    now: i64,
) -> Result<bool> {
    confirm::requeue(session, context, run_uid, &stale(context.bound(now))).await
}
