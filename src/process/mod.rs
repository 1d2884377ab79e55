//! State that lives as long as a process or a thread: the sessions and their runtimes, the fork
//! check, the clock of leases, signals, identities.
//!
//! All of this state is tagged with the process that created it (its id and the count of forks that
//! led to it), and with the thread that owns it. After a fork the child forgets the inherited
//! state, never closes, flushes or deregisters it, and creates its own (rule 20).

pub(crate) mod clock;
pub(crate) mod fork;
pub mod owner_name;
pub mod sessions;
pub mod signals;
pub(crate) mod thread;
