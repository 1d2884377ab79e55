//! Claim: a queued run gets an owner and a lease.
//!
//! Guard: the run's uid, and `queued`. Effect: `running`, owner, lease, `started_at`, `tstamp`.

use super::confirm::GuardedWrite;
use super::sql::{Context, Sql, bind, held_by, sql, update, with_columns};
use crate::db::Session;
use crate::domain::holder::Holder;
use crate::error::Result;

const COLUMNS: &[&str] = &["uid", "status", "claimed_by", "lease_expires", "started_at", "tstamp"];

/// Claims a queued run until `lease_expires` (unix seconds). Returns false where another worker has
/// it, or it is not queued.
///
/// # Errors
///
/// An argument error for an owner that the column cannot hold; a connection error, after which the
/// run is either unclaimed or claimed by this owner with this lease.
pub async fn claim_queued(
    session: &mut Session,
    context: Context<'_>,
    holder: Holder<'_>,
    lease_expires: i64,
) -> Result<bool> {
    session.check_storable(context.table(), "claimed_by", "claimedBy", holder.owner).await?;
    let claimed = sql!(
        "status = 'running', claimed_by = {}, lease_expires = {}, started_at = {}, tstamp = {}",
        bind(holder.owner),
        context.bound(lease_expires),
        context.bound_now(),
        context.bound_now()
    );
    let queued = sql!("uid = {} AND status = 'queued'", bind(holder.run_uid));
    // The claim is this one if owner and lease are: two processes never share an identity (rule 5).
    let lease = if context.lease_is_exact() {
        sql!("lease_expires = {}", bind(lease_expires))
    } else {
        Sql::from("lease_expires > 0")
    };
    let read_back = sql!(
        "SELECT {} AND {}, status = 'queued' FROM {} WHERE uid = {} FOR UPDATE",
        held_by(holder.owner),
        lease,
        context.table(),
        bind(holder.run_uid)
    );
    let write = GuardedWrite::new(update(context, claimed, queued), read_back);
    with_columns(session, context, &[COLUMNS], async |session| {
        Ok(write.execute(session).await?.is_done())
    })
    .await
}
