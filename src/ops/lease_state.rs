//! Lease state: why a lease is held or lost.
//!
//! A plain read on the session's own connection: it does not wait for a row lock, and it decides
//! nothing (rule 2).

use super::sql::{Context, bind, owned_by, sql, with_columns};
use crate::db::row::{flag, text};
use crate::db::{Session, idempotent};
use crate::domain::holder::Holder;
use crate::domain::lease_state::LeaseState;
use crate::domain::status::Status;
use crate::error::Result;

/// Reads what the row says about a lease of the holder.
///
/// # Errors
///
/// A connection or query error.
pub async fn lease_state(
    session: &mut Session,
    context: Context<'_>,
    holder: Holder<'_>,
) -> Result<LeaseState> {
    let state = async |session: &mut Session| {
        session.check_storable(context.table(), "claimed_by", "claimedBy", holder.owner).await?;
        let read = sql!(
            "SELECT status, {} FROM {} WHERE uid = {}",
            owned_by(holder.owner),
            context.table(),
            bind(holder.run_uid)
        );
        match read.query(session).await?.into_iter().next() {
            Some(mut row) => {
                Ok(LeaseState::of(Status::parse(&text(&mut row, 0)?), flag(&mut row, 1)?))
            }
            None => Ok(LeaseState::Gone),
        }
    };
    with_columns(session, context, &[&["uid", "status", "claimed_by"]], async |session| {
        idempotent(session, state).await
    })
    .await
}
