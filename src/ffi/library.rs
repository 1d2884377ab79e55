//! Functions of the library as a whole.

use std::ffi::c_char;

use super::error::{ErrorOut, NrllmError, NrllmStatus, answer, report};
use super::memory::{Out, bytes, text};
use super::{lease, runtime};
use crate::domain::backoff;
use crate::domain::validate;
use crate::keeper;
use crate::process::{owner_name, sessions};

/// The version of this binary interface. It changes when a function, a type or the form of an
/// answer changes incompatibly; additions leave it unchanged.
pub const ABI_VERSION: u32 = 1;

/// The version of the crate, and so of the PHP extension that is built from it.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// Returns the version of this binary interface: 1. Call it before any other function; a library
/// with another number must not be used. Never fails. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn nrllm_abi_version() -> u32 {
    ABI_VERSION
}

/// Returns the version of the library, as "1.2.3". The text lives as long as the library and is
/// never freed. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn nrllm_version() -> *const c_char {
    VERSION.as_ptr().cast()
}

/// Closes the connections of the calling thread without waiting for the server; the next call opens
/// a new one. The connections of other threads stay open, and kept leases continue. A forked child
/// does not touch the connections of its parent. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn nrllm_close_all() {
    report(ErrorOut::NONE, || {
        sessions::close_thread();
        Ok(())
    });
}

/// Releases everything that the calling thread holds: releases its kept leases, closes its
/// connections and frees the handles that it made. It is for hosts that run separate pieces of work
/// on one thread and cannot know what the previous piece left open. Calls with a handle that the
/// thread made before are refused. Other threads are not affected. A forked child does not touch
/// the leases and connections of its parent. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn nrllm_reset() {
    report(ErrorOut::NONE, || {
        keeper::end_thread();
        drop(lease::LEASES.remove_all_of_this_thread());
        drop(runtime::RUNTIMES.remove_all_of_this_thread());
        sessions::close_thread();
        Ok(())
    });
}

/// Returns the identity of the calling thread for a segment, `<segment>:<host>:<pid>:<nonce>`, at
/// most 64 bytes. It stays the same for the life of the process, and differs after a fork and on
/// each thread.
///
/// `segment`: 1 to 24 bytes of printable ASCII. `identity` receives the text, freed with
/// `nrllm_string_free()`. Any thread may call it.
///
/// # Safety
///
/// `segment` is NULL or points to `segment_length` bytes; `identity` and `error` are NULL or
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_identity(
    segment: *const c_char,
    segment_length: usize,
    identity: *mut *mut c_char,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: the caller lends `segment_length` bytes at `segment`, by the contract in the header.
    let segment = unsafe { bytes("segment", segment, segment_length) };
    // SAFETY: `identity` and `error` are NULL or writable, by the contract in the header.
    let (identity, error) = unsafe { (Out::text("identity", identity), ErrorOut::new(error)) };
    answer(error, identity, || {
        let segment = segment?;
        let segment = std::str::from_utf8(segment)
            .map_err(|_| validate::ArgumentError::new("segment", "must be printable ASCII"))?;
        Ok(text(owner_name::of_this_thread(segment)?))
    })
}

/// Returns the backoff before the next attempt of a run that was requeued `requeue_count` times
/// before, in milliseconds, without jitter: 30 000 doubled each time, at most 600 000. Any thread
/// may call it.
///
/// # Safety
///
/// `milliseconds` and `error` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_backoff_ms(
    requeue_count: i64,
    milliseconds: *mut i64,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: `milliseconds` and `error` are NULL or writable, by the contract in the header.
    let (milliseconds, error) =
        unsafe { (Out::new("milliseconds", milliseconds, 0), ErrorOut::new(error)) };
    answer(error, milliseconds, || {
        // Any count has a backoff, also one that no row can hold.
        let count = validate::requeue_count(requeue_count.min(validate::MAX_U32))?;
        let wait = backoff::backoff_ms(
            count,
            backoff::REQUEUE_BACKOFF_MS,
            backoff::REQUEUE_BACKOFF_CAP_MS,
        );
        Ok(i64::try_from(wait).unwrap_or(i64::MAX))
    })
}
