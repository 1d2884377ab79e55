//! Cancel: a person ends a run.
//!
//! Guard: the run's uuid byte by byte, and not terminal. Effect: `cancelled`, reason `cancelled`, no `error_class`, totals and
//! cost kept, both payloads empty, no owner, no lease, `finished_at`, `tstamp`. At most one row is changed.

use super::confirm::{self, Statement};
use super::dead_letter_stale::{COLUMNS, RELEASED};
use super::sql::Context;
use crate::db::{Session, params};
use crate::error::Result;

/// A run that can still be cancelled.
const NOT_TERMINAL: &str = "status NOT IN ('completed', 'failed', 'cancelled')";

/// Cancels a run that is not terminal yet. False: there is no such run, or it has ended.
///
/// # Errors
///
/// A connection or query error.
pub async fn cancel_run(session: &mut Session, context: Context<'_>, uuid: &str) -> Result<bool> {
    let facts = session.table(context.table()).await?;
    facts.require(COLUMNS)?;
    facts.require(&["uuid"])?;
    if facts.storable("uuid", uuid) != uuid {
        // No row can hold it.
        return Ok(false);
    }
    let (table, time) = (context.quoted(), context.time_sql());
    // The plain comparison finds the rows by their key, the other makes it exact.
    let this_run = "uuid = ? AND CAST(CONVERT(uuid USING utf8mb4) AS BINARY) = CAST(? AS BINARY)";
    let write = Statement {
        sql: format!(
            "UPDATE {table} SET status = 'cancelled', termination_reason = 'cancelled', error_class = '', {RELEASED}, \
             finished_at = {time}, tstamp = {time} WHERE {this_run} AND {NOT_TERMINAL} ORDER BY uid LIMIT 1"
        ),
        params: params![context.at_now(), context.at_now(), uuid, uuid],
    };
    let read_back = Statement {
        sql: format!(
            "SELECT status = 'cancelled', {NOT_TERMINAL} FROM {table} WHERE {this_run} ORDER BY {NOT_TERMINAL} DESC, uid LIMIT 1 FOR UPDATE"
        ),
        params: params![uuid, uuid],
    };
    Ok(confirm::write(session, &write, &read_back).await?.is_done())
}
