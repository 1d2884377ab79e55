//! Reap: stale runs are requeued or dead-lettered, without ever blocking a live worker
//! (rules 6 to 12).
//!
//! Candidates are listed by a plain read outside any transaction and without payloads
//! (`listing.rs`). Then, in chunks, they are locked by primary key with the guard repeated (locked
//! rows are passed over) and written by primary key with the guard repeated again (`chunk.rs`).
//! Guard: the run's uid, and stale.

mod chunk;
mod listing;
mod report;

use std::collections::HashSet;

pub use report::{Entry, Report, Skip};

use super::chunked::{self, CallState, Listings, plain_read};
use super::sql::{Context, END_COLUMNS, IN_LIST, REQUEUE_COLUMNS, Sql, sql, stale, uid_in};
use crate::config::requests::{ReapRequest, fits};
use crate::db::row::unsigned;
use crate::db::{Session, idempotent};
use crate::domain::decision::{self, Decision, Facts};
use crate::error::Result;

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
struct StaleRun {
    candidate: Candidate,
    pending_effect: Vec<u8>,
    has_request: bool,
}

/// Handles stale runs, those whose lease expired longest ago first, at most `limit` of them.
///
/// One run that is locked, contended or renewed stops no other one and does not use up the limit
/// (rule 8).
///
/// # Errors
///
/// A configuration error before anything is written; a connection or query error, after which every
/// run is as it was. An error behind chunks that were handled already ends the reap with a report
/// of those, which says that there is more.
pub async fn reap(
    session: &mut Session,
    context: Context<'_>,
    request: &ReapRequest,
) -> Result<Report> {
    let now = request.now.unwrap_or(context.time);
    let mut reaper = Reaper {
        context,
        request,
        now,
        report: Report { dry_run: request.dry_run, ..Report::default() },
        missed: Vec::new(),
        unknown: Vec::new(),
    };
    let columns = [REQUEUE_COLUMNS, END_COLUMNS, &["uuid"]];
    chunked::check(session, context, &columns, request.wake_up.as_ref()).await?;
    if now > 0 {
        let mut state = CallState::new();
        let outcome = reaper.run(session, &mut state).await;
        state.waits.restore(session).await;
        match outcome {
            // Requeued runs must be reported, otherwise no worker is notified. The next call meets
            // the error first.
            Err(_) if !request.dry_run && reaper.report.handled() > 0 => {
                reaper.report.has_more = true;
                for candidate in std::mem::take(&mut reaper.unknown) {
                    reaper.report.skip(candidate, Skip::Unknown);
                }
            }
            outcome => outcome?,
        }
    }
    Ok(reaper.report)
}

struct Reaper<'a> {
    context: Context<'a>,
    request: &'a ReapRequest,
    now: i64,
    report: Report,
    /// Candidates that were not among the locked rows.
    missed: Vec<Candidate>,
    /// The runs of a chunk whose commit was lost and could not be read back.
    unknown: Vec<Candidate>,
}

impl Reaper<'_> {
    async fn run(&mut self, session: &mut Session, state: &mut CallState) -> Result<()> {
        let limit = self.request.limit;
        let except: HashSet<u64> = self.request.except.iter().copied().collect();
        let mut listings = Listings::new(limit);
        let mut after = None;
        while self.report.handled() < limit {
            let wanted = listings.next(limit - self.report.handled());
            if wanted == 0 {
                self.report.has_more = self.list(session, after, 1).await?.1;
                break;
            }
            let (listed, more) = self.list(session, after, wanted).await?;
            self.report.has_more = more;
            let Some(last) = listed.last() else { break };
            after = Some((last.candidate.lease_expires, last.candidate.uid));
            listings.examined(listed.len());
            let (excepted, due): (Vec<StaleRun>, Vec<StaleRun>) =
                listed.into_iter().partition(|run| except.contains(&run.candidate.uid));
            for run in excepted {
                self.report.skip(run.candidate, Skip::Excepted);
            }
            if self.request.dry_run {
                self.report_dry_run(due);
            } else {
                let candidates: Vec<Candidate> = due.into_iter().map(|run| run.candidate).collect();
                chunked::handle(session, self.context, self, state, candidates).await?;
            }
            if state.is_out_of_time() {
                self.report.has_more = true;
                break;
            }
            if !more {
                break;
            }
        }
        self.explain_missed(session).await
    }

    /// The guard of every statement.
    fn stale(&self) -> Sql {
        stale(self.context.literal(self.now))
    }

    fn decide(&self, run: &StaleRun) -> Decision {
        decision::stale(
            Facts {
                pending_effect: &run.pending_effect,
                has_request: run.has_request,
                requeue_count: run.candidate.requeue_count,
            },
            self.context.options.max_requeues,
        )
    }

    /// Reports what would be done with candidates.
    fn report_dry_run(&mut self, due: Vec<StaleRun>) {
        for run in due {
            let decision = self.decide(&run);
            if self.is_unwakeable(&run.candidate, decision) {
                self.report.skip(run.candidate, Skip::Unwakeable);
            } else {
                self.report.handle(run.candidate, decision, false, false);
            }
        }
    }

    /// Returns whether the run would be requeued without the message that was asked for. It is then
    /// left as it is: neither a corrupt message nor a requeue of which no worker is notified.
    fn is_unwakeable(&self, candidate: &Candidate, decision: Decision) -> bool {
        decision == Decision::Requeue && self.request.wake_up.is_some() && !fits(&candidate.uuid)
    }

    /// Reports why candidates were not among the locked rows: those that are still stale are locked
    /// by another transaction.
    async fn explain_missed(&mut self, session: &mut Session) -> Result<()> {
        let missed = std::mem::take(&mut self.missed);
        for part in missed.chunks(IN_LIST) {
            let read = sql!(
                "SELECT uid FROM {} FORCE INDEX (PRIMARY) WHERE {} AND {}",
                self.context.table(),
                uid_in(part.iter().map(|candidate| candidate.uid)),
                self.stale()
            );
            let still_stale = idempotent(session, async |session| {
                let rows = read.query(session).await?;
                rows.into_iter().map(|mut row| unsigned(&mut row, 0)).collect()
            })
            .await;
            let still_stale: HashSet<u64> =
                still_stale.map_err(|error| plain_read(self.context, error))?;
            for candidate in part {
                let contended = still_stale.contains(&candidate.uid);
                let why = if contended { Skip::Contended } else { Skip::Renewed };
                self.report.skip(candidate.clone(), why);
            }
        }
        Ok(())
    }
}
