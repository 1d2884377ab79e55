//! Reap: stale runs are taken back, requeued or dead-lettered, without ever blocking a live worker (rules 6 to 12).
//!
//! Candidates are listed by a plain read outside any transaction and without payloads. Then, in chunks and under READ
//! COMMITTED, they are locked by primary key with the guard repeated (locked rows are passed over) and written by primary key
//! with the guard repeated again. Guard: the run's uid, and stale.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use mysql_async::Params;

use crate::db::row::{bytes, count, flag, signed, text, unsigned};
use crate::db::schema::TableSchema;
use crate::db::{Session, idempotent};
use crate::domain::decision::{self, Decision, Facts};
use crate::domain::status::{Reason, Status};
use crate::error::{Error, Result};
use crate::ops::chunked::{BEHIND_SKIPPED, Chunks, EXAMINED_PER_LIMIT, LISTING, RetryBudget};
use crate::ops::dead_letter_stale;
use crate::ops::outbox::{self, Available, WakeUp, Written};
use crate::ops::requeue;
use crate::ops::sql::{Context, HAS_REQUEST, uid_list};

/// What a reaper is asked to do.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// How many runs are handled at most.
    pub limit: u64,
    /// The time that judges; the caller's own when absent.
    pub now: Option<i64>,
    /// Tell what would be done, and do nothing.
    pub dry_run: bool,
    /// Touch these runs alone.
    pub only: Option<Vec<u64>>,
    /// Leave these runs alone.
    pub except: Vec<u64>,
    /// Write a wake-up with every requeue.
    pub wake_up: Option<WakeUp>,
}

/// Why a stale run was passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    /// It was renewed, or moved on, in the meantime.
    Renewed,
    /// Somebody holds its lock.
    Contended,
    /// It was to be left alone.
    Excepted,
    /// Its uuid cannot take the placeholder's place in the message that was to be written with its requeue.
    Unwakeable,
    /// The connection died at the commit, and the row could not be read back: it may have been handled, and if so with its wake-up.
    Unknown,
}

impl Skip {
    /// The word in the report.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Renewed => "renewed",
            Self::Contended => "contended",
            Self::Excepted => "excepted",
            Self::Unwakeable => "unwakeable",
            Self::Unknown => "unknown",
        }
    }
}

/// One run in a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The run's uid.
    pub uid: u64,
    /// The run's uuid.
    pub uuid: String,
    /// The owner as the reaper found it.
    pub claimed_by: String,
    /// The lease as the reaper found it.
    pub lease_expires: i64,
    /// The counter as the row has it now (in a dry run: as it would have it).
    pub requeue_count: u32,
    /// Why: `None` when requeued, the termination reason when dead-lettered, why it was passed over when skipped.
    pub reason: Option<&'static str>,
    /// Was the wake-up written in the same transaction?
    pub woken_up: bool,
    /// Was the reply lost and the outcome read back?
    pub confirmed: bool,
}

/// What a reaper did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The runs that are back on the queue.
    pub requeued: Vec<Entry>,
    /// The runs that ended.
    pub dead_lettered: Vec<Entry>,
    /// The runs that were passed over.
    pub skipped: Vec<Entry>,
    /// Nothing was done, only told?
    pub dry_run: bool,
    /// Are there stale candidates that were not looked at?
    pub has_more: bool,
}

impl Report {
    fn handled(&self) -> u64 {
        (self.requeued.len() + self.dead_lettered.len()) as u64
    }
}

/// A stale run as the listing or the lock found it.
#[derive(Debug, Clone)]
struct Candidate {
    uid: u64,
    uuid: String,
    claimed_by: String,
    lease_expires: i64,
    requeue_count: u32,
}

/// A candidate with what the decision needs.
struct Judged {
    candidate: Candidate,
    pending_effect: Vec<u8>,
    has_request: bool,
}

/// What an attempt at a chunk has come to.
#[derive(Default)]
struct Attempt {
    /// The runs that are locked, and what is to become of them.
    planned: Vec<(Candidate, Decision)>,
    /// Locked runs that are left alone, since their wake-up could not be written.
    unwakeable: Vec<Candidate>,
    /// The messages that were written.
    written: Option<Written>,
    /// The message table was waited for in vain: no smaller chunk would help.
    outbox_blocked: bool,
    /// The commit is on its way: from here on an error says nothing about the outcome.
    committing: bool,
}

