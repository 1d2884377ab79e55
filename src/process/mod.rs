//! What lives as long as a process or a thread: the sessions and their runtimes, the fork check, the clock
//! of leases, signals, identities.
//!
//! Everything here is tagged with the process that made it (its id and the count of forks that led to it),
//! and with the thread that owns it. After a fork the child forgets what it inherited, never closes,
//! flushes or deregisters it, and makes its own (rule 20).

pub(crate) mod clock;
pub(crate) mod fork;
pub mod owner_name;
pub mod sessions;
pub mod signals;
pub(crate) mod thread;
