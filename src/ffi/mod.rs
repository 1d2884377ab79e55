//! The C boundary. Handles are opaque, each call returns a status and writes out-parameters,
//! structured values are JSON.
//!
//! Each function reads its pointers in the typed readers of `memory` and `error`, the only `unsafe`
//! that it contains, and passes them to `answer` or `report`, which run the call, catch panics and
//! write the out-parameters. There is no SQL and no policy here. NULL, stale handles and unreadable
//! input are errors. The header `php-ffi/nrllm_runtime.h` is generated from these files.

pub mod error;
pub mod failure;
mod handle;
mod input;
pub mod lease;
pub mod library;
pub mod memory;
pub mod runtime;
