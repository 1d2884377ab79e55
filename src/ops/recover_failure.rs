//! Recover: what becomes of a run whose attempt failed. Decides and writes in one transaction.
//!
//! Guard: the caller holds the run. Requeue needs the run's uid, `running` and the owner byte by
//! byte; dead-letter the uid, not terminal, and the owner. The row is locked first, so the decision
//! and the write see the same facts.
//!
//! Where a failure requests a waiting time (rule 36), the run waits for the larger of that and the
//! backoff. The wake-up becomes available then. Where the column `queued_at` exists, it is written
//! as much later as the run waits beyond the backoff. Without that column the row cannot express
//! it: a worker that reads the table honours the backoff alone then.

use std::sync::Arc;

use super::confirm::{self, RetryBudget, Write};
use super::outbox::{self, Available, Written};
use super::sql::{
    self, Context, END_COLUMNS, HAS_REQUEST, NOT_TERMINAL, REQUEUE_COLUMNS, bind,
    end_without_totals, owned_by, sql, update,
};
use crate::config::requests::{WakeUp, fits};
use crate::db::row::{bytes, count, flag, text};
use crate::db::schema::TableSchema;
use crate::db::{Session, idempotent};
use crate::domain::backoff::delay_after_failure_ms;
use crate::domain::decision::{self, Decision, Facts};
use crate::domain::failure::Failure;
use crate::domain::holder::Holder;
use crate::domain::status::{Reason, Status};
use crate::domain::validate::MAX_U32;
use crate::error::Result;

/// What became of a failed run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// Back on the queue.
    Requeued {
        /// The counter as it now stands in the row.
        requeue_count: u32,
        /// For how long the next attempt waits, in milliseconds.
        delay_ms: u64,
        /// Whether the wake-up was written in the same transaction.
        woken_up: bool,
        /// Whether the reply was lost and the outcome read back.
        confirmed: bool,
    },
    /// Ended.
    DeadLettered {
        /// The reason.
        reason: Reason,
        /// The counter, which stays.
        requeue_count: u32,
        /// Whether the reply was lost and the outcome read back.
        confirmed: bool,
    },
    /// The caller does not hold the run; nothing was written.
    LeaseLost,
}

/// Recovers a failed run that the caller holds: requeues it with backoff, or with the waiting time
/// that the failure requests if that is longer; or dead-letters it.
///
/// # Errors
///
/// A connection or query error, after which the run is as it was, or which says that the outcome is
/// unknown.
pub async fn recover_failure(
    session: &mut Session,
    context: Context<'_>,
    holder: Holder<'_>,
    failure: &Failure,
    wake_up: Option<&WakeUp>,
) -> Result<Recovery> {
    let mut recover = Recover { context, holder, failure, wake_up, checked: None, planned: None };
    recover.checked =
        Some(idempotent(session, async |session| recover.check(session).await).await?);
    Ok(confirm::write(session, &mut RetryBudget::of_a_transaction(), &mut recover).await?)
}

struct Recover<'a> {
    context: Context<'a>,
    holder: Holder<'a>,
    failure: &'a Failure,
    wake_up: Option<&'a WakeUp>,
    /// The columns of the table, for the first attempt.
    checked: Option<Arc<TableSchema>>,
    /// What the last attempt was about to commit.
    planned: Option<Planned>,
}

struct Planned {
    recovery: Recovery,
    uuid: String,
    /// The message that was written with it.
    written: Option<Written>,
}

/// The row as it is under its lock.
struct Locked {
    running: bool,
    requeue_count: u32,
    pending_effect: Vec<u8>,
    has_request: bool,
    uuid: String,
}

impl Write for Recover<'_> {
    type Answer = Recovery;

    async fn attempt(&mut self, session: &mut Session, sent: &mut bool) -> Result<Recovery> {
        let schema = match self.checked.take() {
            Some(schema) => schema,
            None => self.check(session).await?,
        };
        session.begin().await?;
        let Some(planned) = self.try_once(session, &schema).await? else {
            session.rollback().await;
            return Ok(Recovery::LeaseLost);
        };
        let recovery = planned.recovery.clone();
        self.planned = Some(planned);
        *sent = true;
        session.commit().await?;
        Ok(recovery)
    }

    async fn read_back(&mut self, session: &mut Session) -> Result<Option<Recovery>> {
        let Some(planned) = self.planned.take() else {
            return Ok(None);
        };
        let schema = session.table(self.context.table()).await?;
        let read = sql!(
            "SELECT status, requeue_count, termination_reason, error_class FROM {} WHERE uid = {} \
             FOR UPDATE",
            self.context.table(),
            bind(self.holder.run_uid)
        );
        session.begin_reading_back().await?;
        let rows = read.query(session).await?;
        let uuids = [planned.uuid.as_str()];
        let messages = outbox::remaining(session, self.wake_up, planned.written, uuids).await?;
        session.rollback().await;
        let Some(mut row) = rows.into_iter().next() else {
            return Ok(None);
        };
        let status = Status::parse(&text(&mut row, 0)?);
        let count = count(&mut row, 1)?;
        let stored_reason = text(&mut row, 2)?;
        let stored_class = text(&mut row, 3)?;
        Ok(match planned.recovery {
            // The counter never goes back: a smaller one shows that nothing was committed. A
            // message alone is no proof, since others write the same.
            Recovery::Requeued { requeue_count, delay_ms, .. } if count >= requeue_count => {
                // Where no message is left, a consumer has taken it, or another transaction
                // requeued the run in between. A run that is still queued is then reported as not
                // `wokenUp`: a duplicate wake-up is harmless, a missing one is not.
                let woken_up = self.wake_up.is_some()
                    && (!messages.is_empty() || status != Some(Status::Queued));
                Some(Recovery::Requeued { requeue_count, delay_ms, woken_up, confirmed: true })
            }
            Recovery::DeadLettered { reason, requeue_count, .. }
                if status == Some(Status::Failed)
                    && stored_reason == reason.as_str()
                    && stored_class
                        == schema.storable("error_class", &self.failure.error_class) =>
            {
                Some(Recovery::DeadLettered { reason, requeue_count, confirmed: true })
            }
            _ => None,
        })
    }
}

