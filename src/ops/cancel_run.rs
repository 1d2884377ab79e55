//! Cancel: a user ends a run.
//!
//! Guard: the run's uuid byte by byte, and not terminal. Effect: `cancelled`, reason `cancelled`,
//! no `error_class`, totals and cost kept, both payloads empty, no owner, no lease, `finished_at`,
//! `tstamp`. At most one row is changed.

use super::confirm::GuardedWrite;
use super::sql::{Context, END_COLUMNS, NOT_TERMINAL, Sql, end, sql, uuid_is, with_columns};
use crate::db::Session;
use crate::domain::status::Status;
use crate::error::Result;

/// Cancels a run that is not terminal yet. Returns false where no such run exists, or it has ended.
///
/// # Errors
///
/// A connection or query error.
pub async fn cancel_run(session: &mut Session, context: Context<'_>, uuid: &str) -> Result<bool> {
    if session.storable(context.table(), "uuid", uuid).await? != uuid {
        // No row can hold it.
        return Ok(false);
    }
    let (reason, error_class) = (Sql::from("'cancelled'"), Sql::from("''"));
    let write = sql!(
        "UPDATE {} SET {} WHERE {} AND {} ORDER BY uid LIMIT 1",
        context.table(),
        end(Status::Cancelled, reason, error_class, context.bound_now()),
        uuid_is(uuid),
        NOT_TERMINAL
    );
    let read_back = sql!(
        "SELECT status = 'cancelled', {} FROM {} WHERE {} ORDER BY {} DESC, uid LIMIT 1 FOR UPDATE",
        NOT_TERMINAL,
        context.table(),
        uuid_is(uuid),
        NOT_TERMINAL
    );
    with_columns(session, context, &[END_COLUMNS, &["uuid"]], async |session| {
        Ok(GuardedWrite::new(write, read_back).execute(session).await?.is_done())
    })
    .await
}
