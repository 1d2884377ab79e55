//! What reap and sweep have in common: candidates are handled in chunks, a chunk that fails is
//! attempted again or halved, and the call is bounded in time (rules 8, 9 and 21).

use std::time::{Duration, Instant};

use super::confirm::{Failed, RetryBudget};
use super::outbox;
use super::sql::{Context, sql};
use crate::config::requests::WakeUp;
use crate::db::server::{Locking, ServerCapabilities};
use crate::db::{Session, idempotent};
use crate::error::{Error, Kind, Result, code};

/// Maximum number of candidates examined, as a multiple of `limit`.
const EXAMINED_PER_LIMIT: u64 = 10;
/// For how long further candidates are listed; the next call continues.
const LISTING_TIME: Duration = Duration::from_secs(10);
/// Maximum number of candidates per listing.
const LISTING: u64 = 10_000;
/// For how long a call continues after its first obstacle. On servers that cannot skip locked rows
/// it counts from the start.
const OBSTACLE_TIME: Duration = Duration::from_secs(20);
/// Maximum number of runs per chunk on servers that can only wait for a locked row: each halving
/// costs a second there.
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

    /// Returns how many candidates the next listing brings, where `missing` runs are missing to the
    /// limit; 0 ends the call.
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
    type Candidate;

    /// Maximum number of runs per chunk, where the server sets no smaller one.
    const CHUNK: usize;

    /// Handles a chunk in one transaction.
    async fn handle(
        &mut self,
        session: &mut Session,
        chunk: &[Self::Candidate],
        state: &mut CallState,
    ) -> Result<(), ChunkFailed>;

    /// Skips the one candidate that keeps failing.
    fn skip(&mut self, candidate: Self::Candidate, obstacle: Obstacle);
}

/// Why a chunk failed.
pub(super) struct ChunkFailed {
    /// The failure.
    pub(super) failed: Failed,
    /// Whether it failed while it wrote the messages.
    pub(super) in_messages: bool,
}

/// What keeps a chunk from being handled, and a smaller chunk may get around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// Another transaction holds the lock of a row, or conflicts again and again.
    Contended,
    /// A statement ran into its own time limit.
    TimedOut,
    /// A Galera node refuses a transaction of this size.
    TooLarge,
}

impl Obstacle {
    /// Returns whether chunks of this size fail, whatever runs they hold.
    fn is_of_the_size(self) -> bool {
        self != Self::Contended
    }
}

/// What the chunks of one call share.
pub(super) struct CallState {
    /// The attempts that are left.
    pub(super) budget: RetryBudget,
    /// The lock waits.
    pub(super) waits: LockWaits,
    /// Since when the call meets obstacles or waits for locked rows.
    since: Option<Instant>,
    /// Maximum number of runs per chunk, as this call has found out.
    most: usize,
}

impl CallState {
    pub(super) const fn new() -> Self {
        Self {
            budget: RetryBudget::of_many_transactions(),
            waits: LockWaits { connection: 0 },
            since: None,
            most: usize::MAX,
        }
    }

    /// Returns whether the call has spent its time on obstacles and waits. The next call continues.
    pub(super) fn is_out_of_time(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() > OBSTACLE_TIME)
    }
}

/// The lock waits of a connection, shortened on servers that cannot skip locked rows.
pub(super) struct LockWaits {
    /// The number of the connection whose lock waits are shortened, or 0.
    connection: u64,
}

impl LockWaits {
    /// Shortens the lock waits of the connection where locked rows can only be waited for.
    pub(super) async fn shorten(&mut self, session: &mut Session, locking: Locking) -> Result<()> {
        if locking == Locking::Wait && self.connection != session.generation() {
            session.shorten_lock_waits().await?;
            self.connection = session.generation();
        }
        Ok(())
    }

    /// Restores the lock waits. A connection on which that fails is discarded: the next one has
    /// lock waits as they should be.
    pub(super) async fn restore(&self, session: &mut Session) {
        if self.connection == session.generation()
            && session.is_open()
            && session.restore_lock_waits().await.is_err()
        {
            session.discard();
        }
    }
}

/// Handles candidates in chunks. A chunk that keeps failing is halved, down to the one run that
/// makes it fail.
///
/// # Errors
///
/// An error that a smaller chunk does not help against, as where another connection has locked the
/// table. The chunks before it are handled.
pub(super) async fn handle<W: ChunkWork>(
    session: &mut Session,
    context: Context<'_>,
    work: &mut W,
    state: &mut CallState,
    candidates: Vec<W::Candidate>,
) -> Result<(), Failed> {
    let server = session.server().await.map_err(|error| Failed { error, unknown: false })?;
    if server.locking == Locking::Wait {
        state.since.get_or_insert_with(Instant::now);
    }
    let mut chunks = Chunks::new(candidates, &server, W::CHUNK.min(state.most));
    while let Some(chunk) = chunks.next() {
        if state.is_out_of_time() {
            break;
        }
        let Err(failure) = work.handle(session, &chunk, state).await else {
            continue;
        };
        let obstacle = obstacle(session, context, failure).await?;
        state.since.get_or_insert_with(Instant::now);
        let half = (chunk.len() / 2).max(1);
        if let Some(candidate) = chunks.halve(chunk) {
            work.skip(candidate, obstacle);
        } else if obstacle.is_of_the_size() {
            state.most = half;
            chunks.shrink(half);
        }
    }
    Ok(())
}

