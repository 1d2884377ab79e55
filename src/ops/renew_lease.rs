//! Renew: the holder of a lease moves its end.
//!
//! Guard: the run's uid, `running`, and the owner byte by byte. Effect: `lease_expires`, `tstamp`.

use super::confirm::is_held;
use super::sql::{Context, HELD_BY, LEASE_COLUMNS, Sql, cached, renewal, sql, update};
use crate::db::{Session, idempotent, params};
use crate::domain::holder::Holder;
use crate::error::Result;

/// Renews a lease until `lease_expires` (unix seconds), in one round trip. Returns false where the lease is lost.
///
/// The number of matched rows decides, so a renewal that changes nothing is one (rule 1). It is idempotent: a lost connection is
/// opened again once, and the renewal is repeated.
///
/// # Errors
///
/// A connection or query error, which says nothing about who holds the lease (rule 17).
pub async fn renew_lease(
    session: &mut Session,
    context: Context<'_>,
    holder: Holder<'_>,
    lease_expires: i64,
) -> Result<bool> {
    idempotent(session, async |session| {
        let query = cached(session, "renew", context, |schema| {
            schema.require(LEASE_COLUMNS)?;
            Ok(statement(context))
        })
        .await?;
        query.facts.check_storable("claimed_by", "claimedBy", holder.owner)?;
        let params = || {
            params![
                context.at(lease_expires),
                context.at(context.time),
                holder.run_uid,
                holder.owner
            ]
        };
        let reply = session.execute_with(&query.sql, params).await?;
        is_held(session, context, holder, reply).await
    })
    .await
}

/// The statement without its values: new end, now, uid, owner.
fn statement(context: Context<'_>) -> Sql {
    let time = || Sql::from(context.placeholder());
    update(context, renewal(time(), time()), sql!("uid = ? AND {}", HELD_BY))
}
