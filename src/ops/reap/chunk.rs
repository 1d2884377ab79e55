//! One chunk of a reap: locked, decided, written and committed in one transaction, and read back
//! where the commit's reply is lost.

use std::collections::{HashMap, HashSet};

use super::listing::stale_run;
use super::report::Skip;
use super::{Candidate, Reaper, StaleRun};
use crate::db::Session;
use crate::db::row::{count, text, unsigned};
use crate::db::schema::TableSchema;
use crate::db::server::Locking;
use crate::domain::decision::Decision;
use crate::domain::status::{Reason, Status};
use crate::error::Result;
use crate::ops::chunked::{CallState, ChunkFailed, ChunkWork, LockWaits, Obstacle};
use crate::ops::confirm::{self, Write};
use crate::ops::outbox::{self, Available, Written};
use crate::ops::sql::{self, HAS_REQUEST, Sql, end, sql, uid_in, update};

impl ChunkWork for Reaper<'_> {
    type Candidate = Candidate;

    const CHUNK: usize = usize::MAX;

    async fn handle(
        &mut self,
        session: &mut Session,
        chunk: &[Candidate],
        state: &mut CallState,
    ) -> Result<(), ChunkFailed> {
        let CallState { budget, waits, .. } = state;
        let mut write = ChunkWrite { reaper: self, chunk, waits, attempt: Attempt::default() };
        let outcome = confirm::write(session, budget, &mut write).await;
        let in_messages = write.attempt.in_messages;
        outcome.map_err(|failed| {
            if failed.unknown {
                self.unknown = chunk.to_vec();
            }
            ChunkFailed { failed, in_messages }
        })
    }

    fn skip(&mut self, candidate: Candidate, obstacle: Obstacle) {
        let why = match obstacle {
            Obstacle::Contended => Skip::Contended,
            Obstacle::TimedOut => Skip::TimedOut,
            Obstacle::TooLarge => Skip::TooLarge,
        };
        self.report.skip(candidate, why);
    }
}

struct ChunkWrite<'w, 'a> {
    reaper: &'w mut Reaper<'a>,
    chunk: &'w [Candidate],
    waits: &'w mut LockWaits,
    attempt: Attempt,
}

/// What an attempt at a chunk has come to.
#[derive(Default)]
struct Attempt {
    /// The runs that are locked, and the decision about them.
    planned: Vec<(Candidate, Decision)>,
    /// Locked runs that are left alone, since their wake-up could not be written.
    unwakeable: Vec<Candidate>,
    /// Candidates that were not among the locked rows.
    missed: Vec<Candidate>,
    /// The messages that were written.
    written: Option<Written>,
    /// Whether it was about to write the messages.
    in_messages: bool,
}

/// The uids of a chunk by decision, each list sorted.
#[derive(Default)]
struct ByDecision {
    requeue: Vec<u64>,
    not_retryable: Vec<u64>,
    exhausted: Vec<u64>,
}

impl Write for ChunkWrite<'_, '_> {
    type Answer = ();

    const SKIPS_LOCKED: bool = true;

    /// Locks, decides, writes and commits; six statements at most.
    async fn attempt(&mut self, session: &mut Session, sent: &mut bool) -> Result<()> {
        self.attempt = Attempt::default();
        let context = self.reaper.context;
        let schema = session.table(context.table()).await?;
        let locking = session.locking().await?;
        self.waits.shorten(session, locking).await?;
        session.begin().await?;
        self.lock_and_decide(session, locking).await?;
        let uids = self.attempt.by_decision();
        if !uids.requeue.is_empty() {
            let write = self.reaper.requeue(&schema, &uids.requeue);
            confirm::all_matched(write.execute(session).await?, uids.requeue.len())?;
        }
        let ended = uids.not_retryable.len() + uids.exhausted.len();
        if ended > 0 {
            confirm::all_matched(self.reaper.dead_letter(&uids).execute(session).await?, ended)?;
        }
        if let Some(wake_up) = &self.reaper.request.wake_up {
            self.attempt.in_messages = true;
            self.attempt.written =
                outbox::insert(session, context, wake_up, &uids.requeue, Available::AtOnce).await?;
            self.attempt.in_messages = false;
        }
        *sent = !self.attempt.planned.is_empty();
        session.commit().await?;
        let woken_up = self.reaper.request.wake_up.is_some();
        self.report(|_| woken_up, false);
        Ok(())
    }

