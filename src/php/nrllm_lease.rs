//! `NrLlmLease`: a lease that a thread keeps renewing.

use ext_php_rs::flags::ClassFlags;
use ext_php_rs::prelude::*;

use super::convert::int;
use super::objects::Compare;
use crate::keeper::Lease;

/// A lease that a thread keeps renewing.
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
    /// How the lease stands: held, unknown, lost, cancelled or stopped.
    fn state(&self) -> &'static str {
        self.lease.state()
    }

    /// Returns whether the run is still owned by this process.
    fn is_held(&self) -> bool {
        self.lease.is_held()
    }

    /// Milliseconds until the lease expires; 0 when it has ended.
    fn remaining_ms(&self) -> i64 {
        self.lease.remaining_ms()
    }

    /// Reports progress.
    fn step(&self) -> PhpResult<()> {
        Ok(self.lease.step()?)
    }

    /// Number of successful heartbeats, the first renewal included.
    fn beats(&self) -> i64 {
        self.lease.beats()
    }

    /// Why the last heartbeat failed, or which limit paused the renewal; null otherwise.
    fn last_error(&self) -> Option<String> {
        self.lease.last_error()
    }

    /// The run's uid.
    fn run_uid(&self) -> i64 {
        int(self.lease.run_uid())
    }

    /// The owner.
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
