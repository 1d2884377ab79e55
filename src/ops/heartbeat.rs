//! Heartbeat: what a kept lease sends at every interval. A renewal that also returns why it was
//! refused.
//!
//! Guard: the run's uid, `running`, and the owner byte by byte. Effect: `lease_expires`, `tstamp`.

use std::time::Duration;

use super::confirm::is_held;
use super::sql::{Context, LEASE_COLUMNS, bind, owned_by, renewal, sql, update_held, with_columns};
use crate::config::options::{Options, Timeouts};
use crate::db::row::{flag, text};
use crate::db::{Session, idempotent};
use crate::domain::holder::Holder;
use crate::domain::lease_state::LeaseState;
use crate::domain::status::Status;
use crate::domain::validate::MAX_U32;
use crate::error::{Error, Result};

/// The outcome of a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeartbeatResult {
    /// The lease was renewed.
    Renewed,
    /// The owner does not hold the run; never [`LeaseState::Held`].
    NotOwner(LeaseState),
    /// `sending` returned false: nothing was sent.
    Withheld,
}

/// The expiry that a heartbeat writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The new expiry, also where that is earlier: the first heartbeat replaces a longer lease.
    Exact,
    /// Never earlier than the row's: a heartbeat that was delayed on a discarded connection may
    /// arrive after a later one, and would move the row's expiry back before the holder's deadline.
    /// But at most a lease and the time limits ahead, so that the next heartbeat repairs what a
    /// wrong reading of the clock wrote (rule 32).
    NeverEarlier,
}

/// Renews a lease for `lease_seconds` from now, if the holder still holds it.
///
/// `sending` is called right before each sending (two, where the connection turns out to be lost):
/// the deadline counts from there (rule 17). The row's expiry is computed after it, so it is never
/// earlier than the deadline. Where no row matched, a locking read finds the reason: a plain read
/// never decides about the owner (rule 2).
///
/// # Errors
///
/// A connection or query error, after which the ownership is unknown.
pub async fn send_heartbeat(
    session: &mut Session,
    options: &Options,
    holder: Holder<'_>,
    lease_seconds: i64,
    end: End,
    mut sending: impl FnMut() -> bool,
) -> Result<HeartbeatResult> {
    let heartbeat = async |session: &mut Session| {
        // Twice: a run may be requeued and claimed again by the same owner between the write and
        // the read.
        for _ in 0..2 {
            session.check_storable(&options.table, "claimed_by", "claimedBy", holder.owner).await?;
            session.connect().await?;
            if !sending() {
                return Ok(HeartbeatResult::Withheld);
            }
            let context = Context::now(options);
            let expires = context.time.saturating_add(lease_seconds).min(MAX_U32);
            let expires = match end {
                End::Exact => context.bound(expires),
                End::NeverEarlier => {
                    // A clock that is behind for a moment must not make a live run stale: the bound
                    // is that of the clock that is ahead.
                    let latest = expires.saturating_add(lateness(session.timeouts())).min(MAX_U32);
                    sql!(
                        "GREATEST({},LEAST(lease_expires,{}))",
                        context.bound(expires),
                        context.bound_by_the_later_clock(latest)
                    )
                }
            };
            let write = update_held(context, renewal(expires, context.bound_now()), holder);
            let reply = write.execute(session).await?;
            if is_held(session, context, holder, reply).await? {
                return Ok(HeartbeatResult::Renewed);
            }
            match state(session, context, holder).await? {
                LeaseState::Held => {}
                state => return Ok(HeartbeatResult::NotOwner(state)),
            }
        }
        Err(Error::connection(format!(
            "run {} was requeued and claimed again during a heartbeat",
            holder.run_uid
        )))
    };
    with_columns(session, Context::now(options), &[LEASE_COLUMNS], async |session| {
        idempotent(session, heartbeat).await
    })
    .await
}

/// How much later than a heartbeat that was sent after it a heartbeat may take effect, in seconds:
/// its time limits. The server bounds lock waits in whole seconds, and the client waits a moment
/// longer.
fn lateness(limits: Timeouts) -> i64 {
    const LEAST_QUERY: Duration = Duration::from_millis(1_500);
    let limit = limits.connect.saturating_add(limits.query.max(LEAST_QUERY));
    i64::try_from(limit.as_millis().div_ceil(1_000)).unwrap_or(MAX_U32)
}

/// Reads the state under the row's lock.
async fn state(
    session: &mut Session,
    context: Context<'_>,
    holder: Holder<'_>,
) -> Result<LeaseState> {
    let read = sql!(
        "SELECT status, {} FROM {} WHERE uid = {} FOR UPDATE",
        owned_by(holder.owner),
        context.table(),
        bind(holder.run_uid)
    );
    match read.query(session).await?.into_iter().next() {
        Some(mut row) => Ok(LeaseState::of(Status::parse(&text(&mut row, 0)?), flag(&mut row, 1)?)),
        None => Ok(LeaseState::Gone),
    }
}
