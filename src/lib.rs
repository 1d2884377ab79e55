//! The lease, retry and reaping protocol of TYPO3's `nr_llm` agent runs, as a native runtime.
//!
//! Runs are rows of `tx_nrllm_agentrun`. A worker claims a run under a lease, renews the lease
//! while it works, and ends the run; a reaper requeues or dead-letters the runs whose lease has
//! expired. This crate holds the guarded SQL of that protocol and its two bindings: a PHP extension
//! and, in other builds, a C library.
//!
//! The layers, each using only those below it:
//!
//! - `php` (feature `php`, default): the Zend boundary, one file per PHP class.
//! - `ffi` (feature `ffi`): the C boundary, for PHP's FFI and for programs in other languages.
//! - [`keeper`]: kept leases and the heartbeat thread; [`process`]: what lives as long as a
//!   process: sessions and their runtimes, fork checks, owner names.
//! - [`ops`]: the guarded SQL, one file per operation.
//! - [`db`]: one connection with the server.
//! - [`config`]: what a caller configures.
//! - [`domain`]: decisions, limits and the failure taxonomy. Pure: no I/O, no clock, no Zend.
//!
//! [`error`] and `views`, the keys of answers, stand beside these layers.
//!
//! The rules that comments name are numbered in `docs/protocol.md`; a test whose name begins with
//! `p17_` tests rule 17.

pub mod config;
pub mod db;
pub mod domain;
pub mod error;
#[cfg(feature = "ffi")]
pub mod ffi;
pub mod keeper;
pub mod ops;
pub mod process;

#[cfg(feature = "php")]
mod php;
#[cfg(any(feature = "php", feature = "ffi"))]
mod views;
