//! Write fence: before a tool is executed, its effect is written to the row; after it, the write
//! fence is cleared. If the worker dies meanwhile, the reaper reads the effect from the row.
//!
//! Guard: the run's uid, `running`, and the owner byte by byte. Effect: `pending_effect`,
//! `lease_expires`, `tstamp`.

use super::confirm::is_held;
use super::sql::{
    Context, HELD_BY, LEASE_COLUMNS, Sql, cached, renewal, sql, update, with_columns,
};
use crate::db::{Session, idempotent, params};
use crate::domain::holder::Holder;
use crate::error::Result;

/// Marks the effect of the tool that is executed next (the empty effect clears the write fence),
/// and renews the lease until `lease_expires` (unix seconds). Returns false where the lease is
/// lost: the tool must not be executed then.
///
/// # Errors
///
/// An argument error for an effect or owner that the column cannot hold; a connection or query
/// error.
pub async fn mark_pending_effect(
    session: &mut Session,
    context: Context<'_>,
    holder: Holder<'_>,
    effect: &str,
    lease_expires: i64,
) -> Result<bool> {
    let marking = async |session: &mut Session| {
        session.check_storable(context.table(), "claimed_by", "claimedBy", holder.owner).await?;
        session.check_storable(context.table(), "pending_effect", "effect", effect).await?;
        let query = cached(session, "mark_pending_effect", context, || statement(context)).await?;
        let params = || {
            params![
                effect,
                context.at(lease_expires),
                context.at(context.time),
                holder.run_uid,
                holder.owner
            ]
        };
        let reply = session.execute_with(&query, params).await?;
        is_held(session, context, holder, reply).await
    };
    with_columns(session, context, &[LEASE_COLUMNS, &["pending_effect"]], async |session| {
        idempotent(session, marking).await
    })
    .await
}

/// The statement without its values: effect, new end, now, uid, owner.
fn statement(context: Context<'_>) -> Sql {
    let time = || Sql::from(context.placeholder());
    let marked = sql!("pending_effect=?,{}", renewal(time(), time()));
    update(context, marked, sql!("uid=? AND {}", HELD_BY))
}
