//! Recover: what becomes of a run whose attempt failed. Decide and write in one transaction.
//!
//! Guard: the caller holds the run: requeue needs the run's uid, `running` and the owner byte by byte; dead-letter the uid, not
//! terminal, and the owner. The row is locked first, so the decision and the write see the same facts.

use std::sync::Arc;

use mysql_async::{Params, Value};

use super::confirm::unknown;
use super::dead_letter_stale;
use super::outbox::{self, Available, WakeUp, Written};
use super::requeue;
use super::sql::{Context, HAS_REQUEST, OWNED};
use crate::db::row::{bytes, count, flag, text};
use crate::db::schema::TableSchema;
use crate::db::{ATTEMPTS, Session, idempotent, params, pause};
use crate::domain::decision::{self, Decision, Facts};
use crate::domain::failure::Failure;
use crate::domain::status::{Reason, Status};
use crate::error::{Error, Fate, Result};

/// What became of a failed run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// Back on the queue.
    Requeued {
        /// The counter as it now stands in the row.
        requeue_count: u32,
        /// How long the next attempt waits, in milliseconds.
        delay_ms: u64,
        /// Was the wake-up written in the same transaction?
        woken_up: bool,
        /// Was the reply lost and the outcome read back?
        confirmed: bool,
    },
    /// Ended.
    DeadLettered {
        /// Why.
        reason: Reason,
        /// The counter, which stays.
        requeue_count: u32,
        /// Was the reply lost and the outcome read back?
        confirmed: bool,
    },
    /// The caller does not hold the run (any more); nothing was written.
    LeaseLost,
}

/// The row as it was under its lock.
struct Locked {
    running: bool,
    requeue_count: u32,
    pending_effect: Vec<u8>,
    has_request: bool,
    uuid: String,
}

/// What is to be committed.
struct Planned {
    recovery: Recovery,
    uuid: String,
    /// The message that was written with it.
    written: Option<Written>,
}

/// Recovers a failed run that the caller holds: requeues it with backoff, or dead-letters it.
///
/// # Errors
///
/// A connection or query error, after which the run is as it was, or the error says that the outcome is unknown.
pub async fn recover_failure(
    session: &mut Session,
    context: Context<'_>,
    uid: u64,
    owner: &str,
    failure: &Failure,
    wake_up: Option<&WakeUp>,
) -> Result<Recovery> {
    let mut reconnected = false;
    let mut attempt = 1;
    loop {
        let facts =
            idempotent(session, async |session| check(session, context, owner, wake_up).await)
                .await?;
        let mut planned = None;
        match try_once(session, context, &facts, uid, owner, failure, wake_up, &mut planned).await {
            Ok(recovery) => return Ok(recovery),
            Err(error) => {
                session.rollback().await;
                let again = error.outcome_unknown() && !reconnected;
                if let Some(planned) = planned.filter(|_| !error.is_transient()) {
                    // The commit was on its way: lost, or refused in a way that leaves open what became of it. The row tells.
                    match read_back(session, context, uid, failure, wake_up, planned).await {
                        Ok(Some(confirmed)) => return Ok(confirmed),
                        Ok(None) if again => reconnected = true,
                        Ok(None) => return Err(error),
                        Err(second) => {
                            session.rollback().await;
                            return Err(unknown(&error, &second));
                        }
                    }
                } else if error.fate == Fate::Lost && again {
                    // Lost before the commit: the server rolls back, and it may be tried again.
                    reconnected = true;
                } else if error.is_transient() && !error.waited() && attempt < ATTEMPTS {
                    pause(attempt).await;
                    attempt += 1;
                } else {
                    return Err(error);
                }
            }
        }
    }
}

