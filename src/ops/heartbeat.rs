//! Beat: what the keeper does at every interval. A renewal that also says why it was refused.
//!
//! Guard: that of [`super::renew`]. Effect: `lease_expires`, `tstamp`.

use super::lease_state::{LeaseState, of_row};
use super::renew_lease::{COLUMNS, is_held};
use super::sql::{Context, OWNED};
use crate::config::options::Options;
use crate::db::{Session, idempotent, params};
use crate::domain::validate::MAX_U32;
use crate::error::{Error, Result};

/// What became of a beat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beat {
    /// The lease was renewed.
    Renewed,
    /// The owner does not hold the run; never [`LeaseState::Held`].
    NotOwner(LeaseState),
    /// `sending` said no: nothing was sent.
    Withheld,
}

/// Where a beat puts the end of the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Where it says, also earlier than before: the first beat takes over from a longer lease.
    Exact,
    /// Never earlier than it stands. A beat that was delayed on a connection that its sender has given up may arrive after a later
    /// one; the row's end would move back behind the holder's deadline.
    NeverEarlier,
}

/// Renews a lease for `lease_seconds` from now, if still its owner.
///
/// `sending` is called right before each sending (two, when the connection turns out to be lost): the deadline counts from there
/// (rule 17). The row's end is computed after it, so it is never earlier than the deadline. Where nothing matched, a locking read
/// tells why: the owner is never judged by a plain one (rule 2).
///
/// # Errors
///
/// A connection or query error; it says nothing about who holds the lease.
#[allow(clippy::too_many_arguments, reason = "one statement's worth of facts")]
pub async fn beat(
    session: &mut Session,
    options: &Options,
    uid: u64,
    owner: &str,
    lease_seconds: i64,
    end: End,
    mut sending: impl FnMut() -> bool,
) -> Result<Beat> {
    idempotent(session, async |session| {
        // Twice: a run may be put back and claimed again by the same owner between the write and the read.
        for _ in 0..2 {
            let facts = session.table(&options.table).await?;
            facts.require(COLUMNS)?;
            facts.check_storable("claimed_by", "claimedBy", owner)?;
            if !sending() {
                return Ok(Beat::Withheld);
            }
            let context = Context::now(options);
            let (table, time) = (context.quoted(), context.time_sql());
            let stands_at = match end {
                End::Exact => time.to_owned(),
                End::NeverEarlier => format!("GREATEST(lease_expires, {time})"),
            };
            let sql = format!(
                "UPDATE {table} FORCE INDEX (PRIMARY) SET lease_expires = {stands_at}, tstamp = {time} WHERE uid = ? AND status = 'running' AND {OWNED}"
            );
            let expires = context.time.saturating_add(lease_seconds).min(MAX_U32);
            let reply = session.execute(&sql, params![context.at(expires), context.at_now(), uid, owner]).await?;
            if is_held(session, context, uid, owner, reply).await? {
                return Ok(Beat::Renewed);
            }
            let sql = format!("SELECT status, {OWNED} FROM {table} WHERE uid = ? FOR UPDATE");
            let rows = session.query(&sql, params![owner, uid]).await?;
            match of_row(rows.into_iter().next())? {
                LeaseState::Held => {}
                state => return Ok(Beat::NotOwner(state)),
            }
        }
        Err(Error::connection(format!("run {uid} was given away and taken again in the middle of a beat")))
    })
    .await
}
