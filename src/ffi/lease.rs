//! Kept leases: the heartbeat thread of this library renews a lease until it is released.

use std::ffi::c_char;
use std::sync::Arc;

use super::error::{ErrorOut, NrllmError, NrllmStatus, answer, report};
use super::handle::Table;
use super::input;
use super::memory::{Out, bytes, optional, text};
use super::runtime::{self, NrllmRuntime};
use crate::domain::validate::{self, ArgumentError};
use crate::error::{Error, Result};
use crate::keeper;
use crate::keeper::KeepOptions;
use crate::keeper::Lease;

/// A lease that the heartbeat thread of this library renews. Any thread may use the handle. In a
/// forked child its state is "stopped"; the parent's lease continues.
pub struct NrllmKeptLease {
    _opaque: [u8; 0],
}

pub(super) static LEASES: Table<Lease> = Table::new("a handle of nrllm_keep_lease()");

fn lease(handle: *const NrllmKeptLease) -> Result<Arc<Lease>, ArgumentError> {
    LEASES.get("lease", handle)
}

/// Renews a lease once, then renews it from the heartbeat thread of this library, on a separate
/// connection, until it is released.
///
/// `claimed_by`: the owner, 1 to 64 characters of UTF-8, compared byte by byte. `lease_seconds`:
/// how far each heartbeat extends the lease, at least 2. `options`: NULL, or a JSON object with
/// `everyMs` (interval of the heartbeats: a third of the lease by default; from 100 to half the
/// lease), `maxSilentSeconds` (3600: the renewal pauses after so long without a progress report),
/// `maxSeconds` (86400: the renewal ends after so long); `interruptOnLoss` must be false: only the
/// PHP extension can interrupt PHP. `lease` receives the handle, freed with
/// `nrllm_kept_lease_free()`. `NRLLM_STATUS_LEASE_LOST`: `claimed_by` does not own the run;
/// `NRLLM_STATUS_RUN_CANCELLED`: the run was cancelled. Any thread may call it. The heartbeat
/// thread blocks all signals and never calls code of the caller.
///
/// # Safety
///
/// Each text is NULL or points to as many bytes as its length says; `lease` and `error` are NULL or
/// writable.
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
    // SAFETY: the caller lends `claimed_by_length` bytes at `claimed_by`, by the contract in the
    // header.
    let claimed_by = unsafe { bytes("claimedBy", claimed_by, claimed_by_length) };
    // SAFETY: the caller lends `options_length` bytes at `options`, by the contract in the header.
    let options = unsafe { optional("options", options, options_length) };
    // SAFETY: `lease` and `error` are NULL or writable, by the contract in the header.
    let (lease, error) =
        unsafe { (Out::new("lease", lease, std::ptr::null_mut()), ErrorOut::new(error)) };
    answer(error, lease, || {
        let runtime = runtime::runtime(runtime)?;
        let uid = validate::run_uid(run_uid)?;
        let owner = validate::claimed_by(claimed_by?)?;
        let entries = match options? {
            Some(json) => input::entries("options", json)?,
            None => Vec::new(),
        };
        let keep = KeepOptions::parse(lease_seconds, &entries)?;
        if keep.interrupt_on_loss {
            return Err(Error::configuration(
                "option interruptOnLoss needs the extension nrllm_runtime: only that can \
                 interrupt running PHP code; leave the option out and ask state() or step() between \
                 the steps",
            ));
        }
        let kept = keeper::keep(&runtime.key, &runtime.options, uid, owner, keep, None)?;
        Ok(LEASES.insert(kept))
    })
}

/// Releases a lease and frees its handle. NULL and a handle that was freed before are ignored. Any
/// thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn nrllm_kept_lease_free(lease: *mut NrllmKeptLease) {
    report(ErrorOut::NONE, || {
        if let Some(lease) = LEASES.remove(lease) {
            // A call of another thread may hold the lease a little longer than its handle.
            lease.release();
        }
        Ok(())
    });
}

