//! The domain, pure: statuses, reasons, the write fence, the failure taxonomy, decisions, backoff,
//! and the checks of arguments.
//!
//! This module does no I/O, reads no clock and does not depend on Zend.

pub mod backoff;
pub mod decision;
pub mod failure;
pub mod holder;
pub mod lease_state;
pub mod owner;
pub mod status;
pub mod validate;

/// The default length of a lease, in seconds.
pub const LEASE_SECONDS: i64 = 900;
/// How often a run is put back on the queue, by failures and by reapers together, before it is
/// dead-lettered.
pub const MAX_REQUEUES: u32 = 3;