/// From 1 000 literals on `MariaDB` turns an `IN` list into a derived table.
const IN_LIST: usize = 900;
/// How long locked rows are waited for, all together, on servers that can do nothing else.
const WAITING: Duration = Duration::from_secs(20);

/// Handles stale runs, those whose lease has been over longest first, at most `limit` of them.
///
/// One run that is locked, contended or renewed stops no other and does not use the limit up.
///
/// # Errors
///
/// A configuration error before anything is written; a connection or query error, after which every run is as it was. An error
/// behind chunks that were handled already ends the reap with a report of those, which says that there is more.
pub async fn reap(
    session: &mut Session,
    context: Context<'_>,
    request: &Request,
) -> Result<Report> {
    let now = request.now.unwrap_or(context.time);
    let mut reaper = Reaper {
        context,
        request,
        now,
        report: Report { dry_run: request.dry_run, ..Report::default() },
        missed: Vec::new(),
        unknown: Vec::new(),
        patience: RetryBudget::new(),
        outbox_blocked: false,
        waiting_since: None,
    };
    reaper.check(session).await?;
    if now > 0 {
        let outcome = reaper.run(session).await;
        reaper.patience.restore_waits(session).await;
        match outcome {
            // What was requeued has to be told, or nobody wakes it: the error waits for the next call, which meets it first.
            Err(_) if !request.dry_run && reaper.report.handled() > 0 => {
                reaper.report.has_more = true;
                for candidate in std::mem::take(&mut reaper.unknown) {
                    reaper.skip(candidate, Skip::Unknown);
                }
            }
            outcome => outcome?,
        }
    }
    Ok(reaper.report)
}

struct Reaper<'a> {
    context: Context<'a>,
    request: &'a Request,
    now: i64,
    report: Report,
    /// Candidates that were not among the locked rows.
    missed: Vec<Candidate>,
    patience: RetryBudget,
    /// The runs of a chunk whose commit was lost and could not be read back.
    unknown: Vec<Candidate>,
    /// The message table was waited for in vain.
    outbox_blocked: bool,
    /// Since when rows are waited for.
    waiting_since: Option<Instant>,
}

