//! Sweep: queued runs that nothing woke, whose wake-up was lost in a crash, a deploy or a full disk (rule 13).
//!
//! Candidates are listed by a plain, bounded read over (status, crdate) outside any transaction. Then, in chunks, they are locked
//! by primary key (rows that another sweep or a claim holds are passed over) and marked by one write with `tstamp`, so that
//! nobody wakes them again within the time; the messages are written in the same transaction. Guard: the run's uid, `queued`,
//! and `tstamp` as it was listed.

use std::collections::HashMap;
use std::time::Instant;

use mysql_async::Params;

use super::chunked::{BEHIND_SKIPPED, Chunks, EXAMINED_PER_LIMIT, LISTING, RetryBudget};
use super::due_runs::{self, due_sql, last_touched, queued_seconds};
use super::outbox::{self, Available, FITTING, UUID, WakeUp, Written};
use super::sql::{Context, uid_list};
use crate::db::row::{count, signed, text, unsigned};
use crate::db::server::Locking;
use crate::db::{Session, idempotent};
use crate::error::{Error, Result};

/// What a sweep is asked to do.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// How long after it was due a run counts as stranded, in seconds.
    pub older_than_seconds: i64,
    /// How many runs are woken at most.
    pub limit: u64,
    /// The time that judges and marks; the caller's own when absent.
    pub now: Option<i64>,
    /// Write the wake-ups too.
    pub wake_up: Option<WakeUp>,
}

/// A run whose waking the caller has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranded {
    /// The run's uid.
    pub uid: u64,
    /// The run's uuid.
    pub uuid: String,
    /// The counter.
    pub requeue_count: u32,
    /// How long it has been queued.
    pub queued_seconds: i64,
    /// Was the wake-up written in the same transaction?
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

/// What an attempt at a chunk has come to.
#[derive(Default)]
struct Attempt {
    /// The candidates that are locked and as they were listed.
    claimed: Vec<Candidate>,
    /// What their `tstamp` is set to.
    mark: i64,
    /// The messages that were written.
    written: Option<Written>,
    /// The message table was waited for in vain: no smaller chunk would help.
    outbox_blocked: bool,
    /// The commit is on its way.
    committing: bool,
}

/// How many runs are marked at once: the guard has three literals for each, and from 1 000 on `MariaDB` rewrites the list.
const CHUNK: usize = 300;

/// Claims the waking of stranded runs, oldest first, at most `limit` of them: each is returned at most once within the time, also to
/// several sweeps at once. With `wake_up` their messages are written in the same transaction; a run whose uuid does not fit
/// into the envelope is then left for a sweep without.
///
/// # Errors
///
/// A configuration error before anything is written; a connection or query error, after which every run is as it was. An error
/// behind chunks that were claimed already ends the sweep with those, for the caller has to wake them.
pub async fn stranded_runs(
    session: &mut Session,
    context: Context<'_>,
    request: &Request,
) -> Result<Vec<Stranded>> {
    let now = request.now.unwrap_or(context.time);
    let mut sweep = Sweep {
        context,
        request,
        now,
        claimed: Vec::new(),
        patience: RetryBudget::new(),
        outbox_blocked: false,
        started: Instant::now(),
    };
    sweep.check(session).await?;
    if now > 0 {
        let outcome = sweep.run(session).await;
        sweep.patience.restore_waits(session).await;
        match outcome {
            Err(_) if !sweep.claimed.is_empty() => {}
            outcome => outcome?,
        }
    }
    Ok(sweep.claimed)
}

struct Sweep<'a> {
    context: Context<'a>,
    request: &'a Request,
    now: i64,
    claimed: Vec<Stranded>,
    patience: RetryBudget,
    /// The message table was waited for in vain.
    outbox_blocked: bool,
    started: Instant,
}

