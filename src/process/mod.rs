//! What lives as long as a process: the sessions and their runtimes, the keeper of leases, the fork check,
//! identities.
//!
//! Everything here is tagged with the process that made it: its id, and the count of forks that led to it. After a fork the
//! child forgets what it inherited, never closes, flushes or deregisters it, and makes its own (rule 20).

mod beats;
mod clock;
pub(crate) mod fork;
pub mod handover;
pub mod identity;
pub mod keep_options;
pub mod keeper;
pub mod lease;
pub mod sessions;
pub mod signals;

// With the other model, and in here for what it explores: the private parts.
#[cfg(test)]
#[path = "../../tests/models/keeper.rs"]
mod model;
