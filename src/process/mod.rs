//! What lives as long as a process: the sessions and their runtimes, the fork check, identities.
//!
//! Everything here is tagged with the process that made it. After a fork the child forgets what it inherited, never closes,
//! flushes or deregisters it, and makes its own (rule 20).

pub mod identity;
pub mod sessions;
pub mod signals;
