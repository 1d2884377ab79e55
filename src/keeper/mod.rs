//! Kept leases: the heartbeat thread of a process, what it shares with the holder of a lease, and when a heartbeat is due.

pub mod interrupt_signal;
pub mod lease;
pub mod options;
mod schedule;
mod sync;
pub mod thread;

#[cfg(test)]
#[cfg(not(feature = "loom"))]
mod model;
#[cfg(all(test, feature = "loom"))]
mod orderings;
