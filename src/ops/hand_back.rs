//! Hand back: a worker that must stop (a deploy) gives its run back without spending the retry
//! budget (rule 37).
//!
//! Guard: the run's uid, `running`, the owner byte by byte; the write fence does not forbid another
//! attempt, and a request is stored. Effect: as a requeue, with `requeue_count` unchanged, and due
//! at once: `queued`, no owner, no lease, no write fence, `tstamp`, and `queued_at` where that
//! column exists. The wake-up is available at once.
//!
//! A run that was requeued before has a backoff, which counts from `queued_at`: it was over when
//! this worker claimed the run. Therefore `queued_at` is written as much earlier as the backoff is
//! long, and the run is due at once for `dueRuns` as well; its wait is reported longer by that.
//! Without that column the backoff counts from `tstamp`, which stays the time of the write: a
//! worker that picks runs from the table takes such a run after its backoff, and a consumer of the
//! wake-up at once.

use std::sync::Arc;

use super::confirm::{self, RetryBudget, Write};
use super::outbox::{self, Available};
use super::sql::{
    self, Context, HAS_REQUEST, REQUEUE_COLUMNS, bind, held_by, owned_by, sql, update,
};
use crate::config::requests::{WakeUp, fits};
use crate::db::row::{bytes, count, flag, text};
use crate::db::schema::TableSchema;
use crate::db::{Session, idempotent};
use crate::domain::holder::Holder;
use crate::domain::status::{Status, effect_forbids_retry};
use crate::error::Result;

/// Hands the holder's run back to the queue. Returns false where the lease is lost, the write fence
/// forbids another attempt, or no request is stored; nothing was written then.
///
/// A lost reply is confirmed by the row: the hand-back took effect if the holder does not hold the
/// run any more, the counter is unchanged and the run has not ended.
///
/// # Errors
///
/// A connection or query error, after which the run is as it was, or which says that the outcome is
/// unknown.
pub async fn hand_back(
    session: &mut Session,
    context: Context<'_>,
    holder: Holder<'_>,
    wake_up: Option<&WakeUp>,
) -> Result<bool> {
    let mut hand_back = HandBack { context, holder, wake_up, checked: None, planned: None };
    hand_back.checked =
        Some(idempotent(session, async |session| hand_back.check(session).await).await?);
    Ok(confirm::write(session, &mut RetryBudget::of_a_transaction(), &mut hand_back).await?)
}

struct HandBack<'a> {
    context: Context<'a>,
    holder: Holder<'a>,
    wake_up: Option<&'a WakeUp>,
    /// The columns of the table, for the first attempt.
    checked: Option<Arc<TableSchema>>,
    /// What the last attempt was about to commit.
    planned: Option<Planned>,
}

struct Planned {
    requeue_count: u32,
    uuid: String,
}

impl Write for HandBack<'_> {
    type Answer = bool;

    async fn attempt(&mut self, session: &mut Session, sent: &mut bool) -> Result<bool> {
        let schema = match self.checked.take() {
            Some(schema) => schema,
            None => self.check(session).await?,
        };
        session.begin().await?;
        let Some(planned) = self.lock(session).await? else {
            session.rollback().await;
            return Ok(false);
        };
        let planned = self.planned.insert(planned);
        // The backoff that the row shows, which has elapsed (see above).
        let backoff_ms = match planned.requeue_count {
            0 => 0,
            count => self.context.options.backoff.delay_ms(planned.uuid.as_bytes(), count),
        };
        let backoff = i64::try_from(backoff_ms.div_ceil(1_000)).unwrap_or(i64::MAX);
        let queued_at = self.context.bound(self.context.time.saturating_sub(backoff).max(1));
        let queued = sql::back_on_queue(&schema, &self.context.bound_now(), &queued_at);
        let guard = sql!("uid = {} AND {}", bind(self.holder.run_uid), held_by(self.holder.owner));
        confirm::matched(update(self.context, queued, guard).execute(session).await?)?;
        if let Some(wake_up) = self.wake_up {
            let uids = [self.holder.run_uid];
            outbox::insert(session, self.context, wake_up, &uids, Available::AtOnce).await?;
        }
        *sent = true;
        session.commit().await?;
        Ok(true)
    }

    async fn read_back(&mut self, session: &mut Session) -> Result<Option<bool>> {
        let Some(planned) = self.planned.take() else {
            return Ok(None);
        };
        let read = sql!(
            "SELECT status, requeue_count, {} FROM {} WHERE uid = {} FOR UPDATE",
            owned_by(self.holder.owner),
            self.context.table(),
            bind(self.holder.run_uid)
        );
        session.begin_reading_back().await?;
        let rows = read.query(session).await?;
        session.rollback().await;
        let Some(mut row) = rows.into_iter().next() else {
            return Ok(Some(false));
        };
        let status = Status::parse(&text(&mut row, 0)?);
        let count = count(&mut row, 1)?;
        if status == Some(Status::Running) && flag(&mut row, 2)? {
            return Ok(None);
        }
        // Any other way back to the queue counts a requeue. A run that has ended since may have
        // ended while this holder still held it.
        let ended = status.is_some_and(Status::is_terminal);
        Ok(Some(count == planned.requeue_count && !ended))
    }
}

impl HandBack<'_> {
    /// Checks what has to be there before anything is written.
    async fn check(&self, session: &mut Session) -> Result<Arc<TableSchema>> {
        let texts = [self.holder.owner];
        let schema = session.current_table_storing(self.context.table(), &texts).await?;
        schema.require(REQUEUE_COLUMNS)?;
        schema.require(&["uuid", "queued_request"])?;
        schema.check_storable("claimed_by", "claimedBy", self.holder.owner)?;
        if let Some(wake_up) = self.wake_up {
            outbox::check(session, self.context, wake_up).await?;
        }
        Ok(schema)
    }

    /// Locks the run. `None`: it may not be handed back.
    async fn lock(&self, session: &mut Session) -> Result<Option<Planned>> {
        let read = sql!(
            "SELECT requeue_count, pending_effect, {}, uuid FROM {} FORCE INDEX (PRIMARY) WHERE \
             uid = {} AND {} FOR UPDATE",
            HAS_REQUEST,
            self.context.table(),
            bind(self.holder.run_uid),
            held_by(self.holder.owner)
        );
        let Some(mut row) = read.query(session).await?.into_iter().next() else {
            return Ok(None);
        };
        let requeue_count = count(&mut row, 0)?;
        let forbidden = effect_forbids_retry(&bytes(&mut row, 1)?);
        if forbidden || !flag(&mut row, 2)? {
            return Ok(None);
        }
        let uuid = text(&mut row, 3)?;
        if self.wake_up.is_some() && !fits(&uuid) {
            return Err(outbox::unfit_uuid(self.holder.run_uid, &uuid, "Hand it back"));
        }
        Ok(Some(Planned { requeue_count, uuid }))
    }
}
