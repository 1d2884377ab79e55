//! A kept lease: a thread of this library renews it until it is released.

use std::ffi::c_char;
use std::sync::Arc;

use super::error::{NrllmError, NrllmStatus, guard};
use super::handle::Table;
use super::input;
use super::memory::{Out, bytes, optional};
use super::runtime::{self, NrllmRuntime};
use crate::domain::validate::{self, ArgumentError};
use crate::error::{Error, Result};
use crate::keeper;
use crate::keeper::KeepOptions;
use crate::keeper::Lease;

/// A lease that a thread of this library keeps renewing. A handle may be used by any thread; in a forked child its state is
/// "stopped", and the parent's lease goes on.
pub struct NrllmKeptLease {
    _opaque: [u8; 0],
}

pub(super) static LEASES: Table<Lease> = Table::new("a handle of nrllm_keep_lease()");

fn lease(handle: *const NrllmKeptLease) -> Result<Arc<Lease>, ArgumentError> {
    LEASES.get("lease", handle)
}

/// Renews a lease once, then keeps renewing it from a thread of this library, on a connection of its own, until it is released.
///
/// `claimed_by`: the owner, 1 to 64 characters of UTF-8, compared byte by byte. `lease_seconds`: how far each beat extends the lease, at
/// least 2. `options`: NULL, or a JSON object with `everyMs` (between two beats: a third of the lease; from 100 to half the lease),
/// `maxSilentSeconds` (3600: without a step for so long the beats stop), `maxSeconds` (86400: after so long they stop for good);
/// `interruptOnLoss` may only be false: nothing but the PHP extension can interrupt PHP. `lease` receives the handle, freed with
/// `nrllm_kept_lease_free()`. `NRLLM_STATUS_LEASE_LOST`: `claimed_by` does not own the run; `NRLLM_STATUS_RUN_CANCELLED`: it was
/// cancelled. Any thread may call it; the thread of the library has all signals blocked and calls nothing of the caller's.
///
/// # Safety
///
/// The texts point to that many bytes; `lease` and `error` are places that may be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_keep_lease(
    runtime: *const NrllmRuntime,
    run_uid: i64,
    claimed_by: *const c_char,
    claimed_by_length: usize,
    lease_seconds: i64,
    options: *const c_char,
    options_length: usize,
    lease: *mut *mut NrllmKeptLease,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::new("lease", lease, std::ptr::null_mut())?;
            let runtime = runtime::runtime(runtime)?;
            let uid = validate::run_uid(run_uid)?;
            let owner = validate::claimed_by(bytes("claimedBy", claimed_by, claimed_by_length)?)?;
            let entries = match optional("options", options, options_length)? {
                Some(json) => input::entries("options", json)?,
                None => Vec::new(),
            };
            let keep = KeepOptions::parse(lease_seconds, &entries)?;
            if keep.interrupt_on_loss {
                return Err(Error::configuration(
                    "option interruptOnLoss needs the extension nrllm_runtime: only that can interrupt running PHP code; leave the option \
                     out and ask state() or step() between the steps",
                ));
            }
            let kept = keeper::keep(&runtime.key, &runtime.options, uid, owner, keep, None)?;
            answer.set(LEASES.insert(kept));
            Ok(())
        })
    }
}

/// Releases a lease and frees its handle. NULL, and a handle that was freed already, are ignored. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn nrllm_kept_lease_free(lease: *mut NrllmKeptLease) {
    // SAFETY: NULL takes no error.
    unsafe {
        guard(std::ptr::null_mut(), || {
            if let Some(lease) = LEASES.remove(lease) {
                // A call of another thread may hold the lease a little longer than its handle.
                lease.release();
            }
            Ok(())
        });
    }
}

/// Stops the beats: "held" and "unknown" become "stopped". The row is left as it is. May be called again. Any thread may call it.
///
/// # Safety
///
/// `error` is a place that may be written, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_kept_lease_release(
    lease: *const NrllmKeptLease,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            self::lease(lease)?.release();
            Ok(())
        })
    }
}

/// Says that progress was made: `maxSilentSeconds` counts from here. `NRLLM_STATUS_LEASE_LOST` when the lease is lost or stopped (the
/// message says why), `NRLLM_STATUS_RUN_CANCELLED` when the run was cancelled. Reads memory and a clock only. Any thread may call it.
///
/// # Safety
///
/// `error` is a place that may be written, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_kept_lease_step(
    lease: *const NrllmKeptLease,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: by this function's contract.
    unsafe { guard(error, || self::lease(lease)?.step()) }
}

/// How the lease stands: "held", "unknown" (the last beat failed, the deadline has not passed), "lost", "cancelled" or "stopped"; the last
/// three are final. Reads memory and a clock only. `state` receives the text, freed with `nrllm_string_free()`. Any thread may ask.
///
/// # Safety
///
/// `state` and `error` are places that may be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_kept_lease_state(
    lease: *const NrllmKeptLease,
    state: *mut *mut c_char,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::text("state", state)?;
            answer.set_text(self::lease(lease)?.state());
            Ok(())
        })
    }
}

/// Whether the run is still this process's: true exactly in "held" and "unknown". Reads memory and a clock only. Any thread may ask.
///
/// # Safety
///
/// `held` and `error` are places that may be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_kept_lease_is_held(
    lease: *const NrllmKeptLease,
    held: *mut bool,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::new("held", held, false)?;
            answer.set(self::lease(lease)?.is_held());
            Ok(())
        })
    }
}

/// Milliseconds until the lease runs out, counted from when the last successful beat was sent; 0 outside "held" and "unknown". Reads
/// memory and a clock only. Any thread may ask.
///
/// # Safety
///
/// `milliseconds` and `error` are places that may be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_kept_lease_remaining_ms(
    lease: *const NrllmKeptLease,
    milliseconds: *mut i64,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::new("milliseconds", milliseconds, 0)?;
            answer.set(self::lease(lease)?.remaining_ms());
            Ok(())
        })
    }
}

/// How many beats succeeded, the first renewal included. Reads memory only. Any thread may ask.
///
/// # Safety
///
/// `beats` and `error` are places that may be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_kept_lease_beats(
    lease: *const NrllmKeptLease,
    beats: *mut i64,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::new("beats", beats, 0)?;
            answer.set(self::lease(lease)?.beats());
            Ok(())
        })
    }
}

/// Why the last beat failed, or which limit ended the beats. `message` receives the text, freed with `nrllm_string_free()`, or NULL when
/// nothing went wrong. Any thread may ask.
///
/// # Safety
///
/// `message` and `error` are places that may be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_kept_lease_last_error(
    lease: *const NrllmKeptLease,
    message: *mut *mut c_char,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::text("message", message)?;
            if let Some(text) = self::lease(lease)?.last_error() {
                answer.set_text(text);
            }
            Ok(())
        })
    }
}