/// What has to be there before anything is written.
async fn check(
    session: &mut Session,
    context: Context<'_>,
    owner: &str,
    wake_up: Option<&WakeUp>,
) -> Result<Arc<TableSchema>> {
    let facts = session.table(context.table()).await?;
    facts.require(requeue::COLUMNS)?;
    facts.require(dead_letter_stale::COLUMNS)?;
    facts.check_storable("claimed_by", "claimedBy", owner)?;
    facts.require(&[
        "uuid",
        "iterations",
        "truncated",
        "total_prompt_tokens",
        "total_completion_tokens",
        "total_tokens",
        "estimated_cost",
    ])?;
    if let Some(wake_up) = wake_up {
        outbox::check(session, context, wake_up).await?;
    }
    Ok(facts)
}

#[allow(clippy::too_many_arguments, reason = "one transaction in one place")]
async fn try_once(
    session: &mut Session,
    context: Context<'_>,
    facts: &TableSchema,
    uid: u64,
    owner: &str,
    failure: &Failure,
    wake_up: Option<&WakeUp>,
    planned: &mut Option<Planned>,
) -> Result<Recovery> {
    session.begin().await?;
    let Some(locked) = lock(session, context, uid, owner).await? else {
        session.rollback().await;
        return Ok(Recovery::LeaseLost);
    };
    let decided = decision::after_failure(
        failure.classification.class.is_retryable(),
        Facts {
            pending_effect: &locked.pending_effect,
            has_request: locked.has_request,
            requeue_count: locked.requeue_count,
        },
        context.options.max_requeues,
    );
    let mut written = None;
    let recovery = match decided {
        Decision::Requeue if !locked.running => {
            session.rollback().await;
            return Ok(Recovery::LeaseLost);
        }
        Decision::Requeue if wake_up.is_some() && !outbox::fits(&locked.uuid) => {
            session.rollback().await;
            return Err(Error::configuration(format!(
                "wakeUp: run {uid} has the uuid '{}', which cannot take the placeholder's place (36 ASCII characters without quotation marks \
                 and backslashes); nothing was written. Recover it without wakeUp, and wake a worker yourself",
                locked.uuid.escape_debug()
            )));
        }
        Decision::Requeue => {
            write_requeue(session, context, facts, uid).await?;
            let requeue_count = locked.requeue_count.saturating_add(1);
            let delay_ms = context.options.backoff.delay_ms(locked.uuid.as_bytes(), requeue_count);
            if let Some(wake_up) = wake_up {
                written = outbox::insert(
                    session,
                    context,
                    wake_up,
                    &[uid],
                    Available::AfterRequeue(delay_ms),
                )
                .await?;
            }
            Recovery::Requeued {
                requeue_count,
                delay_ms,
                woken_up: wake_up.is_some(),
                confirmed: false,
            }
        }
        Decision::DeadLetter(reason) => {
            write_dead_letter(session, context, facts, uid, failure, reason).await?;
            Recovery::DeadLettered { reason, requeue_count: locked.requeue_count, confirmed: false }
        }
    };
    *planned = Some(Planned { recovery: recovery.clone(), uuid: locked.uuid, written });
    session.commit().await?;
    Ok(recovery)
}

