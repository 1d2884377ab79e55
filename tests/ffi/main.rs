//! The C library: its header, and its calls from C.
#![cfg(feature = "ffi")]
// A test fails by a panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod header;
