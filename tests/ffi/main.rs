//! The C library: its header, and its calls as C sees them.
#![cfg(feature = "ffi")]
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

mod header;
