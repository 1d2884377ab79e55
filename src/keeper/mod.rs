//! Kept leases: leases that a thread of this process renews until they end, whatever the process is
//! doing (rules 16 to 20).
//!
//! # The life of a kept lease
//!
//! [`keep`] renews the lease once on the calling thread's session, and hands it to the heartbeat
//! thread. That thread sends a heartbeat at every interval, on the same session
//! ([`crate::process::sessions`]). The holder reads the status through [`Lease`]; each read
//! compares the deadline with the clock, so that a process that was stopped and continued never
//! reads a stale `held`.
//!
//! ```text
//!                a heartbeat fails
//!        +------+ ----------------> +---------+
//! keep ->| held |                   | unknown |
//!        +------+ <---------------- +---------+
//!           |      a heartbeat succeeds  |
//!           |                            |
//!           +-------------+--------------+
//!                         |
//!      +------------------+-----------------+-------------------+
//!      | the deadline passed; a heartbeat   | a heartbeat found | release(), drop, the end of the
//!      | found another owner, the run       | the run cancelled | request; a heartbeat found the
//!      | requeued, deleted or in an unknown |                   | run completed, failed or
//!      v status                             v                   v waiting; read in a forked child
//!   +------+                          +-----------+        +---------+
//!   | lost |                          | cancelled |        | stopped |
//!   +------+                          +-----------+        +---------+
//! ```
//!
//! Lost, cancelled and stopped are final and end the heartbeats. Two limits pause the renewal while
//! the lease is held or unknown: no [`Lease::step`] for `maxSilentSeconds` (a step before the
//! deadline resumes it), and `maxSeconds` altogether. The lease then expires, and is lost.
//!
//! # Threads
//!
//! A lease belongs to the thread that keeps it: [`end_thread`] ends the leases of the calling
//! thread, and [`take_loss`] returns their losses. One heartbeat thread per process serves the
//! leases of all threads. It is started with the first lease and ends with the last, and is gone at
//! the end of the request.
//!
//! The modules, each using only those below it: `registry` (the leases of a process and its
//! thread), `thread` (the loop) and `heartbeat` (one heartbeat), `lease` (the holder's side),
//! `shared` (what both sides share, with its atomics), `control` (requests to the thread),
//! `interrupt_signal` (how a loss reaches running code), and the pure `schedule`, `status` and
//! `options`.

mod control;
mod heartbeat;
mod interrupt_signal;
mod lease;
mod options;
mod registry;
mod schedule;
mod shared;
mod status;
mod sync;
mod thread;

#[cfg(test)]
#[cfg(not(feature = "loom"))]
mod model;
#[cfg(all(test, feature = "loom"))]
mod orderings;

pub use interrupt_signal::InterruptSignal;
pub use lease::Lease;
pub use options::KeepOptions;
pub use registry::{end_all, end_thread, keep, take_loss, take_loss_if};