/// Returns what keeps a chunk from being handled.
///
/// # Errors
///
/// The failure, where a smaller chunk does not help: an error that is not transient, locks of the
/// message table, or of the whole run table. A wait for the table answers with the same number as
/// one for a row (rule 30); a locking read of no row distinguishes them.
async fn obstacle(
    session: &mut Session,
    context: Context<'_>,
    failure: ChunkFailed,
) -> Result<Obstacle, Failed> {
    let ChunkFailed { failed, in_messages } = failure;
    let Failed { error, unknown } = &failed;
    let (timed_out, waited) = (error.statement_timed_out(), error.waited());
    if error.exceeds_write_set() {
        return Ok(Obstacle::TooLarge);
    }
    if *unknown || !(timed_out || error.is_transient()) || (waited && in_messages) {
        return Err(failed);
    }
    if (timed_out || waited) && table_is_locked(session, context).await {
        return Err(Failed { error: of_table(context, failed.error), unknown: false });
    }
    Ok(if timed_out { Obstacle::TimedOut } else { Obstacle::Contended })
}

/// Returns whether another connection has locked the run table as a whole: a locking read of a run
/// that does not exist waits for no row.
async fn table_is_locked(session: &mut Session, context: Context<'_>) -> bool {
    let nowait = match session.locking().await {
        Ok(Locking::NoWait) => " NOWAIT",
        _ => "",
    };
    let read = sql!(
        "SELECT uid FROM {} FORCE INDEX (PRIMARY) WHERE uid = 0 FOR UPDATE{}",
        context.table(),
        nowait
    );
    let outcome = read.query(session).await;
    outcome.is_err_and(|error| error.waited() || error.statement_timed_out())
}

/// Checks, before anything is written, that the run table has these columns and that the messages
/// can be written.
pub(super) async fn check(
    session: &mut Session,
    context: Context<'_>,
    columns: &[&[&str]],
    wake_up: Option<&WakeUp>,
) -> Result<()> {
    idempotent(session, async |session| {
        let schema = session.current_table(context.table()).await;
        let schema = schema.map_err(|error| plain_read(context, error))?;
        for columns in columns {
            schema.require(columns)?;
        }
        match wake_up {
            Some(wake_up) => outbox::check(session, context, wake_up).await,
            None => Ok(()),
        }
    })
    .await
}

/// Turns the error of a plain read into that of the table: a plain read waits for no row.
pub(super) fn plain_read(context: Context<'_>, error: Error) -> Error {
    if error.code == code::LOCK_WAIT_TIMEOUT { of_table(context, error) } else { error }
}

fn of_table(context: Context<'_>, error: Error) -> Error {
    Error {
        kind: Kind::Connection,
        message: format!(
            "timed out waiting for the table {}: another connection has locked it (LOCK TABLES, \
             FLUSH TABLES WITH READ LOCK as a \
             backup uses, or ALTER TABLE). Nothing was changed by this wait; call again when that \
             has ended (SHOW FULL PROCESSLIST)",
            context.table().quoted()
        ),
        ..error
    }
}

/// The chunks that are still to be handled, the next one last.
struct Chunks<T>(Vec<Vec<T>>);

impl<T> Chunks<T> {
    /// Chunks of `most` candidates at most, and fewer where the server cannot skip locked rows.
    fn new(candidates: Vec<T>, server: &ServerCapabilities, most: usize) -> Self {
        let most = if server.locking == Locking::Wait {
            most.min(CHUNK_WHERE_LOCKS_ARE_WAITED_FOR)
        } else {
            most
        };
        Self(Self::split(candidates, server.chunk_size().min(most)))
    }

    /// Splits candidates into chunks of `most`, the first one last.
    fn split(mut candidates: Vec<T>, most: usize) -> Vec<Vec<T>> {
        let most = most.max(1);
        let mut chunks = Vec::with_capacity(candidates.len().div_ceil(most));
        while candidates.len() > most {
            chunks.push(candidates.split_off((candidates.len() - 1) / most * most));
        }
        if !candidates.is_empty() {
            chunks.push(candidates);
        }
        chunks
    }

    /// Returns the next chunk.
    fn next(&mut self) -> Option<Vec<T>> {
        self.0.pop()
    }

    /// Makes the chunks that are left smaller.
    fn shrink(&mut self, most: usize) {
        let left: Vec<T> = self.0.drain(..).rev().flatten().collect();
        self.0 = Self::split(left, most);
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
        let mut chunks = Chunks::new(candidates, &server("10.11.6-MariaDB"), 4);
        let first = chunks.next().unwrap();
        assert_eq!(first, [0, 1, 2, 3]);
        assert_eq!(chunks.halve(first), None);
        assert_eq!(chunks.next().unwrap(), [0, 1]);
        let second = chunks.next().unwrap();
        assert_eq!((second.as_slice(), chunks.halve(second.clone())), (&[2, 3][..], None));
        let single = chunks.next().unwrap();
        assert_eq!(chunks.halve(single), Some(2));
        assert_eq!(
            (chunks.next().unwrap(), chunks.next().unwrap(), chunks.next()),
            (vec![3], vec![4, 5, 6], None)
        );
    }

    #[test]
    fn chunks_that_are_left_shrink_and_keep_their_order() {
        let candidates: Vec<u32> = (0..9).collect();
        let mut chunks = Chunks::new(candidates.clone(), &server("10.11.6-MariaDB"), 4);
        let first = chunks.next().unwrap();
        assert_eq!(chunks.halve(first), None);
        chunks.shrink(2);
        let mut left = Vec::new();
        while let Some(chunk) = chunks.next() {
            assert!((1..=2).contains(&chunk.len()));
            left.extend(chunk);
        }
        assert_eq!(left, candidates);
    }

    #[test]
    fn few_are_locked_at_once_where_locks_are_waited_for() {
        let candidates = vec![(); 100];
        let size =
            |version| Chunks::new(candidates.clone(), &server(version), 90).next().unwrap().len();
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
