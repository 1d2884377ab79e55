//! `NrLlmLease`: a lease that the heartbeat thread renews.

use ext_php_rs::flags::ClassFlags;
use ext_php_rs::prelude::*;

use super::convert::int;
use super::objects::Compare;
use crate::keeper::Lease;

/// A lease that the heartbeat thread renews.
#[php_class]
#[php(flags = ClassFlags::Final.union(ClassFlags::NoDynamicProperties))]
pub(super) struct NrLlmLease {
    lease: Lease,
}

impl Compare for NrLlmLease {
    fn is_equal(&self, _: &Self) -> bool {
        false
    }
}

impl NrLlmLease {
    pub(super) const fn new(lease: Lease) -> Self {
        Self { lease }
    }
}

#[php_impl]
impl NrLlmLease {
    /// Returns the state of the lease: held, unknown, lost, cancelled or stopped.
    fn state(&self) -> &'static str {
        self.lease.state()
    }

    /// Returns whether this process still owns the run.
    fn is_held(&self) -> bool {
        self.lease.is_held()
    }

    /// Returns the milliseconds until the lease expires; 0 when it has ended.
    fn remaining_ms(&self) -> i64 {
        self.lease.remaining_ms()
    }

    /// Reports progress.
    fn step(&self) -> PhpResult<()> {
        Ok(self.lease.step()?)
    }

    /// Returns the number of successful heartbeats, the first renewal included.
    fn beats(&self) -> i64 {
        self.lease.beats()
    }

    /// Returns why the last heartbeat failed, or which limit paused the renewal; null otherwise.
    fn last_error(&self) -> Option<String> {
        self.lease.last_error()
    }

    /// Returns the run's uid.
    fn run_uid(&self) -> i64 {
        int(self.lease.run_uid())
    }

    /// Returns the owner.
    fn claimed_by(&self) -> &str {
        self.lease.claimed_by()
    }

    /// Ends the renewal.
    fn release(&self) {
        self.lease.release();
    }

    /// Not cloneable: the engine refuses to call it.
    #[php(vis = "private", name = "__clone")]
    fn __clone(&self) {}
}