/// Locks the caller's run. `None`: the caller does not hold it.
async fn lock(
    session: &mut Session,
    context: Context<'_>,
    uid: u64,
    owner: &str,
) -> Result<Option<Locked>> {
    let sql = format!(
        "SELECT {OWNED}, status, requeue_count, pending_effect, {HAS_REQUEST}, uuid FROM {} FORCE INDEX (PRIMARY) WHERE uid = ? FOR UPDATE",
        context.quoted()
    );
    let rows = session.query(&sql, params![owner, uid]).await?;
    let Some(mut row) = rows.into_iter().next() else {
        return Ok(None);
    };
    let owned = flag(&mut row, 0)?;
    let status = Status::parse(&text(&mut row, 1)?);
    let terminal = matches!(status, Some(Status::Completed | Status::Failed | Status::Cancelled));
    if !owned || terminal {
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

async fn write_requeue(
    session: &mut Session,
    context: Context<'_>,
    facts: &TableSchema,
    uid: u64,
) -> Result<()> {
    let time = context.time_sql();
    let sql = format!(
        "UPDATE {} FORCE INDEX (PRIMARY) SET {} WHERE uid = ? AND status = 'running'",
        context.quoted(),
        requeue::assignments(facts, time)
    );
    let mut values = vec![Value::from(context.at_now())];
    if facts.has("queued_at") {
        values.push(Value::from(context.at_now()));
    }
    values.push(Value::from(uid));
    written(session.execute(&sql, Params::Positional(values)).await?.matched)
}

async fn write_dead_letter(
    session: &mut Session,
    context: Context<'_>,
    facts: &TableSchema,
    uid: u64,
    failure: &Failure,
    reason: Reason,
) -> Result<()> {
    let time = context.time_sql();
    let sql = format!(
        "UPDATE {} FORCE INDEX (PRIMARY) SET status = 'failed', termination_reason = ?, error_class = ?, iterations = 0, truncated = 0, \
         total_prompt_tokens = 0, total_completion_tokens = 0, total_tokens = 0, estimated_cost = 0, {}, finished_at = {time}, \
         tstamp = {time} WHERE uid = ? AND status NOT IN ('completed', 'failed', 'cancelled')",
        context.quoted(),
        dead_letter_stale::RELEASED
    );
    let error_class = facts.storable("error_class", &failure.error_class);
    let params = params![reason.as_str(), error_class, context.at_now(), context.at_now(), uid];
    written(session.execute(&sql, params).await?.matched)
}

/// The row is locked and was looked at: a write that says it matched nothing contradicts that.
fn written(matched: Option<u64>) -> Result<()> {
    match matched {
        Some(0) => Err(Error::connection(
            "the server's reply contradicts the row that it had locked; nothing was written. Check the proxy in between",
        )),
        _ => Ok(()),
    }
}

/// Reads back, under the row's lock, whether the planned outcome stands in the row, and whether a wake-up does.
async fn read_back(
    session: &mut Session,
    context: Context<'_>,
    uid: u64,
    failure: &Failure,
    wake_up: Option<&WakeUp>,
    planned: Planned,
) -> Result<Option<Recovery>> {
    let facts = session.table(context.table()).await?;
    session.begin_reading_back().await?;
    let sql = format!(
        "SELECT status, requeue_count, termination_reason, error_class FROM {} WHERE uid = ? FOR UPDATE",
        context.quoted()
    );
    let rows = session.query(&sql, params![uid]).await?;
    let messages_stand =
        !outbox::standing(session, wake_up, planned.written, [planned.uuid.as_str()])
            .await?
            .is_empty();
    session.rollback().await;
    let Some(mut row) = rows.into_iter().next() else {
        return Ok(None);
    };
    let status = Status::parse(&text(&mut row, 0)?);
    let count = count(&mut row, 1)?;
    let reason_now = text(&mut row, 2)?;
    let error_class_now = text(&mut row, 3)?;
    Ok(match planned.recovery {
        // The counter never goes back: below, it was not committed. A message alone is no proof, others write the same.
        Recovery::Requeued { requeue_count, delay_ms, .. } if count >= requeue_count => {
            // Where no message stands, a consumer has taken it, or somebody else requeued the run in between: a run that still waits is
            // then told as not woken, since a wake-up too many is harmless and a missing one is not.
            let woken_up = wake_up.is_some() && (messages_stand || status != Some(Status::Queued));
            Some(Recovery::Requeued { requeue_count, delay_ms, woken_up, confirmed: true })
        }
        Recovery::DeadLettered { reason, requeue_count, .. }
            if status == Some(Status::Failed)
                && reason_now == reason.as_str()
                && error_class_now == facts.storable("error_class", &failure.error_class) =>
        {
            Some(Recovery::DeadLettered { reason, requeue_count, confirmed: true })
        }
        _ => None,
    })
}
