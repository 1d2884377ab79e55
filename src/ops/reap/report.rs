//! What a reap reports.

use super::Candidate;
use crate::domain::decision::Decision;

/// Why a stale run was left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    /// It was renewed, or moved on, in the meantime.
    Renewed,
    /// Another transaction holds its lock.
    Contended,
    /// The caller excepted it.
    Excepted,
    /// Its uuid cannot take the placeholder's place in the message that was to be written with its
    /// requeue.
    Unwakeable,
    /// A statement for this run alone ran into its time limit.
    TimedOut,
    /// A Galera node refuses the transaction for this run alone as too large.
    TooLarge,
    /// The connection was lost at the commit, and the row could not be read back: it may have been
    /// handled, and if so with its wake-up.
    Unknown,
}

impl Skip {
    /// Returns the word in the report.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Renewed => "renewed",
            Self::Contended => "contended",
            Self::Excepted => "excepted",
            Self::Unwakeable => "unwakeable",
            Self::TimedOut => "timed_out",
            Self::TooLarge => "too_large",
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
    /// The end of the lease as the reaper found it, in unix seconds.
    pub lease_expires: i64,
    /// The counter as the row has it now (in a dry run: as it would have it).
    pub requeue_count: u32,
    /// `None` when requeued, the termination reason when dead-lettered, the [`Skip`] when skipped.
    pub reason: Option<&'static str>,
    /// Whether the wake-up was written in the same transaction.
    pub woken_up: bool,
    /// Whether the reply was lost and the outcome read back.
    pub confirmed: bool,
}

impl Entry {
    fn new(candidate: Candidate, reason: Option<&'static str>) -> Self {
        Self {
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
}

/// What a reap did, or in a dry run would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The runs that are back on the queue.
    pub requeued: Vec<Entry>,
    /// The runs that ended.
    pub dead_lettered: Vec<Entry>,
    /// The runs that were left as they are.
    pub skipped: Vec<Entry>,
    /// Whether this was a dry run.
    pub dry_run: bool,
    /// Whether stale candidates are left that this call did not examine.
    pub has_more: bool,
}

impl Report {
    /// The number of runs that count against the limit (rule 8).
    pub(super) fn handled(&self) -> u64 {
        (self.requeued.len() + self.dead_lettered.len()) as u64
    }

    pub(super) fn skip(&mut self, candidate: Candidate, why: Skip) {
        self.skipped.push(Entry::new(candidate, Some(why.as_str())));
    }

    pub(super) fn handle(
        &mut self,
        candidate: Candidate,
        decision: Decision,
        woken_up: bool,
        confirmed: bool,
    ) {
        match decision {
            Decision::Requeue => {
                let mut entry = Entry::new(candidate, None);
                entry.requeue_count = entry.requeue_count.saturating_add(1);
                self.requeued.push(Entry { woken_up, confirmed, ..entry });
            }
            Decision::DeadLetter(reason) => {
                let entry = Entry::new(candidate, Some(reason.as_str()));
                self.dead_lettered.push(Entry { confirmed, ..entry });
            }
        }
    }
}
