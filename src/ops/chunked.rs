//! What reaping and sweeping have in common: candidates are handled in chunks, a chunk that fails is tried again or halved, and all of it has its
//! bounds (rules 8, 9 and 21).

use std::time::Duration;

use crate::db::server::{Locking, ServerCapabilities};
use crate::db::{ATTEMPTS, Session, pause};
use crate::error::{Error, Fate, Result, code};

/// How many candidates are looked at, in limits.
pub(crate) const EXAMINED_PER_LIMIT: u64 = 10;
/// How long further listings are made; the rest is for the next call.
pub(crate) const BEHIND_SKIPPED: Duration = Duration::from_secs(10);
/// The most candidates that one listing brings.
pub(crate) const LISTING: u64 = 10_000;
/// How many runs are locked at once on servers that can only wait for a locked row: each halving costs a second there.
const WHERE_LOCKS_ARE_WAITED_FOR: usize = 16;
/// How often one call goes on with a new connection.
const RECONNECTS: u32 = 3;

/// The chunks that are still to be handled, the next one last.
pub(crate) struct Chunks<T>(Vec<Vec<T>>);

impl<T: Clone> Chunks<T> {
    /// Of `most` candidates at most, and fewer where the server cannot pass over locked rows.
    pub(crate) fn new(candidates: &[T], server: &ServerCapabilities, most: usize) -> Self {
        let most = if server.locking == Locking::Wait {
            most.min(WHERE_LOCKS_ARE_WAITED_FOR)
        } else {
            most
        };
        Self(candidates.chunks(server.chunk_size().min(most)).rev().map(<[T]>::to_vec).collect())
    }

    /// The next chunk.
    pub(crate) fn next(&mut self) -> Option<Vec<T>> {
        self.0.pop()
    }

    /// A chunk that keeps failing comes again in halves, down to the one candidate that is to blame: that one is given back.
    pub(crate) fn halve(&mut self, mut chunk: Vec<T>) -> Option<T> {
        if chunk.len() <= 1 {
            return chunk.pop();
        }
        let second = chunk.split_off(chunk.len() / 2);
        self.0.push(second);
        self.0.push(chunk);
        None
    }
}

/// What one call puts up with: how many lost connections are left, and on which connection lock waits were shortened.
pub(crate) struct RetryBudget {
    reconnects: u32,
    /// The number of the connection, or 0.
    short_waits: u64,
}

impl RetryBudget {
    pub(crate) const fn new() -> Self {
        Self { reconnects: RECONNECTS, short_waits: 0 }
    }

    /// Is a chunk tried again whose commit turned out not to have happened?
    pub(crate) fn after_commit(&mut self, error: &Error) -> bool {
        error.outcome_unknown() && self.reconnect()
    }

    /// Is a chunk tried again that failed before its commit? Waits where the reason passes.
    pub(crate) async fn before_commit(
        &mut self,
        session: &mut Session,
        error: &Error,
        tries: &mut u32,
    ) -> bool {
        if matches!(error.fate, Fate::Lost) && self.reconnect() {
            return true;
        }
        // A server, or a proxy, that does not know how to pass over locked rows.
        if error.code == code::PARSE && session.degrade_locking() {
            return true;
        }
        if error.is_transient() && !error.waited() && *tries < ATTEMPTS {
            pause(*tries).await;
            *tries += 1;
            return true;
        }
        false
    }

    const fn reconnect(&mut self) -> bool {
        let left = self.reconnects > 0;
        self.reconnects = self.reconnects.saturating_sub(1);
        left
    }

    /// Shortens this connection's lock waits where locked rows can only be waited for; whether they are.
    pub(crate) async fn shorten_waits(
        &mut self,
        session: &mut Session,
        locking: Locking,
    ) -> Result<bool> {
        if locking != Locking::Wait {
            return Ok(false);
        }
        if self.short_waits != session.generation() {
            session.shorten_lock_waits().await?;
            self.short_waits = session.generation();
        }
        Ok(true)
    }

    /// Takes that back. A connection on which it fails is thrown away: the next one has lock waits as they should be.
    pub(crate) async fn restore_waits(&self, session: &mut Session) {
        if self.short_waits == session.generation()
            && session.is_open()
            && session.restore_lock_waits().await.is_err()
        {
            session.discard();
        }
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
}
