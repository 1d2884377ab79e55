//! The lease, retry and reaping protocol of TYPO3's `nr_llm` agent runs, as a native runtime.
//!
//! Runs are rows of `tx_nrllm_agentrun`. A worker claims one under a lease, renews the lease while it works, and settles
//! the run; a reaper takes back the runs whose lease ran out. This crate holds the guarded SQL of that protocol and the
//! two doors to it: a PHP module and, in other builds, a C library.
//!
//! The rooms, each using only those below it:
//!
//! - `php` (feature `php`, default): the Zend boundary, one file a PHP class.
//! - `ffi` (feature `ffi`): the C boundary, for PHP's FFI and for programs in other languages.
//! - [`process`]: what lives as long as a process: sessions and their runtimes, the keeper of leases, the hand-over of a loss, fork
//!   checks, identities.
//! - [`store`]: the guarded SQL, a file an operation, over one session with the server.
//! - [`run`]: the domain: decisions, limits and the failure taxonomy. Pure: no I/O, no clock, no Zend.
//!
//! The rules that comments name are numbered in `docs/protocol.md`; a test whose name begins with `p17_` holds rule 17.

#[cfg(feature = "ffi")]
pub mod ffi;
pub mod process;
pub mod run;
pub mod store;

#[cfg(feature = "php")]
mod php;
