//! The C boundary: opaque handles, a status code and out-parameters from each call, JSON for structured values.
//!
//! A function here reads its arguments, calls, and writes the answer: no SQL, no policy. It never unwinds into its caller, and it
//! tolerates NULL, stale handles and unreadable input with an error. The header `php-ffi/nrllm_runtime.h` is generated from these files.

pub mod error;
pub mod failure;
mod handle;
mod input;
pub mod lease;
pub mod library;
pub mod memory;
pub mod runtime;
