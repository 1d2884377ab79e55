//! What concerns the library as a whole.

use std::ffi::c_char;

use super::error::{NrllmError, NrllmStatus, guard};
use super::memory::{Out, bytes};
use super::{lease, runtime};
use crate::domain::backoff;
use crate::domain::validate;
use crate::keeper;
use crate::process::{owner_name, sessions};

/// The version of this binary interface. It changes when a function, a type or the form of an answer changes in a way that a caller
/// must know of; what is only added leaves it as it is.
pub const ABI_VERSION: u32 = 1;

/// The version of the crate, and so of the PHP extension that is built from it.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// The version of this binary interface: 1. Ask it first, before anything else of the library is used; an interface of another
/// number must not be used at all. Never fails. Any thread may ask.
#[unsafe(no_mangle)]
pub extern "C" fn nrllm_abi_version() -> u32 {
    ABI_VERSION
}

/// The version of the library, as "1.2.3". Lives as long as the library; never freed. Any thread may ask.
#[unsafe(no_mangle)]
pub extern "C" fn nrllm_version() -> *const c_char {
    VERSION.as_ptr().cast()
}

/// Closes the connections of the calling thread without waiting for the server; the next call opens a
/// new one. The connections of other threads stay open, and kept leases go on. In a forked child the
/// connections of its parent are left alone. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn nrllm_close_all() {
    // SAFETY: NULL takes no error.
    unsafe {
        guard(std::ptr::null_mut(), || {
            sessions::close_thread();
            Ok(())
        });
    }
}

/// Ends everything that the calling thread holds: the leases it keeps are released, its connections
/// closed and the handles it made freed. For hosts that end one piece of work and begin another on the
/// same thread, and cannot know what the first one left. No handle that the thread made before may be
/// used afterwards (it is refused). Other threads are not affected. In a forked child the leases and
/// connections of its parent are left alone. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn nrllm_reset() {
    // SAFETY: NULL takes no error.
    unsafe {
        guard(std::ptr::null_mut(), || {
            keeper::end_thread();
            drop(lease::LEASES.remove_all_of_this_thread());
            drop(runtime::RUNTIMES.remove_all_of_this_thread());
            sessions::close_thread();
            Ok(())
        });
    }
}

/// The identity of the calling thread for a segment, `<segment>:<host>:<pid>:<nonce>`, at most 64 bytes: the same as long as the
/// process lives, another after a fork, and another on each thread.
///
/// `segment`: 1 to 24 bytes of printable ASCII. `identity` receives the text, freed with `nrllm_string_free()`. Any thread may call it.
///
/// # Safety
///
/// `segment` points to that many bytes; `identity` and `error` are places that may be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_identity(
    segment: *const c_char,
    segment_length: usize,
    identity: *mut *mut c_char,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::text("identity", identity)?;
            let segment = bytes("segment", segment, segment_length)?;
            let segment = std::str::from_utf8(segment)
                .map_err(|_| validate::ArgumentError::new("segment", "must be printable ASCII"))?;
            answer.set_text(owner_name::of_this_thread(segment)?);
            Ok(())
        })
    }
}

/// The backoff before the next attempt of a run that was requeued `requeue_count` times before, in milliseconds, without jitter:
/// 30 000 doubled each time, at most 600 000. Any thread may call it.
///
/// # Safety
///
/// `milliseconds` and `error` are places that may be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_backoff_ms(
    requeue_count: i64,
    milliseconds: *mut i64,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::new("milliseconds", milliseconds, 0)?;
            // Any count has a backoff, also one that no row can hold.
            let count = validate::requeue_count(requeue_count.min(validate::MAX_U32))?;
            let wait = backoff::backoff_ms(
                count,
                backoff::REQUEUE_BACKOFF_MS,
                backoff::REQUEUE_BACKOFF_CAP_MS,
            );
            answer.set(i64::try_from(wait).unwrap_or(i64::MAX));
            Ok(())
        })
    }
}
