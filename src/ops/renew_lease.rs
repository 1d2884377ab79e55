//! Renew: the holder of a lease moves its expiry.
//!
//! Guard: the run's uid, `running`, and the owner byte by byte. Effect: `lease_expires`, `tstamp`.

use super::confirm::is_held;
use super::sql::{
    Context, HELD_BY, LEASE_COLUMNS, Sql, cached, renewal, sql, update, with_columns,
};
use crate::db::{Session, idempotent, params};
use crate::domain::holder::Holder;
use crate::error::Result;

/// Renews a lease until `lease_expires` (unix seconds), in one round trip. Returns false where the
/// lease is lost.
///
/// The number of matched rows decides, so a renewal that changes nothing is one (rule 1). It is
/// idempotent: a lost connection is opened again once, and the renewal is repeated.
///
/// # Errors
///
/// A connection or query error, after which the ownership is unknown (rule 17).
pub async fn renew_lease(
    session: &mut Session,
    context: Context<'_>,
    holder: Holder<'_>,
    lease_expires: i64,
) -> Result<bool> {
    let renewal = async |session: &mut Session| {
        session.check_storable(context.table(), "claimed_by", "claimedBy", holder.owner).await?;
        let query = cached(session, "renew_lease", context, || statement(context)).await?;
        let params = || {
            params![
                context.at(lease_expires),
                context.at(context.time),
                holder.run_uid,
                holder.owner
            ]
        };
        let reply = session.execute_with(&query, params).await?;
        is_held(session, context, holder, reply).await
    };
    with_columns(session, context, &[LEASE_COLUMNS], async |session| {
        idempotent(session, renewal).await
    })
    .await
}

/// The statement without its values: new expiry, now, uid, owner.
fn statement(context: Context<'_>) -> Sql {
    let time = || Sql::from(context.placeholder());
    update(context, renewal(time(), time()), sql!("uid=? AND {}", HELD_BY))
}