impl Sweep<'_> {
    async fn check(&self, session: &mut Session) -> Result<()> {
        idempotent(session, async |session| {
            session.table(self.context.table()).await?.require(due_runs::COLUMNS)?;
            match &self.request.wake_up {
                Some(wake_up) => outbox::check(session, self.context, wake_up).await,
                None => Ok(()),
            }
        })
        .await
    }

    async fn run(&mut self, session: &mut Session) -> Result<()> {
        let limit = self.request.limit;
        let most = limit.saturating_mul(EXAMINED_PER_LIMIT);
        let mut examined = 0;
        let mut after = None;
        while (self.claimed.len() as u64) < limit
            && examined < most
            && (examined == 0 || self.started.elapsed() < BEHIND_SKIPPED)
        {
            let wanted = (limit - self.claimed.len() as u64).min(most - examined).min(LISTING);
            let listed = self.listing(session, after, wanted).await?;
            let Some(last) = listed.last() else { break };
            after = Some((last.crdate, last.uid));
            examined += listed.len() as u64;
            let more = listed.len() as u64 == wanted;
            self.claim(session, listed).await?;
            if !more {
                break;
            }
        }
        Ok(())
    }

    /// Lists at most `wanted` candidates behind `after`, oldest first.
    async fn listing(
        &self,
        session: &mut Session,
        after: Option<(i64, u64)>,
        wanted: u64,
    ) -> Result<Vec<Candidate>> {
        let behind = after.map_or_else(String::new, |(crdate, uid)| {
            format!(" AND (crdate > {crdate} OR (crdate = {crdate} AND uid > {uid}))")
        });
        let now = self.context.time_literal(self.now);
        idempotent(session, async |session| {
            let facts = session.table(self.context.table()).await?;
            let columns = format!(
                "uid, uuid, requeue_count, tstamp, crdate, {} AS seconds",
                queued_seconds(&facts, &now)
            );
            let fitting = if self.request.wake_up.is_some() {
                format!(" AND {UUID} REGEXP ?")
            } else {
                String::new()
            };
            let stranded = format!(
                "{due} + {older} < {now}{behind}{fitting}",
                due = due_sql(&self.context, last_touched(&facts)),
                older = self.request.older_than_seconds,
            );
            let sql = due_runs::with_request(&self.context, &columns, &stranded, wanted);
            let params = if fitting.is_empty() {
                Params::Empty
            } else {
                Params::Positional(vec![FITTING.into()])
            };
            session.query(&sql, params).await?.into_iter().map(candidate).collect()
        })
        .await
    }

    /// Claims candidates in chunks. A chunk that keeps failing is halved, down to the one run that is to blame; that one waits for the
    /// next sweep.
    async fn claim(&mut self, session: &mut Session, candidates: Vec<Candidate>) -> Result<()> {
        let server = session.server().await?;
        let waits = server.locking == Locking::Wait;
        let mut chunks = Chunks::new(&candidates, &server, CHUNK);
        while let Some(chunk) = chunks.next() {
            if waits && self.started.elapsed() > BEHIND_SKIPPED {
                break;
            }
            if let Err(error) = self.claim_chunk(session, &chunk).await {
                if !error.is_transient() || self.outbox_blocked {
                    return Err(error);
                }
                let _ = chunks.halve(chunk);
            }
        }
        Ok(())
    }

    /// One chunk, with retries of what is transient and a new connection where one is lost.
    async fn claim_chunk(&mut self, session: &mut Session, chunk: &[Candidate]) -> Result<()> {
        let mut tries = 1;
        loop {
            let mut attempt = Attempt::default();
            match self.try_chunk(session, chunk, &mut attempt).await {
                Ok(()) => {
                    let woken_up = self.request.wake_up.is_some();
                    self.settle(attempt, |_| woken_up);
                    return Ok(());
                }
                Err(error) => {
                    session.rollback().await;
                    self.outbox_blocked = attempt.outbox_blocked;
                    if attempt.committing && !error.is_transient() {
                        match self.read_back(session, attempt).await {
                            Ok(true) => return Ok(()),
                            // Not committed: once more, all of it.
                            Ok(false) if self.patience.after_commit(&error) => {}
                            Ok(false) => return Err(error),
                            Err(second) => {
                                session.rollback().await;
                                return Err(super::confirm::unknown(&error, &second));
                            }
                        }
                    } else if !self.patience.before_commit(session, &error, &mut tries).await {
                        return Err(error);
                    }
                }
            }
        }
    }

    fn settle(&mut self, attempt: Attempt, woken_up: impl Fn(&Candidate) -> bool) {
        self.claimed.extend(attempt.claimed.into_iter().map(|candidate| Stranded {
            woken_up: woken_up(&candidate),
            uid: candidate.uid,
            uuid: candidate.uuid,
            requeue_count: candidate.requeue_count,
            queued_seconds: candidate.queued_seconds,
        }));
    }

    /// Locks, marks, writes the messages and commits; five statements.
    async fn try_chunk(
        &mut self,
        session: &mut Session,
        chunk: &[Candidate],
        attempt: &mut Attempt,
    ) -> Result<()> {
        let table = self.context.quoted();
        let locking = session.locking().await?;
        let mut uids: Vec<u64> = chunk.iter().map(|candidate| candidate.uid).collect();
        uids.sort_unstable();
        self.patience.shorten_waits(session, locking).await?;
        session.begin().await?;
        // The mark is read here, so that it is known what the row shows afterwards, whatever clock counts.
        let sql = format!(
            "SELECT uid, tstamp, CAST({} AS SIGNED) FROM {table} FORCE INDEX (PRIMARY) WHERE uid IN ({}) AND status = 'queued' ORDER BY uid{}",
            self.context.time_literal(self.now),
            uid_list(uids),
            locking.clause()
        );
        let mut locked = HashMap::new();
        for mut row in session.query(&sql, Params::Empty).await? {
            locked.insert(unsigned(&mut row, 0)?, signed(&mut row, 1)?);
            attempt.mark = signed(&mut row, 2)?;
        }
        attempt.claimed = chunk
            .iter()
            .filter(|candidate| locked.get(&candidate.uid) == Some(&candidate.tstamp))
            .cloned()
            .collect();
        if attempt.claimed.is_empty() {
            session.rollback().await;
            return Ok(());
        }
        let mut uids: Vec<u64> = attempt.claimed.iter().map(|candidate| candidate.uid).collect();
        uids.sort_unstable();
        let as_listed: Vec<String> = attempt
            .claimed
            .iter()
            .map(|candidate| format!("({},{})", candidate.uid, candidate.tstamp))
            .collect();
        let sql = format!(
            "UPDATE {table} FORCE INDEX (PRIMARY) SET tstamp = {} WHERE uid IN ({}) AND status = 'queued' AND (uid, tstamp) IN ({})",
            attempt.mark,
            uid_list(uids.iter().copied()),
            as_listed.join(",")
        );
        if let Some(matched) = session.execute(&sql, Params::Empty).await?.matched
            && matched != uids.len() as u64
        {
            let message = format!(
                "{} runs were locked, but {matched} matched the write; the chunk was taken back",
                uids.len()
            );
            return Err(Error::overtaken(message));
        }
        if let Some(wake_up) = &self.request.wake_up {
            let inserted =
                outbox::insert(session, self.context, wake_up, &uids, Available::AtOnce).await;
            attempt.outbox_blocked = inserted.as_ref().is_err_and(Error::waited);
            attempt.written = inserted?;
        }
        attempt.committing = true;
        session.commit().await
    }

    /// The outcome of a commit is unknown: reads back, under the rows' locks, whether the marks stand, and returns the runs then.
    ///
    /// All were marked or none, so one run that waits as it was listed tells that none was. A mark may be another sweep's of the same second: it
    /// tells nothing about the others.
    async fn read_back(&mut self, session: &mut Session, mut attempt: Attempt) -> Result<bool> {
        session.begin_reading_back().await?;
        let sql = format!(
            "SELECT uid, tstamp FROM {} FORCE INDEX (PRIMARY) WHERE uid IN ({}) AND status = 'queued' FOR UPDATE",
            self.context.quoted(),
            uid_list(attempt.claimed.iter().map(|candidate| candidate.uid)),
        );
        let mut waiting = HashMap::new();
        for mut row in session.query(&sql, Params::Empty).await? {
            waiting.insert(unsigned(&mut row, 0)?, signed(&mut row, 1)?);
        }
        let uuids = attempt.claimed.iter().map(|candidate| candidate.uuid.as_str());
        let messages =
            outbox::standing(session, self.request.wake_up.as_ref(), attempt.written, uuids)
                .await?;
        session.rollback().await;
        if attempt
            .claimed
            .iter()
            .any(|candidate| waiting.get(&candidate.uid) == Some(&candidate.tstamp))
        {
            return Ok(false);
        }
        // What does not wait any more was taken by a worker: woken or not, it runs.
        attempt.claimed.retain(|candidate| waiting.get(&candidate.uid) == Some(&attempt.mark));
        self.settle(attempt, |candidate| messages.contains(candidate.uuid.as_str()));
        Ok(true)
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
