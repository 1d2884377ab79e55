//! Sweep: queued runs whose wake-up was lost in a crash, in a deploy or on a full disk (rule 13).
//!
//! Candidates are listed by a plain, bounded read over (status, crdate) outside any transaction.
//! Then, in chunks, they are locked by primary key (rows that another sweep or a claim holds are
//! passed over) and marked by one write of `tstamp`, so that no other sweep returns them within the
//! time; the messages are written in the same transaction. Guard: the run's uid, `queued`, and
//! `tstamp` as it was listed.

use std::collections::HashMap;

use super::chunked::{
    self, CallState, ChunkFailed, ChunkWork, Listings, LockWaits, Obstacle, plain_read,
};
use super::confirm::{self, Write};
use super::outbox::{self, Available, Written, has_fitting_uuid};
use super::sql::{
    Context, DUE_COLUMNS, Sql, due, last_touched, number, queued_seconds, queued_with_request, sql,
    uid_in, update,
};
use crate::config::requests::SweepRequest;
use crate::db::row::{count, signed, text, unsigned};
use crate::db::{Session, idempotent};
use crate::error::Result;

/// A stranded run. The caller has to notify a worker of it, unless its wake-up was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranded {
    /// The run's uid.
    pub uid: u64,
    /// The run's uuid.
    pub uuid: String,
    /// How often it was requeued.
    pub requeue_count: u32,
    /// For how many seconds it has been queued.
    pub queued_seconds: i64,
    /// Whether the wake-up was written in the same transaction.
    pub woken_up: bool,
}

/// A run as it was listed.
#[derive(Debug, Clone)]
struct Candidate {
    uid: u64,
    uuid: String,
    requeue_count: u32,
    queued_seconds: i64,
    tstamp: i64,
    crdate: i64,
}

/// Marks and returns stranded runs, oldest first, at most `limit` of them: within the time each is
/// returned at most once, also to several sweeps at once. With a wake-up their messages are written
/// in the same transaction; a run whose uuid does not fit into the envelope is then left for a
/// sweep without one.
///
/// # Errors
///
/// A configuration error before anything is written; a connection or query error, after which every
/// run is as it was. An error behind chunks that were claimed already ends the sweep with those:
/// the caller has to notify workers of them.
pub async fn stranded_runs(
    session: &mut Session,
    context: Context<'_>,
    request: &SweepRequest,
) -> Result<Vec<Stranded>> {
    let now = request.now.unwrap_or(context.time);
    let mut sweep = Sweep { context, request, now, claimed: Vec::new() };
    chunked::check(session, context, &[DUE_COLUMNS], request.wake_up.as_ref()).await?;
    if now > 0 {
        let mut state = CallState::new();
        let outcome = sweep.run(session, &mut state).await;
        state.waits.restore(session).await;
        match outcome {
            Err(_) if !sweep.claimed.is_empty() => {}
            outcome => outcome?,
        }
    }
    Ok(sweep.claimed)
}

struct Sweep<'a> {
    context: Context<'a>,
    request: &'a SweepRequest,
    now: i64,
    claimed: Vec<Stranded>,
}

