//! What reap and sweep have in common: candidates are handled in chunks, a chunk that fails is attempted again or halved, and the
//! call is bounded in time (rules 8, 9 and 21).

use std::time::{Duration, Instant};

use super::confirm::{Failed, RetryBudget};
use crate::db::Session;
use crate::db::server::{Locking, ServerCapabilities};
use crate::error::Result;

/// Maximum number of candidates examined, as a multiple of `limit`.
const EXAMINED_PER_LIMIT: u64 = 10;
/// For how long further candidates are listed; the rest is for the next call.
const LISTING_TIME: Duration = Duration::from_secs(10);
/// Maximum number of candidates per listing.
const LISTING: u64 = 10_000;
/// For how long a call waits for locked rows altogether, on servers that cannot pass over them.
const WAITING_TIME: Duration = Duration::from_secs(20);
/// Maximum number of runs per chunk on servers that can only wait for a locked row: each halving costs a second there.
const CHUNK_WHERE_LOCKS_ARE_WAITED_FOR: usize = 16;

/// The listings of one call: how many candidates it may still examine.
pub(super) struct Listings {
    left: u64,
    /// Whether there was a listing.
    listed: bool,
    /// Since when further candidates are listed.
    since: Option<Instant>,
}

impl Listings {
    /// The listings of a call that handles at most `limit` runs.
    pub(super) const fn new(limit: u64) -> Self {
        Self { left: limit.saturating_mul(EXAMINED_PER_LIMIT), listed: false, since: None }
    }

    /// Returns how many candidates the next listing brings, where `missing` runs are missing to the limit; 0 ends the call.
    pub(super) fn next(&mut self, missing: u64) -> u64 {
        if self.listed && self.since.get_or_insert_with(Instant::now).elapsed() > LISTING_TIME {
            return 0;
        }
        missing.min(self.left).min(LISTING)
    }

    /// Counts the candidates of a listing.
    pub(super) fn examined(&mut self, candidates: usize) {
        self.left = self.left.saturating_sub(candidates as u64);
        self.listed = true;
    }
}

/// The work on chunks of candidates.
pub(super) trait ChunkWork {
    /// A run as it was listed.
    type Candidate: Clone;

    /// Maximum number of runs per chunk, where the server sets no smaller one.
    const CHUNK: usize;

    /// Handles a chunk in one transaction.
    async fn handle(
        &mut self,
        session: &mut Session,
        chunk: &[Self::Candidate],
        state: &mut CallState,
    ) -> Result<(), ChunkFailed>;

    /// Leaves out the one candidate that keeps failing.
    fn skip(&mut self, candidate: Self::Candidate);
}

/// Why a chunk failed.
pub(super) struct ChunkFailed {
    /// The failure.
    pub(super) failed: Failed,
    /// Another transaction holds locks of the message table: no smaller chunk would help.
    pub(super) outbox_blocked: bool,
}

/// What the chunks of one call share.
pub(super) struct CallState {
    /// The attempts that are left.
    pub(super) budget: RetryBudget,
    /// The lock waits.
    pub(super) waits: LockWaits,
}

impl CallState {
    pub(super) const fn new() -> Self {
        Self {
            budget: RetryBudget::of_many_transactions(),
            waits: LockWaits { connection: 0, since: None },
        }
    }
}

/// The waits for locked rows, on servers that cannot pass over them.
pub(super) struct LockWaits {
    /// The number of the connection whose lock waits are shortened, or 0.
    connection: u64,
    /// Since when the call waits for locked rows.
    since: Option<Instant>,
}

impl LockWaits {
    /// Returns whether the call has waited for locked rows for as long as it may.
    pub(super) fn are_over(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() > WAITING_TIME)
    }

    /// Shortens the lock waits of the connection where locked rows can only be waited for.
    pub(super) async fn shorten(&mut self, session: &mut Session, locking: Locking) -> Result<()> {
        if locking == Locking::Wait {
            if self.connection != session.generation() {
                session.shorten_lock_waits().await?;
                self.connection = session.generation();
            }
            self.since.get_or_insert_with(Instant::now);
        }
        Ok(())
    }

    /// Restores the lock waits. A connection on which that fails is discarded: the next one has lock waits as they should be.
    pub(super) async fn restore(&self, session: &mut Session) {
        if self.connection == session.generation()
            && session.is_open()
            && session.restore_lock_waits().await.is_err()
        {
            session.discard();
        }
    }
}

