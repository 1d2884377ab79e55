//! Requeue: the holder puts its run back on the queue, for another attempt by any worker.
//!
//! Guard: the run's uid, `running`, and the owner byte by byte; the counter below its end. Effect:
//! `queued`, one requeue more, no owner, no lease, no write fence, `tstamp`, and `queued_at` where
//! that column exists. The payload is unchanged. Neither the retry budget nor the write fence is
//! checked: the caller has decided.

use super::confirm;
use super::sql::{Context, held_by};
use crate::db::Session;
use crate::domain::holder::Holder;
use crate::error::Result;

/// Puts the holder's run back on the queue. Returns false where the lease is lost, or the counter
/// is at its end.
///
/// # Errors
///
/// A connection or query error.
pub async fn requeue(
    session: &mut Session,
    context: Context<'_>,
    holder: Holder<'_>,
) -> Result<bool> {
    session.check_storable(context.table(), "claimed_by", "claimedBy", holder.owner).await?;
    confirm::requeue(session, context, holder.run_uid, &held_by(holder.owner)).await
}