impl Recover<'_> {
    /// Checks what has to be there before anything is written.
    async fn check(&self, session: &mut Session) -> Result<Arc<TableSchema>> {
        let texts = [self.holder.owner, &self.failure.error_class];
        let schema = session.current_table_storing(self.context.table(), &texts).await?;
        schema.require(REQUEUE_COLUMNS)?;
        schema.require(END_COLUMNS)?;
        schema.check_storable("claimed_by", "claimedBy", self.holder.owner)?;
        schema.require(&[
            "uuid",
            "iterations",
            "truncated",
            "total_prompt_tokens",
            "total_completion_tokens",
            "total_tokens",
            "estimated_cost",
        ])?;
        if let Some(wake_up) = self.wake_up {
            outbox::check(session, self.context, wake_up).await?;
        }
        Ok(schema)
    }

    /// Locks, decides and writes. `None`: the caller does not hold the run.
    async fn try_once(
        &self,
        session: &mut Session,
        schema: &TableSchema,
    ) -> Result<Option<Planned>> {
        let Some(locked) = self.lock(session).await? else {
            return Ok(None);
        };
        let decided = decision::after_failure(
            self.failure.classification.class.is_retryable(),
            Facts {
                pending_effect: &locked.pending_effect,
                has_request: locked.has_request,
                requeue_count: locked.requeue_count,
            },
            self.context.options.max_requeues,
        );
        Ok(match decided {
            Decision::Requeue if !locked.running => None,
            Decision::Requeue => Some(self.requeue(session, schema, locked).await?),
            Decision::DeadLetter(reason) => {
                self.dead_letter(session, schema, reason).await?;
                let recovery = Recovery::DeadLettered {
                    reason,
                    requeue_count: locked.requeue_count,
                    confirmed: false,
                };
                Some(Planned { recovery, uuid: locked.uuid, written: None })
            }
        })
    }

    /// Locks the caller's run. `None`: the caller does not hold it.
    async fn lock(&self, session: &mut Session) -> Result<Option<Locked>> {
        let read = sql!(
            "SELECT {}, status, requeue_count, pending_effect, {}, uuid FROM {} \
             FORCE INDEX (PRIMARY) WHERE uid = {} FOR UPDATE",
            owned_by(self.holder.owner),
            HAS_REQUEST,
            self.context.table(),
            bind(self.holder.run_uid)
        );
        let Some(mut row) = read.query(session).await?.into_iter().next() else {
            return Ok(None);
        };
        let owned = flag(&mut row, 0)?;
        let status = Status::parse(&text(&mut row, 1)?);
        if !owned || status.is_some_and(Status::is_terminal) {
            return Ok(None);
        }
        Ok(Some(Locked {
            running: status == Some(Status::Running),
            requeue_count: count(&mut row, 2)?,
            pending_effect: bytes(&mut row, 3)?,
            has_request: flag(&mut row, 4)?,
            uuid: text(&mut row, 5)?,
        }))
    }

    async fn requeue(
        &self,
        session: &mut Session,
        schema: &TableSchema,
        locked: Locked,
    ) -> Result<Planned> {
        let uid = self.holder.run_uid;
        if self.wake_up.is_some() && !fits(&locked.uuid) {
            return Err(outbox::unfit_uuid(uid, &locked.uuid, "Recover it"));
        }
        let requeue_count = locked.requeue_count.saturating_add(1);
        let backoff_ms =
            self.context.options.backoff.delay_ms(locked.uuid.as_bytes(), requeue_count);
        let retry_after = self.failure.classification.retry_after_seconds;
        let delay_ms = delay_after_failure_ms(backoff_ms, retry_after);
        // What the run waits beyond the backoff: the backoff counts from then, so that `dueRuns`
        // and the sweep honour it too.
        let later = i64::try_from((delay_ms - backoff_ms).div_ceil(1_000)).unwrap_or(0);
        let queued_at = self.context.bound(self.context.time.saturating_add(later).min(MAX_U32));
        let requeued = sql::requeue_since(schema, &self.context.bound_now(), &queued_at);
        let guard = sql!("uid = {} AND status = 'running'", bind(uid));
        let write = update(self.context, requeued, guard);
        confirm::matched(write.execute(session).await?)?;
        let written = match self.wake_up {
            Some(wake_up) => {
                let available = Available::AfterRequeue(delay_ms);
                outbox::insert(session, self.context, wake_up, &[uid], available).await?
            }
            None => None,
        };
        let recovery = Recovery::Requeued {
            requeue_count,
            delay_ms,
            woken_up: self.wake_up.is_some(),
            confirmed: false,
        };
        Ok(Planned { recovery, uuid: locked.uuid, written })
    }

    async fn dead_letter(
        &self,
        session: &mut Session,
        schema: &TableSchema,
        reason: Reason,
    ) -> Result<()> {
        let error_class = schema.storable("error_class", &self.failure.error_class);
        let failed = end_without_totals(
            bind(reason.as_str()),
            bind(error_class.as_str()),
            self.context.bound_now(),
        );
        let guard = sql!("uid = {} AND {}", bind(self.holder.run_uid), NOT_TERMINAL);
        confirm::matched(update(self.context, failed, guard).execute(session).await?)
    }
}
