//! The domain, pure: statuses, reasons, the fence, the failure taxonomy, decisions, backoff, and
//! the checks of arguments.
//!
//! Nothing here does I/O, reads a clock or knows Zend.

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
