//! What lives as long as a process: the sessions and their runtimes, the keeper of leases, the fork check,
//! identities.
//!
//! Everything here is tagged with the process that made it: its id, and the count of forks that led to it. After a fork the
//! child forgets what it inherited, never closes, flushes or deregisters it, and makes its own (rule 20).

pub(crate) mod clock;
pub(crate) mod fork;
pub mod owner_name;
pub mod sessions;
pub mod signals;
pub(crate) mod thread;
