//! The C library: its header, and its calls as C sees them.
#![cfg(feature = "ffi")]

mod header;