impl Sweep<'_> {
    async fn run(&mut self, session: &mut Session, state: &mut CallState) -> Result<()> {
        let mut listings = Listings::new(self.request.limit);
        let mut after = None;
        loop {
            let missing = self.request.limit.saturating_sub(self.claimed.len() as u64);
            let wanted = listings.next(missing);
            if wanted == 0 {
                break;
            }
            let listed = self.list(session, after, wanted).await?;
            let Some(last) = listed.last() else { break };
            after = Some((last.crdate, last.uid));
            let examined = listed.len();
            listings.examined(examined);
            chunked::handle(session, self.context, self, state, listed).await?;
            if (examined as u64) < wanted || state.is_out_of_time() {
                break;
            }
        }
        Ok(())
    }

    /// Lists at most `wanted` candidates behind `after` (crdate, uid), oldest first.
    async fn list(
        &self,
        session: &mut Session,
        after: Option<(i64, u64)>,
        wanted: u64,
    ) -> Result<Vec<Candidate>> {
        let behind = after.map_or_else(
            || Sql::from(""),
            |(crdate, uid)| {
                let (crdate, uid) = (number(crdate), number(uid));
                sql!(" AND (crdate > {} OR (crdate = {} AND uid > {}))", &crdate, &crdate, uid)
            },
        );
        let fitting = match self.request.wake_up {
            Some(_) => sql!(" AND {}", has_fitting_uuid()),
            None => Sql::from(""),
        };
        let now = self.context.literal(self.now);
        idempotent(session, async |session| {
            let schema = session.table(self.context.table()).await?;
            let columns = sql!(
                "uid, uuid, requeue_count, tstamp, crdate, {} AS seconds",
                queued_seconds(&schema, &now)
            );
            let stranded = sql!(
                "{} + {} < {}{}{}",
                due(&self.context, last_touched(&schema)),
                number(self.request.older_than_seconds),
                &now,
                &behind,
                &fitting
            );
            let listing = queued_with_request(&self.context, columns, stranded, wanted);
            listing.query(session).await?.into_iter().map(candidate).collect()
        })
        .await
        .map_err(|error| plain_read(self.context, error))
    }

    fn claim(&mut self, candidate: Candidate, woken_up: bool) {
        let Candidate { uid, uuid, requeue_count, queued_seconds, .. } = candidate;
        self.claimed.push(Stranded { uid, uuid, requeue_count, queued_seconds, woken_up });
    }
}

impl ChunkWork for Sweep<'_> {
    type Candidate = Candidate;

    // The guard has three literals per run, and from 1 000 on MariaDB rewrites the list.
    const CHUNK: usize = 300;

    async fn handle(
        &mut self,
        session: &mut Session,
        chunk: &[Candidate],
        state: &mut CallState,
    ) -> Result<(), ChunkFailed> {
        let CallState { budget, waits, .. } = state;
        let mut write = ChunkWrite { sweep: self, chunk, waits, attempt: Attempt::default() };
        let outcome = confirm::write(session, budget, &mut write).await;
        let in_messages = write.attempt.in_messages;
        outcome.map_err(|failed| ChunkFailed { failed, in_messages })
    }

    fn skip(&mut self, _: Candidate, _: Obstacle) {
        // It waits for the next sweep.
    }
}

struct ChunkWrite<'w, 'a> {
    sweep: &'w mut Sweep<'a>,
    chunk: &'w [Candidate],
    waits: &'w mut LockWaits,
    attempt: Attempt,
}

/// What an attempt at a chunk has come to.
#[derive(Default)]
struct Attempt {
    /// The candidates that are locked and as they were listed.
    claimed: Vec<Candidate>,
    /// What their `tstamp` is set to.
    mark: i64,
    /// The messages that were written.
    written: Option<Written>,
    /// Whether it was about to write the messages.
    in_messages: bool,
}

impl Write for ChunkWrite<'_, '_> {
    type Answer = ();

    const SKIPS_LOCKED: bool = true;

    /// Locks, marks, writes the messages and commits; five statements.
    async fn attempt(&mut self, session: &mut Session, sent: &mut bool) -> Result<()> {
        self.attempt = Attempt::default();
        let context = self.sweep.context;
        self.lock(session).await?;
        if self.attempt.claimed.is_empty() {
            session.rollback().await;
            return Ok(());
        }
        let uids = self.attempt.uids();
        confirm::all_matched(self.mark(&uids).execute(session).await?, uids.len())?;
        if let Some(wake_up) = &self.sweep.request.wake_up {
            self.attempt.in_messages = true;
            self.attempt.written =
                outbox::insert(session, context, wake_up, &uids, Available::AtOnce).await?;
            self.attempt.in_messages = false;
        }
        *sent = true;
        session.commit().await?;
        let woken_up = self.sweep.request.wake_up.is_some();
        for candidate in std::mem::take(&mut self.attempt.claimed) {
            self.sweep.claim(candidate, woken_up);
        }
        Ok(())
    }

