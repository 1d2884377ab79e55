//! The C library: its header, and its calls as C sees them.
#![cfg(feature = "ffi")]
// A test says what went wrong by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod header;
