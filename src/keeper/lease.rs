//! The holder's side of a kept lease.

use std::sync::Arc;

use super::shared::SharedLease;
use super::status::{EndReason, LeaseStatus};
use crate::error::Result;
use crate::process::clock::{self, MILLISECOND};

/// The holder's side of a kept lease. Dropping it releases the lease.
///
/// Reads are atomic loads and a reading of the clock. In a forked child the lease is `stopped`, and
/// the parent's heartbeats continue.
pub struct Lease {
    shared: Arc<SharedLease>,
}

impl Lease {
    pub(super) const fn new(shared: Arc<SharedLease>) -> Self {
        Self { shared }
    }

    fn status(&self) -> LeaseStatus {
        self.shared.status(clock::now())
    }

    /// Returns the status of the lease: held, unknown, lost, cancelled or stopped. The last three
    /// are final.
    #[must_use]
    pub fn state(&self) -> &'static str {
        self.status().as_str()
    }

    /// Returns whether the holder still has the run: exactly in held and unknown.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.status().is_final()
    }

    /// Returns the milliseconds until the lease expires (rule 17); 0 when it has ended.
    #[must_use]
    pub fn remaining_ms(&self) -> i64 {
        let now = clock::now();
        if self.shared.is_final(now) {
            return 0;
        }
        let rest = self.shared.deadline().saturating_sub(now);
        i64::try_from(rest / MILLISECOND).unwrap_or(i64::MAX)
    }

    /// Reports progress: `maxSilentSeconds` counts from here.
    ///
    /// # Errors
    ///
    /// Why the lease has ended. A holder that gets the error here is not interrupted with it as
    /// well.
    pub fn step(&self) -> Result<()> {
        let now = clock::now();
        match self.shared.status(now) {
            LeaseStatus::Held | LeaseStatus::Unknown => {
                self.shared.step(now);
                Ok(())
            }
            // No lock is taken: a thread of the parent may have held it at the moment of the fork.
            LeaseStatus::Ended(reason @ EndReason::Inherited) => {
                Err(reason.error(self.shared.uid, &self.shared.owner, None))
            }
            LeaseStatus::Ended(reason) => {
                self.shared.disarm();
                Err(self.shared.error(reason))
            }
        }
    }

    /// Returns the number of successful heartbeats, the first renewal included.
    #[must_use]
    pub fn beats(&self) -> i64 {
        i64::try_from(self.shared.heartbeats()).unwrap_or(i64::MAX)
    }

    /// Returns why the last heartbeat failed, or which limit paused the renewal.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        if self.shared.is_inherited() {
            return Some(EndReason::Inherited.clause().to_owned());
        }
        self.shared.last_error()
    }

    /// Returns the run's uid.
    #[must_use]
    pub fn run_uid(&self) -> u64 {
        self.shared.uid
    }

    /// Returns the owner.
    #[must_use]
    pub fn claimed_by(&self) -> &str {
        &self.shared.owner
    }

    /// Ends the renewal. No heartbeat is sent after it; one that is in flight is awaited, but not
    /// for long. The row is left as it is.
    pub fn release(&self) {
        if !self.shared.is_inherited() {
            self.shared.disarm_and_release();
            self.shared.wait_for_heartbeat();
            self.shared.control.lease_released();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // The copy of a forked child ends nothing.
        if !self.shared.is_inherited() {
            self.shared.disarm_and_release();
            self.shared.control.lease_released();
        }
    }
}