    /// Reads back, under the rows' locks, whether the marks were written, and returns the runs
    /// then.
    ///
    /// All were marked or none, so one run that is queued as it was listed proves that none was. A
    /// mark may be another sweep's of the same second: it proves nothing about the others.
    async fn read_back(&mut self, session: &mut Session) -> Result<Option<()>> {
        let claimed = &self.attempt.claimed;
        let read = sql!(
            "SELECT uid, tstamp FROM {} FORCE INDEX (PRIMARY) WHERE {} AND status = 'queued' FOR \
             UPDATE",
            self.sweep.context.table(),
            uid_in(claimed.iter().map(|candidate| candidate.uid))
        );
        session.begin_reading_back().await?;
        let mut queued = HashMap::new();
        for mut row in read.query(session).await? {
            queued.insert(unsigned(&mut row, 0)?, signed(&mut row, 1)?);
        }
        let uuids = claimed.iter().map(|candidate| candidate.uuid.as_str());
        let wake_up = self.sweep.request.wake_up.as_ref();
        let messages = outbox::remaining(session, wake_up, self.attempt.written, uuids).await?;
        session.rollback().await;
        if claimed.iter().any(|candidate| queued.get(&candidate.uid) == Some(&candidate.tstamp)) {
            return Ok(None);
        }
        let mark = self.attempt.mark;
        for candidate in std::mem::take(&mut self.attempt.claimed) {
            // A run that is not queued any more was claimed by a worker: no wake-up is needed.
            if queued.get(&candidate.uid) == Some(&mark) {
                let woken_up = messages.contains(candidate.uuid.as_str());
                self.sweep.claim(candidate, woken_up);
            }
        }
        Ok(Some(()))
    }
}

impl ChunkWrite<'_, '_> {
    /// Locks the chunk, and reads the mark from the clock that counts, so that the value of the
    /// rows is known for the reading back.
    async fn lock(&mut self, session: &mut Session) -> Result<()> {
        let locking = session.locking().await?;
        let mut uids: Vec<u64> = self.chunk.iter().map(|candidate| candidate.uid).collect();
        uids.sort_unstable();
        self.waits.shorten(session, locking).await?;
        session.begin().await?;
        let lock = sql!(
            "SELECT uid, tstamp, CAST({} AS SIGNED) FROM {} FORCE INDEX (PRIMARY) \
             WHERE {} AND status = 'queued' ORDER BY uid{}",
            self.sweep.context.literal(self.sweep.now),
            self.sweep.context.table(),
            uid_in(uids),
            locking.clause()
        );
        let mut locked = HashMap::new();
        for mut row in lock.query(session).await? {
            locked.insert(unsigned(&mut row, 0)?, signed(&mut row, 1)?);
            self.attempt.mark = signed(&mut row, 2)?;
        }
        let is_locked =
            |candidate: &&Candidate| locked.get(&candidate.uid) == Some(&candidate.tstamp);
        self.attempt.claimed = self.chunk.iter().filter(is_locked).cloned().collect();
        Ok(())
    }

    fn mark(&self, uids: &[u64]) -> Sql {
        let as_listed = self
            .attempt
            .claimed
            .iter()
            .map(|candidate| sql!("({},{})", number(candidate.uid), number(candidate.tstamp)));
        let guard = sql!(
            "{} AND status = 'queued' AND (uid, tstamp) IN ({})",
            uid_in(uids.iter().copied()),
            Sql::join(as_listed, ",")
        );
        update(self.sweep.context, sql!("tstamp = {}", number(self.attempt.mark)), guard)
    }
}

impl Attempt {
    /// The uids of the claimed runs, sorted.
    fn uids(&self) -> Vec<u64> {
        let mut uids: Vec<u64> = self.claimed.iter().map(|candidate| candidate.uid).collect();
        uids.sort_unstable();
        uids
    }
}

fn candidate(mut row: mysql_async::Row) -> Result<Candidate> {
    Ok(Candidate {
        uid: unsigned(&mut row, 0)?,
        uuid: text(&mut row, 1)?,
        requeue_count: count(&mut row, 2)?,
        tstamp: signed(&mut row, 3)?,
        crdate: signed(&mut row, 4)?,
        queued_seconds: signed(&mut row, 5)?,
    })
}
