//! Lease state: why a lease is held or lost. A plain read on the session's own connection: it never queues behind a row lock.

use mysql_async::Row;

use super::sql::{Context, OWNED};
use crate::db::row::{flag, text};
use crate::db::{Session, idempotent, params};
use crate::domain::status::Status;
use crate::error::Result;

/// What a row says about a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseState {
    /// Running under this owner, also when the lease is over and nobody took the run.
    Held,
    /// Running under another owner, or none.
    Taken,
    /// Back on the queue.
    Requeued,
    /// Suspended, waiting for a person.
    Waiting,
    /// Cancelled.
    Cancelled,
    /// Completed.
    Completed,
    /// Failed.
    Failed,
    /// There is no such run.
    Gone,
    /// A status that this release does not know.
    Other,
}

impl LeaseState {
    /// The word of the interface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Taken => "taken",
            Self::Requeued => "requeued",
            Self::Waiting => "waiting",
            Self::Cancelled => "cancelled",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Gone => "gone",
            Self::Other => "other",
        }
    }
}

/// Reads what the row says about a lease of `owner`.
///
/// # Errors
///
/// A connection or query error.
pub async fn lease_state(
    session: &mut Session,
    context: Context<'_>,
    uid: u64,
    owner: &str,
) -> Result<LeaseState> {
    idempotent(session, async |session| {
        let facts = session.table(context.table()).await?;
        facts.require(&["uid", "status", "claimed_by"])?;
        facts.check_storable("claimed_by", "claimedBy", owner)?;
        let sql = format!("SELECT status, {OWNED} FROM {} WHERE uid = ?", context.quoted());
        let rows = session.query(&sql, params![owner, uid]).await?;
        of_row(rows.into_iter().next())
    })
    .await
}

/// What a row of (`status`, is it the owner's?) says.
pub(crate) fn of_row(row: Option<Row>) -> Result<LeaseState> {
    let Some(mut row) = row else {
        return Ok(LeaseState::Gone);
    };
    let owned = flag(&mut row, 1)?;
    Ok(match Status::parse(&text(&mut row, 0)?) {
        Some(Status::Running) if owned => LeaseState::Held,
        Some(Status::Running) => LeaseState::Taken,
        Some(Status::Queued) => LeaseState::Requeued,
        Some(Status::WaitingForApproval | Status::WaitingForInput) => LeaseState::Waiting,
        Some(Status::Cancelled) => LeaseState::Cancelled,
        Some(Status::Completed) => LeaseState::Completed,
        Some(Status::Failed) => LeaseState::Failed,
        None => LeaseState::Other,
    })
}