/// Stops the heartbeats: "held" and "unknown" become "stopped". The row stays unchanged. Further
/// calls have no effect. Any thread may call it.
///
/// # Safety
///
/// `error` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_kept_lease_release(
    lease: *const NrllmKeptLease,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: `error` is NULL or writable, by the contract in the header.
    let error = unsafe { ErrorOut::new(error) };
    report(error, || {
        self::lease(lease)?.release();
        Ok(())
    })
}

/// Reports progress: `maxSilentSeconds` counts from this call. Returns `NRLLM_STATUS_LEASE_LOST` if
/// the lease is lost or stopped (the message gives the reason), `NRLLM_STATUS_RUN_CANCELLED` if the
/// run was cancelled. Reads memory and a clock only. Any thread may call it.
///
/// # Safety
///
/// `error` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_kept_lease_step(
    lease: *const NrllmKeptLease,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: `error` is NULL or writable, by the contract in the header.
    let error = unsafe { ErrorOut::new(error) };
    report(error, || self::lease(lease)?.step())
}

/// Returns the state of the lease: "held", "unknown" (the last heartbeat failed, the lease has not
/// expired), "lost", "cancelled" or "stopped"; the last three are final. Reads memory and a clock
/// only. `state` receives the text, freed with `nrllm_string_free()`. Any thread may call it.
///
/// # Safety
///
/// `state` and `error` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_kept_lease_state(
    lease: *const NrllmKeptLease,
    state: *mut *mut c_char,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: `state` and `error` are NULL or writable, by the contract in the header.
    let (state, error) = unsafe { (Out::text("state", state), ErrorOut::new(error)) };
    answer(error, state, || Ok(text(self::lease(lease)?.state())))
}

/// Returns whether this process still holds the run: true exactly in "held" and "unknown". Reads
/// memory and a clock only. Any thread may call it.
///
/// # Safety
///
/// `held` and `error` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_kept_lease_is_held(
    lease: *const NrllmKeptLease,
    held: *mut bool,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: `held` and `error` are NULL or writable, by the contract in the header.
    let (held, error) = unsafe { (Out::new("held", held, false), ErrorOut::new(error)) };
    answer(error, held, || Ok(self::lease(lease)?.is_held()))
}

/// Returns the milliseconds until the lease expires, counted from when the last successful
/// heartbeat was sent; 0 outside "held" and "unknown". Reads memory and a clock only. Any thread
/// may call it.
///
/// # Safety
///
/// `milliseconds` and `error` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_kept_lease_remaining_ms(
    lease: *const NrllmKeptLease,
    milliseconds: *mut i64,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: `milliseconds` and `error` are NULL or writable, by the contract in the header.
    let (milliseconds, error) =
        unsafe { (Out::new("milliseconds", milliseconds, 0), ErrorOut::new(error)) };
    answer(error, milliseconds, || Ok(self::lease(lease)?.remaining_ms()))
}

/// Returns the number of successful heartbeats, including the first renewal. Reads memory only. Any
/// thread may call it.
///
/// # Safety
///
/// `beats` and `error` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_kept_lease_beats(
    lease: *const NrllmKeptLease,
    beats: *mut i64,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: `beats` and `error` are NULL or writable, by the contract in the header.
    let (beats, error) = unsafe { (Out::new("beats", beats, 0), ErrorOut::new(error)) };
    answer(error, beats, || Ok(self::lease(lease)?.beats()))
}

/// Returns why the last heartbeat failed, or which limit ended the renewal. `message` receives the
/// text, freed with `nrllm_string_free()`, or NULL if there was no failure. Any thread may call it.
///
/// # Safety
///
/// `message` and `error` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_kept_lease_last_error(
    lease: *const NrllmKeptLease,
    message: *mut *mut c_char,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: `message` and `error` are NULL or writable, by the contract in the header.
    let (message, error) = unsafe { (Out::text("message", message), ErrorOut::new(error)) };
    answer(error, message, || {
        let last_error = self::lease(lease)?.last_error();
        Ok(last_error.map_or(std::ptr::null_mut(), text))
    })
}