impl Reaper<'_> {
    async fn check(&mut self, session: &mut Session) -> Result<()> {
        idempotent(session, async |session| {
            let facts = session.table(self.context.table()).await?;
            facts.require(requeue::COLUMNS)?;
            facts.require(dead_letter_stale::COLUMNS)?;
            facts.require(&["uuid"])?;
            match &self.request.wake_up {
                Some(wake_up) => outbox::check(session, self.context, wake_up).await,
                None => Ok(()),
            }
        })
        .await
    }

    async fn run(&mut self, session: &mut Session) -> Result<()> {
        let limit = self.request.limit;
        let except: HashSet<u64> = self.request.except.iter().copied().collect();
        let most = limit.saturating_mul(EXAMINED_PER_LIMIT);
        let mut examined = 0;
        let mut behind = None;
        let mut after = None;
        while self.report.handled() < limit {
            let wanted = (limit - self.report.handled()).min(most - examined).min(LISTING);
            if wanted == 0 || behind.is_some_and(|since: Instant| since.elapsed() > BEHIND_SKIPPED)
            {
                self.report.has_more = self.listing(session, after, 1).await?.1;
                break;
            }
            let (listed, more) = self.listing(session, after, wanted).await?;
            self.report.has_more = more;
            let Some(last) = listed.last() else { break };
            after = Some((last.candidate.lease_expires, last.candidate.uid));
            examined += listed.len() as u64;
            let (excepted, due): (Vec<Judged>, Vec<Judged>) =
                listed.into_iter().partition(|judged| except.contains(&judged.candidate.uid));
            for judged in excepted {
                self.skip(judged.candidate, Skip::Excepted);
            }
            if self.request.dry_run {
                self.foretell(due);
            } else {
                self.handle(session, due).await?;
            }
            if self.has_waited_enough() {
                self.report.has_more = true;
                break;
            }
            if !more {
                break;
            }
            behind.get_or_insert_with(Instant::now);
        }
        self.settle_missed(session).await
    }

    /// Lists at most `wanted` candidates behind `after`, oldest lease first, then uid; and whether there are more.
    async fn listing(
        &self,
        session: &mut Session,
        after: Option<(i64, u64)>,
        wanted: u64,
    ) -> Result<(Vec<Judged>, bool)> {
        let mut listed = match &self.request.only {
            None => {
                let sql = self.listing_sql("", after, wanted);
                self.list(session, &sql).await?
            }
            Some(only) => {
                let mut only = only.clone();
                only.sort_unstable();
                only.dedup();
                let mut all = Vec::new();
                for part in only.chunks(IN_LIST) {
                    let these = format!(" AND uid IN ({})", uid_list(part.iter().copied()));
                    let sql = self.listing_sql(&these, after, wanted);
                    all.extend(self.list(session, &sql).await?);
                }
                all.sort_by_key(|judged| (judged.candidate.lease_expires, judged.candidate.uid));
                all
            }
        };
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let more = listed.len() > wanted;
        listed.truncate(wanted);
        Ok((listed, more))
    }

    fn listing_sql(&self, these: &str, after: Option<(i64, u64)>, wanted: u64) -> String {
        let table = self.context.quoted();
        let force = if these.is_empty() { "" } else { " FORCE INDEX (PRIMARY)" };
        // Only a dry run decides by what the listing brings.
        let facts = if self.request.dry_run {
            format!("pending_effect, {HAS_REQUEST}")
        } else {
            "'', 0".to_owned()
        };
        let behind = after.map_or_else(String::new, |(lease, uid)| {
            format!(" AND (lease_expires > {lease} OR (lease_expires = {lease} AND uid > {uid}))")
        });
        format!(
            "SELECT uid, uuid, claimed_by, lease_expires, requeue_count, {facts} FROM {table}{force} WHERE {}{behind}{these} \
             ORDER BY lease_expires, uid LIMIT {}",
            self.stale(),
            wanted.saturating_add(1)
        )
    }

    /// The guard of a stale run, as text.
    fn stale(&self) -> String {
        format!(
            "status = 'running' AND lease_expires > 0 AND lease_expires < {}",
            self.context.time_literal(self.now)
        )
    }

    async fn list(&self, session: &mut Session, sql: &str) -> Result<Vec<Judged>> {
        idempotent(session, async |session| {
            let rows = session.query(sql, Params::Empty).await?;
            rows.into_iter().map(judged).collect()
        })
        .await
    }

    fn decide(&self, judged: &Judged) -> Decision {
        decision::stale(
            Facts {
                pending_effect: &judged.pending_effect,
                has_request: judged.has_request,
                requeue_count: judged.candidate.requeue_count,
            },
            self.context.options.max_requeues,
        )
    }

    fn skip(&mut self, candidate: Candidate, why: Skip) {
        self.report.skipped.push(entry(candidate, Some(why.as_str())));
    }

    fn foretell(&mut self, due: Vec<Judged>) {
        for judged in due {
            let decision = self.decide(&judged);
            if self.cannot_be_woken(&judged.candidate, decision) {
                self.skip(judged.candidate, Skip::Unwakeable);
            } else {
                self.record(judged.candidate, decision, false, false);
            }
        }
    }

    /// Would the run be requeued without the message that was asked for? Then it is left as it is: neither a corrupt message nor
    /// a requeue that nobody hears of.
    fn cannot_be_woken(&self, candidate: &Candidate, decision: Decision) -> bool {
        decision == Decision::Requeue
            && self.request.wake_up.is_some()
            && !outbox::fits(&candidate.uuid)
    }

    fn record(
        &mut self,
        candidate: Candidate,
        decision: Decision,
        woken_up: bool,
        confirmed: bool,
    ) {
        match decision {
            Decision::Requeue => {
                let mut entry = entry(candidate, None);
                entry.requeue_count = entry.requeue_count.saturating_add(1);
                entry.woken_up = woken_up;
                entry.confirmed = confirmed;
                self.report.requeued.push(entry);
            }
            Decision::DeadLetter(reason) => {
                let mut entry = entry(candidate, Some(reason.as_str()));
                entry.confirmed = confirmed;
                self.report.dead_lettered.push(entry);
            }
        }
    }

    /// Handles candidates in chunks. A chunk that keeps failing is halved, down to the one run that is to blame.
    async fn handle(&mut self, session: &mut Session, due: Vec<Judged>) -> Result<()> {
        let server = session.server().await?;
        let candidates: Vec<Candidate> = due.into_iter().map(|judged| judged.candidate).collect();
        let mut chunks = Chunks::new(&candidates, &server, usize::MAX);
        while let Some(chunk) = chunks.next() {
            if self.has_waited_enough() {
                break;
            }
            if let Err(error) = self.handle_chunk(session, &chunk).await {
                if !error.is_transient() || self.outbox_blocked {
                    return Err(error);
                }
                if let Some(candidate) = chunks.halve(chunk) {
                    self.skip(candidate, Skip::Contended);
                }
            }
        }
        Ok(())
    }

    fn has_waited_enough(&self) -> bool {
        self.waiting_since.is_some_and(|since| since.elapsed() > WAITING)
    }

    /// One chunk, with retries of what is transient and a new connection where one is lost.
    async fn handle_chunk(&mut self, session: &mut Session, chunk: &[Candidate]) -> Result<()> {
        let mut tries = 1;
        loop {
            let mut attempt = Attempt::default();
            match self.try_chunk(session, chunk, &mut attempt).await {
                Ok(()) => {
                    let woken_up = self.request.wake_up.is_some();
                    self.settle(chunk, attempt, |_| woken_up, false);
                    return Ok(());
                }
                Err(error) => {
                    session.rollback().await;
                    self.outbox_blocked = attempt.outbox_blocked;
                    if attempt.committing && !error.is_transient() {
                        // Lost, or refused in a way that leaves open what became of it: the rows tell.
                        match self.read_back(session, chunk, attempt).await {
                            Ok(true) => return Ok(()),
                            // Not committed: once more, all of it.
                            Ok(false) if self.patience.after_commit(&error) => {}
                            Ok(false) => return Err(error),
                            Err(second) => {
                                session.rollback().await;
                                self.unknown = chunk.to_vec();
                                return Err(crate::ops::confirm::unknown(&error, &second));
                            }
                        }
                    } else if !self.patience.before_commit(session, &error, &mut tries).await {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Reports a chunk that stands.
    fn settle(
        &mut self,
        chunk: &[Candidate],
        attempt: Attempt,
        woken_up: impl Fn(&Candidate) -> bool,
        confirmed: bool,
    ) {
        let locked: HashSet<u64> = attempt
            .planned
            .iter()
            .map(|(candidate, _)| candidate.uid)
            .chain(attempt.unwakeable.iter().map(|candidate| candidate.uid))
            .collect();
        self.missed
            .extend(chunk.iter().filter(|candidate| !locked.contains(&candidate.uid)).cloned());
        for (candidate, decision) in attempt.planned {
            let woken_up = decision == Decision::Requeue && woken_up(&candidate);
            self.record(candidate, decision, woken_up, confirmed);
        }
        for candidate in attempt.unwakeable {
            self.skip(candidate, Skip::Unwakeable);
        }
    }

    /// Locks, decides, writes and commits; six statements at most.
    async fn try_chunk(
        &mut self,
        session: &mut Session,
        chunk: &[Candidate],
        attempt: &mut Attempt,
    ) -> Result<()> {
        let facts = session.table(self.context.table()).await?;
        let locking = session.locking().await?;
        let mut uids: Vec<u64> = chunk.iter().map(|candidate| candidate.uid).collect();
        uids.sort_unstable();
        let (table, stale) = (self.context.quoted(), self.stale());
        if self.patience.shorten_waits(session, locking).await? {
            self.waiting_since.get_or_insert_with(Instant::now);
        }
        session.begin().await?;
        let sql = format!(
            "SELECT uid, uuid, claimed_by, lease_expires, requeue_count, pending_effect, {HAS_REQUEST} FROM {table} FORCE INDEX (PRIMARY) \
             WHERE uid IN ({}) AND {stale} ORDER BY uid{}",
            uid_list(uids.iter().copied()),
            locking.clause()
        );
        let locked: Vec<Judged> = session
            .query(&sql, Params::Empty)
            .await?
            .into_iter()
            .map(judged)
            .collect::<Result<_>>()?;
        // The report keeps the order of the listing: oldest lease first.
        let mut by_uid: HashMap<u64, Judged> =
            locked.into_iter().map(|judged| (judged.candidate.uid, judged)).collect();
        for candidate in chunk {
            if let Some(judged) = by_uid.remove(&candidate.uid) {
                let decision = self.decide(&judged);
                if self.cannot_be_woken(&judged.candidate, decision) {
                    attempt.unwakeable.push(judged.candidate);
                } else {
                    attempt.planned.push((judged.candidate, decision));
                }
            }
        }
        let mut requeue = Vec::new();
        let mut not_retryable = Vec::new();
        let mut exhausted = Vec::new();
        for (candidate, decision) in &attempt.planned {
            match decision {
                Decision::Requeue => requeue.push(candidate.uid),
                Decision::DeadLetter(Reason::NotRetryable) => not_retryable.push(candidate.uid),
                Decision::DeadLetter(Reason::RetriesExhausted) => exhausted.push(candidate.uid),
            }
        }
        if !requeue.is_empty() {
            requeue.sort_unstable();
            let sql = self.requeue_sql(&facts, &requeue);
            self.write(session, &sql, requeue.len()).await?;
        }
        if !not_retryable.is_empty() || !exhausted.is_empty() {
            let sql = self.dead_letter_sql(&not_retryable, &exhausted);
            self.write(session, &sql, not_retryable.len() + exhausted.len()).await?;
        }
        if let Some(wake_up) = &self.request.wake_up {
            let inserted =
                outbox::insert(session, self.context, wake_up, &requeue, Available::AtOnce).await;
            attempt.outbox_blocked = inserted.as_ref().is_err_and(Error::waited);
            attempt.written = inserted?;
        }
        attempt.committing = !attempt.planned.is_empty();
        session.commit().await
    }

    fn requeue_sql(&self, facts: &TableSchema, uids: &[u64]) -> String {
        format!(
            "UPDATE {} FORCE INDEX (PRIMARY) SET {} WHERE uid IN ({}) AND {}",
            self.context.quoted(),
            requeue::assignments(facts, &self.context.time_literal(self.context.time)),
            uid_list(uids.iter().copied()),
            self.stale()
        )
    }

    fn dead_letter_sql(&self, not_retryable: &[u64], exhausted: &[u64]) -> String {
        let mut uids = [not_retryable, exhausted].concat();
        uids.sort_unstable();
        let reason = if exhausted.is_empty() {
            format!("'{}'", Reason::NotRetryable.as_str())
        } else if not_retryable.is_empty() {
            format!("'{}'", Reason::RetriesExhausted.as_str())
        } else {
            format!(
                "IF(uid IN ({}), '{}', '{}')",
                uid_list(exhausted.iter().copied()),
                Reason::RetriesExhausted.as_str(),
                Reason::NotRetryable.as_str()
            )
        };
        let time = self.context.time_literal(self.context.time);
        format!(
            "UPDATE {} FORCE INDEX (PRIMARY) SET status = 'failed', termination_reason = {reason}, error_class = '', {}, \
             finished_at = {time}, tstamp = {time} WHERE uid IN ({}) AND {}",
            self.context.quoted(),
            dead_letter_stale::RELEASED,
            uid_list(uids),
            self.stale()
        )
    }

    /// Every row is locked and was looked at: a write that matched fewer contradicts that (the database's clock was set back),
    /// and takes the whole chunk back.
    async fn write(&self, session: &mut Session, sql: &str, rows: usize) -> Result<()> {
        match session.execute(sql, Params::Empty).await?.matched {
            Some(matched) if matched != rows as u64 => Err(Error::overtaken(format!(
                "{rows} runs were locked, but {matched} matched the write; the chunk was taken back"
            ))),
            _ => Ok(()),
        }
    }

    /// The outcome of a commit is unknown: reads back, under the rows' locks, whether the chunk stands there, and reports it then.
    ///
    /// It was written as a whole or not at all, so one run without its effect tells that it was not: the counter never goes back, and what has
    /// failed stays failed. A run with it may be another reaper's work, and tells nothing about the others.
    async fn read_back(
        &mut self,
        session: &mut Session,
        chunk: &[Candidate],
        attempt: Attempt,
    ) -> Result<bool> {
        let sql = format!(
            "SELECT uid, status, requeue_count, termination_reason FROM {} FORCE INDEX (PRIMARY) WHERE uid IN ({}) FOR UPDATE",
            self.context.quoted(),
            uid_list(attempt.planned.iter().map(|(candidate, _)| candidate.uid))
        );
        session.begin_reading_back().await?;
        let mut rows = HashMap::new();
        for mut row in session.query(&sql, Params::Empty).await? {
            let uid = unsigned(&mut row, 0)?;
            rows.insert(
                uid,
                (Status::parse(&text(&mut row, 1)?), count(&mut row, 2)?, text(&mut row, 3)?),
            );
        }
        let uuids = attempt.planned.iter().map(|(candidate, _)| candidate.uuid.as_str());
        let messages =
            outbox::standing(session, self.request.wake_up.as_ref(), attempt.written, uuids)
                .await?;
        session.rollback().await;
        let without_effect = attempt.planned.iter().any(|(candidate, decision)| {
            rows.get(&candidate.uid).is_some_and(|(status, requeues, reason)| match decision {
                Decision::Requeue => *requeues <= candidate.requeue_count,
                Decision::DeadLetter(planned) => {
                    *status != Some(Status::Failed) || reason != planned.as_str()
                }
            })
        });
        // Rows that somebody has deleted tell nothing.
        if without_effect || rows.is_empty() {
            return Ok(false);
        }
        // Where no message stands, a consumer has taken it, or somebody else requeued the run in between: a run that still waits is then
        // told as not woken, since a wake-up too many is harmless and a missing one is not.
        let waits: HashSet<u64> = rows
            .iter()
            .filter(|(_, (status, ..))| *status == Some(Status::Queued))
            .map(|(&uid, _)| uid)
            .collect();
        let wake_up = self.request.wake_up.is_some();
        let woken_up = |candidate: &Candidate| {
            wake_up
                && (messages.contains(candidate.uuid.as_str()) || !waits.contains(&candidate.uid))
        };
        self.settle(chunk, attempt, woken_up, true);
        Ok(true)
    }

    /// Tells why candidates were not among the locked rows: still stale means that somebody holds their lock.
    async fn settle_missed(&mut self, session: &mut Session) -> Result<()> {
        let missed = std::mem::take(&mut self.missed);
        for part in missed.chunks(IN_LIST) {
            let sql = format!(
                "SELECT uid FROM {} FORCE INDEX (PRIMARY) WHERE uid IN ({}) AND {}",
                self.context.quoted(),
                uid_list(part.iter().map(|candidate| candidate.uid)),
                self.stale()
            );
            let still: HashSet<u64> = idempotent(session, async |session| {
                let rows = session.query(&sql, Params::Empty).await?;
                rows.into_iter().map(|mut row| unsigned(&mut row, 0)).collect()
            })
            .await?;
            for candidate in part {
                let why =
                    if still.contains(&candidate.uid) { Skip::Contended } else { Skip::Renewed };
                self.skip(candidate.clone(), why);
            }
        }
        Ok(())
    }
}

fn entry(candidate: Candidate, reason: Option<&'static str>) -> Entry {
    Entry {
        uid: candidate.uid,
        uuid: candidate.uuid,
        claimed_by: candidate.claimed_by,
        lease_expires: candidate.lease_expires,
        requeue_count: candidate.requeue_count,
        reason,
        woken_up: false,
        confirmed: false,
    }
}

fn judged(mut row: mysql_async::Row) -> Result<Judged> {
    Ok(Judged {
        candidate: Candidate {
            uid: unsigned(&mut row, 0)?,
            uuid: text(&mut row, 1)?,
            claimed_by: text(&mut row, 2)?,
            lease_expires: signed(&mut row, 3)?,
            requeue_count: count(&mut row, 4)?,
        },
        pending_effect: bytes(&mut row, 5)?,
        has_request: flag(&mut row, 6)?,
    })
}
