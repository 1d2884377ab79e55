//! Decides which statements are retried: deadlocks on the same connection, lost connections on a
//! new one.

use std::time::Duration;

use super::session::Session;
use crate::error::{Error, Fate, Result};

/// Maximum number of attempts of a statement or transaction that ends in deadlocks.
pub(crate) const ATTEMPTS: u32 = 5;

/// Waits a random time before the next attempt, longer from attempt to attempt: up to 20 ms, then
/// up to 40 ms, and so on.
pub(crate) async fn pause(attempt: u32) {
    let random = getrandom::u32().unwrap_or(0x8000_0000);
    let spread = 10_000_u64 << attempt.min(6);
    let micros = 500 + u64::from(random) * spread / 4_294_967_296;
    tokio::time::sleep(Duration::from_micros(micros)).await;
}

impl Session {
    /// Returns whether the statement was refused for a transient reason. False inside a
    /// transaction, which the server has rolled back, and after a lock wait, which has used up its
    /// time.
    pub(super) fn may_repeat(&self, error: &Error, attempt: u32) -> bool {
        error.is_transient() && !error.waited() && !self.in_transaction() && attempt < ATTEMPTS
    }
}

/// Runs an operation that may be retried. When the connection is lost, it runs once more on a new
/// connection; a time-out is not retried, since its time is used up.
pub(crate) async fn idempotent<T>(
    session: &mut Session,
    mut operation: impl AsyncFnMut(&mut Session) -> Result<T>,
) -> Result<T> {
    match operation(session).await {
        Err(error) if error.fate == Fate::Lost => operation(session).await,
        outcome => outcome,
    }
}
