//! Status codes and the error object.

use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::memory;
use crate::error::{Error, Kind};

/// What a call answers. Everything but `NRLLM_STATUS_OK` comes with an error object, where the caller gave a place for one.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NrllmStatus {
    /// Done; the out-parameters hold the answer.
    Ok = 0,
    /// A wrong argument: out of its range, unreadable, NULL where a value is needed, or a handle that is not (any more) one. Nothing was
    /// sent to the server.
    Argument = 1,
    /// Wrong settings, an unsupported driver, a missing table or column.
    Configuration = 2,
    /// The server cannot be reached, was lost, timed out, or the outcome of a write is unknown.
    Connection = 3,
    /// The server refused a statement; the error's code is its number.
    Query = 4,
    /// The lease is not held (any more).
    LeaseLost = 5,
    /// The run was cancelled.
    RunCancelled = 6,
    /// A defect of this library; the process is unharmed.
    Internal = 7,
    /// An option of the wrong type. Nothing was sent to the server.
    Type = 8,
    /// The process has no thread, descriptor or memory left.
    Resource = 9,
}

/// What went wrong. Owned by whoever made the call, freed with `nrllm_error_free()`. Never holds a password.
pub struct NrllmError {
    status: NrllmStatus,
    code: i32,
    message: CString,
}

impl From<Kind> for NrllmStatus {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Argument => Self::Argument,
            Kind::Type => Self::Type,
            Kind::Configuration => Self::Configuration,
            Kind::Connection => Self::Connection,
            Kind::Query => Self::Query,
            Kind::LeaseLost => Self::LeaseLost,
            Kind::RunCancelled => Self::RunCancelled,
            Kind::Resource => Self::Resource,
            Kind::Internal => Self::Internal,
        }
    }
}

impl From<Error> for NrllmError {
    fn from(error: Error) -> Self {
        Self {
            status: error.kind.into(),
            code: i32::from(error.code),
            message: memory::without_nul(error.message),
        }
    }
}

/// Runs the body of a call. An error, and a panic, become a status and, where `error` is not NULL, an error object.
///
/// # Safety
///
/// `error` is NULL or a place that may be written.
pub(super) unsafe fn guard(
    error: *mut *mut NrllmError,
    body: impl FnOnce() -> Result<(), Error>,
) -> NrllmStatus {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(NrllmError::from(error)),
        Err(_) => Some(NrllmError {
            status: NrllmStatus::Internal,
            code: 0,
            message: memory::without_nul(
                "a defect of the library nrllm_runtime; what it printed to the standard error tells where".to_owned(),
            ),
        }),
    };
    let status = failure.as_ref().map_or(NrllmStatus::Ok, |failure| failure.status);
    if !error.is_null() {
        let object =
            failure.map_or(std::ptr::null_mut(), |failure| Box::into_raw(Box::new(failure)));
        // SAFETY: the caller of the call promises a place that may be written.
        unsafe { error.write(object) };
    }
    status
}

/// What kind of error it is: the status that the call answered. `NRLLM_STATUS_OK` for NULL.
///
/// # Safety
///
/// `error` is NULL or an error object that was not freed. Any thread may ask.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_error_status(error: *const NrllmError) -> NrllmStatus {
    // SAFETY: by this function's contract.
    unsafe { error.as_ref() }.map_or(NrllmStatus::Ok, |error| error.status)
}

/// The server's error number (1146 for a missing table), or 0 where the server named none.
///
/// # Safety
///
/// `error` is NULL or an error object that was not freed. Any thread may ask.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_error_code(error: *const NrllmError) -> i32 {
    // SAFETY: by this function's contract.
    unsafe { error.as_ref() }.map_or(0, |error| error.code)
}

/// What happened and what to do, in UTF-8. The text belongs to the error object and lives as long as that; empty for NULL.
///
/// # Safety
///
/// `error` is NULL or an error object that was not freed. Any thread may ask.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_error_message(error: *const NrllmError) -> *const c_char {
    // SAFETY: by this function's contract.
    unsafe { error.as_ref() }.map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// Frees an error object. NULL is ignored.
///
/// # Safety
///
/// `error` is NULL or an error object that was not freed; it and its message must not be used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_error_free(error: *mut NrllmError) {
    if !error.is_null() {
        // SAFETY: it came from Box::into_raw in guard(), and is freed once by this function's contract.
        drop(unsafe { Box::from_raw(error) });
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::ptr;

    use super::*;

    /// Status, code and message of what `guard` makes of a body; the error is freed.
    fn told(body: impl FnOnce() -> Result<(), Error>) -> (NrllmStatus, i32, String) {
        let mut error = ptr::null_mut();
        // SAFETY: the place is ours; the error object is used before it is freed.
        unsafe {
            let status = guard(&raw mut error, body);
            assert_eq!(status, nrllm_error_status(error));
            let message = CStr::from_ptr(nrllm_error_message(error)).to_str().unwrap().to_owned();
            let code = nrllm_error_code(error);
            nrllm_error_free(error);
            (status, code, message)
        }
    }

    #[test]
    fn every_kind_of_error_has_its_status() {
        let kinds = [
            (Kind::Argument, NrllmStatus::Argument),
            (Kind::Type, NrllmStatus::Type),
            (Kind::Configuration, NrllmStatus::Configuration),
            (Kind::Connection, NrllmStatus::Connection),
            (Kind::Query, NrllmStatus::Query),
            (Kind::LeaseLost, NrllmStatus::LeaseLost),
            (Kind::RunCancelled, NrllmStatus::RunCancelled),
            (Kind::Resource, NrllmStatus::Resource),
            (Kind::Internal, NrllmStatus::Internal),
        ];
        for (kind, status) in kinds {
            let error = Error::new(kind, "what happened\0 and more").with_code(1146);
            assert_eq!(told(|| Err(error)), (status, 1146, "what happened\\0 and more".to_owned()));
        }
        assert_eq!(told(|| Ok(())), (NrllmStatus::Ok, 0, String::new()));
    }

    #[test]
    fn a_panic_is_a_status_and_does_not_reach_the_caller() {
        let (status, code, message) = told(|| panic!("a defect"));
        assert_eq!((status, code), (NrllmStatus::Internal, 0));
        assert!(message.contains("a defect of the library"), "{message}");
        // SAFETY: NULL takes no error.
        assert_eq!(unsafe { guard(ptr::null_mut(), || panic!("a defect")) }, NrllmStatus::Internal);
    }
}