/// Handles candidates in chunks. A chunk that keeps failing is halved, down to the one run that makes it fail.
///
/// # Errors
///
/// An error that a smaller chunk does not help against. The chunks before it are handled.
pub(super) async fn handle<W: ChunkWork>(
    session: &mut Session,
    work: &mut W,
    state: &mut CallState,
    candidates: &[W::Candidate],
) -> Result<(), Failed> {
    let server = session.server().await.map_err(|error| Failed { error, unknown: false })?;
    let mut chunks = Chunks::new(candidates, &server, W::CHUNK);
    while let Some(chunk) = chunks.next() {
        if state.waits.are_over() {
            break;
        }
        if let Err(failure) = work.handle(session, &chunk, state).await {
            let ChunkFailed { failed, outbox_blocked } = failure;
            if !failed.error.is_transient() || outbox_blocked {
                return Err(failed);
            }
            if let Some(candidate) = chunks.halve(chunk) {
                work.skip(candidate);
            }
        }
    }
    Ok(())
}

/// The chunks that are still to be handled, the next one last.
struct Chunks<T>(Vec<Vec<T>>);

impl<T: Clone> Chunks<T> {
    /// Chunks of `most` candidates at most, and fewer where the server cannot pass over locked rows.
    fn new(candidates: &[T], server: &ServerCapabilities, most: usize) -> Self {
        let most = if server.locking == Locking::Wait {
            most.min(CHUNK_WHERE_LOCKS_ARE_WAITED_FOR)
        } else {
            most
        };
        Self(candidates.chunks(server.chunk_size().min(most)).rev().map(<[T]>::to_vec).collect())
    }

    /// Returns the next chunk.
    fn next(&mut self) -> Option<Vec<T>> {
        self.0.pop()
    }

    /// Puts a chunk back in halves, or returns its one candidate.
    fn halve(&mut self, mut chunk: Vec<T>) -> Option<T> {
        if chunk.len() <= 1 {
            return chunk.pop();
        }
        let second = chunk.split_off(chunk.len() / 2);
        self.0.push(second);
        self.0.push(chunk);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(version: &str) -> ServerCapabilities {
        ServerCapabilities::from_variables(&[("version".to_owned(), version.to_owned())])
    }

    #[test]
    fn chunks_come_in_order_and_halves_before_the_rest() {
        let candidates: Vec<u32> = (0..7).collect();
        let mut chunks = Chunks::new(&candidates, &server("10.11.6-MariaDB"), 4);
        let first = chunks.next().unwrap();
        assert_eq!(first, [0, 1, 2, 3]);
        assert_eq!(chunks.halve(first), None);
        assert_eq!(chunks.next().unwrap(), [0, 1]);
        let second = chunks.next().unwrap();
        assert_eq!((second.as_slice(), chunks.halve(second.clone())), (&[2, 3][..], None));
        let blamed = chunks.next().unwrap();
        assert_eq!(chunks.halve(blamed), Some(2));
        assert_eq!(
            (chunks.next().unwrap(), chunks.next().unwrap(), chunks.next()),
            (vec![3], vec![4, 5, 6], None)
        );
    }

    #[test]
    fn few_are_locked_at_once_where_locks_are_waited_for() {
        let candidates = vec![(); 100];
        let size = |version| Chunks::new(&candidates, &server(version), 90).next().unwrap().len();
        assert_eq!(
            (size("10.11.6-MariaDB"), size("10.2.44-MariaDB"), size("5.7.44")),
            (90, 16, 16)
        );
    }

    #[test]
    fn candidates_are_examined_up_to_ten_times_the_limit() {
        let mut listings = Listings::new(3);
        assert_eq!(listings.next(3), 3);
        listings.examined(28);
        assert_eq!((listings.next(3), listings.next(1)), (2, 1));
        listings.examined(2);
        assert_eq!(listings.next(3), 0);
        assert_eq!(Listings::new(u64::MAX).next(u64::MAX), LISTING);
    }
}