    /// Reads back, under the rows' locks, whether the chunk stands, and reports it then.
    ///
    /// It was written as a whole or not at all, so one run without its effect proves that it was
    /// not: the counter never goes back, and what has failed stays failed. A run with it may be
    /// another reaper's work, and proves nothing about the others.
    async fn read_back(&mut self, session: &mut Session) -> Result<Option<()>> {
        let planned = &self.attempt.planned;
        let read = sql!(
            "SELECT uid, status, requeue_count, termination_reason FROM {} FORCE INDEX (PRIMARY) \
             WHERE {} FOR UPDATE",
            self.reaper.context.table(),
            uid_in(planned.iter().map(|(candidate, _)| candidate.uid))
        );
        session.begin_reading_back().await?;
        let mut rows = HashMap::new();
        for mut row in read.query(session).await? {
            let status = Status::parse(&text(&mut row, 1)?);
            let count = count(&mut row, 2)?;
            rows.insert(unsigned(&mut row, 0)?, (status, count, text(&mut row, 3)?));
        }
        let uuids = planned.iter().map(|(candidate, _)| candidate.uuid.as_str());
        let wake_up = self.reaper.request.wake_up.as_ref();
        let messages = outbox::remaining(session, wake_up, self.attempt.written, uuids).await?;
        session.rollback().await;
        let without_effect = planned.iter().any(|(candidate, decision)| {
            rows.get(&candidate.uid).is_some_and(|(status, requeues, reason)| match decision {
                Decision::Requeue => *requeues <= candidate.requeue_count,
                Decision::DeadLetter(planned) => {
                    *status != Some(Status::Failed) || reason != planned.as_str()
                }
            })
        });
        // Rows that were deleted prove nothing.
        if without_effect || rows.is_empty() {
            return Ok(None);
        }
        // Where no message stands, a consumer has taken it, or another transaction requeued the run
        // in between. A run that is still queued is then reported as not woken up: a duplicate
        // wake-up is harmless, a missing one is not.
        let queued: HashSet<u64> = rows
            .iter()
            .filter(|(_, (status, ..))| *status == Some(Status::Queued))
            .map(|(&uid, _)| uid)
            .collect();
        let wakes = wake_up.is_some();
        let woken_up = |candidate: &Candidate| {
            wakes
                && (messages.contains(candidate.uuid.as_str()) || !queued.contains(&candidate.uid))
        };
        self.report(woken_up, true);
        Ok(Some(()))
    }
}

impl ChunkWrite<'_, '_> {
    async fn lock_and_decide(&mut self, session: &mut Session, locking: Locking) -> Result<()> {
        let mut uids: Vec<u64> = self.chunk.iter().map(|candidate| candidate.uid).collect();
        uids.sort_unstable();
        let lock = sql!(
            "SELECT uid, uuid, claimed_by, lease_expires, requeue_count, pending_effect, {} FROM \
             {} \
             FORCE INDEX (PRIMARY) WHERE {} AND {} ORDER BY uid{}",
            HAS_REQUEST,
            self.reaper.context.table(),
            uid_in(uids.iter().copied()),
            self.reaper.stale(),
            locking.clause()
        );
        let rows = lock.query_as(session, stale_run).await?;
        self.attempt.planned.reserve(rows.len());
        let place = |uid: u64| uids.binary_search(&uid).unwrap_or(usize::MAX);
        let mut locked: Vec<Option<StaleRun>> = uids.iter().map(|_| None).collect();
        for run in rows {
            if let Some(locked) = locked.get_mut(place(run.candidate.uid)) {
                *locked = Some(run);
            }
        }
        // The report keeps the order of the listing: oldest lease first.
        for candidate in self.chunk {
            let run = locked.get_mut(place(candidate.uid)).and_then(Option::take);
            let Some(run) = run else {
                self.attempt.missed.push(candidate.clone());
                continue;
            };
            let decision = self.reaper.decide(&run);
            if self.reaper.is_unwakeable(&run.candidate, decision) {
                self.attempt.unwakeable.push(run.candidate);
            } else {
                self.attempt.planned.push((run.candidate, decision));
            }
        }
        Ok(())
    }

    /// Reports a chunk that stands.
    fn report(&mut self, woken_up: impl Fn(&Candidate) -> bool, confirmed: bool) {
        let attempt = std::mem::take(&mut self.attempt);
        self.reaper.missed.extend(attempt.missed);
        for (candidate, decision) in attempt.planned {
            let woken_up = decision == Decision::Requeue && woken_up(&candidate);
            self.reaper.report.handle(candidate, decision, woken_up, confirmed);
        }
        for candidate in attempt.unwakeable {
            self.reaper.report.skip(candidate, Skip::Unwakeable);
        }
    }
}

impl Attempt {
    fn by_decision(&self) -> ByDecision {
        let mut uids = ByDecision::default();
        for (candidate, decision) in &self.planned {
            let list = match decision {
                Decision::Requeue => &mut uids.requeue,
                Decision::DeadLetter(Reason::NotRetryable) => &mut uids.not_retryable,
                Decision::DeadLetter(Reason::RetriesExhausted) => &mut uids.exhausted,
            };
            list.push(candidate.uid);
        }
        uids.requeue.sort_unstable();
        uids
    }
}

impl Reaper<'_> {
    fn requeue(&self, schema: &TableSchema, uids: &[u64]) -> Sql {
        let guard = sql!("{} AND {}", uid_in(uids.iter().copied()), self.stale());
        update(self.context, sql::requeue(schema, self.context.literal_now()), guard)
    }

    fn dead_letter(&self, uids: &ByDecision) -> Sql {
        let ByDecision { not_retryable, exhausted, .. } = uids;
        let reason = if exhausted.is_empty() {
            sql::reason(Reason::NotRetryable)
        } else if not_retryable.is_empty() {
            sql::reason(Reason::RetriesExhausted)
        } else {
            sql!(
                "IF({}, {}, {})",
                uid_in(exhausted.iter().copied()),
                sql::reason(Reason::RetriesExhausted),
                sql::reason(Reason::NotRetryable)
            )
        };
        let mut uids = [not_retryable.as_slice(), exhausted.as_slice()].concat();
        uids.sort_unstable();
        let failed = end(Status::Failed, reason, Sql::from("''"), self.context.literal_now());
        update(self.context, failed, sql!("{} AND {}", uid_in(uids), self.stale()))
    }
}
