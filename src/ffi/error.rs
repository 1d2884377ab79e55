//! Status codes and the error object.

use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use super::memory::{self, Out};
use crate::error::{Error, Kind};

/// The result of a call. Every status but `NRLLM_STATUS_OK` comes with an error object if the
/// caller passed a place for one.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NrllmStatus {
    /// Done; the out-parameters hold the answer.
    Ok = 0,
    /// Wrong argument: out of its range, unreadable, NULL where a value is required, or a handle
    /// that is unknown or was freed. Nothing was sent to the server.
    Argument = 1,
    /// Wrong settings, an unsupported driver, a missing table or column.
    Configuration = 2,
    /// The server cannot be reached, the connection was lost, a time limit passed, or the outcome
    /// of a write is unknown.
    Connection = 3,
    /// The server refused a statement; the error's code is its number.
    Query = 4,
    /// The caller does not hold the lease.
    LeaseLost = 5,
    /// The run was cancelled.
    RunCancelled = 6,
    /// A defect of this library; the process is unharmed.
    Internal = 7,
    /// An option of the wrong type. Nothing was sent to the server.
    Type = 8,
    /// The process has run out of threads, descriptors or memory.
    Resource = 9,
}

/// The error of a call. The caller owns it and frees it with `nrllm_error_free()`. It never holds a
/// password.
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

/// The caller's place for an error object, if the caller gave one.
pub(super) struct ErrorOut(Option<NonNull<*mut NrllmError>>);

impl ErrorOut {
    /// No place: the error of the call is discarded.
    pub(super) const NONE: Self = Self(None);

    /// Takes the argument `error` of a call.
    ///
    /// # Safety
    ///
    /// `place` is NULL or writable until the call returns.
    pub(super) const unsafe fn new(place: *mut *mut NrllmError) -> Self {
        Self(NonNull::new(place))
    }

    fn set(self, failure: Option<NrllmError>) {
        let Some(place) = self.0 else { return };
        let object =
            failure.map_or(std::ptr::null_mut(), |failure| Box::into_raw(Box::new(failure)));
        // SAFETY: writable until the call returns, as the caller of new() promised.
        unsafe { place.write(object) };
    }
}

/// Runs the body of a call. Errors and panics become a status and an error object.
pub(super) fn report(error: ErrorOut, body: impl FnOnce() -> Result<(), Error>) -> NrllmStatus {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(NrllmError::from(error)),
        Err(_) => Some(NrllmError {
            status: NrllmStatus::Internal,
            code: 0,
            message: memory::without_nul(
                "a defect of the library nrllm_runtime; report it with what the library printed to \
                 the standard error"
                    .to_owned(),
            ),
        }),
    };
    let status = failure.as_ref().map_or(NrllmStatus::Ok, |failure| failure.status);
    error.set(failure);
    status
}

/// Runs the body of a call and writes its result to the out-parameter, which holds no answer (NULL,
/// 0, false) if the call fails. Errors and panics become a status and an error object.
pub(super) fn answer<T>(
    error: ErrorOut,
    place: Out<T>,
    body: impl FnOnce() -> Result<T, Error>,
) -> NrllmStatus {
    report(error, || {
        let place = place.cleared()?;
        place.set(body()?);
        Ok(())
    })
}

/// Returns the status of the call that reported this error, `NRLLM_STATUS_OK` for NULL.
///
/// # Safety
///
/// `error` is NULL or an error object that was not freed. Any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_error_status(error: *const NrllmError) -> NrllmStatus {
    // SAFETY: NULL or an error object that was not freed, by the contract in the header.
    unsafe { error.as_ref() }.map_or(NrllmStatus::Ok, |error| error.status)
}

/// Returns the server's error number (1146 for a missing table), or 0 if the server reported none.
///
/// # Safety
///
/// `error` is NULL or an error object that was not freed. Any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_error_code(error: *const NrllmError) -> i32 {
    // SAFETY: NULL or an error object that was not freed, by the contract in the header.
    unsafe { error.as_ref() }.map_or(0, |error| error.code)
}

/// Returns what failed and what to do, in UTF-8. The text belongs to the error object and lives as
/// long as the object; empty for NULL.
///
/// # Safety
///
/// `error` is NULL or an error object that was not freed. Any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_error_message(error: *const NrllmError) -> *const c_char {
    // SAFETY: NULL or an error object that was not freed, by the contract in the header.
    unsafe { error.as_ref() }.map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// Frees an error object. NULL is ignored.
///
/// # Safety
///
/// `error` is NULL or an error object that was not freed; it and its message must not be used
/// afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_error_free(error: *mut NrllmError) {
    if !error.is_null() {
        // SAFETY: it came from Box::into_raw in ErrorOut::set() and is freed once, by the contract
        // in the header.
        drop(unsafe { Box::from_raw(error) });
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::ptr;

    use super::*;

    /// Returns status, code and message of what `report` makes of a body; frees the error object.
    fn reported(body: impl FnOnce() -> Result<(), Error>) -> (NrllmStatus, i32, String) {
        let mut error = ptr::null_mut();
        // SAFETY: the place outlives the call.
        let status = report(unsafe { ErrorOut::new(&raw mut error) }, body);
        // SAFETY: the error object is used before it is freed.
        unsafe {
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
            assert_eq!(
                reported(|| Err(error)),
                (status, 1146, "what happened\\0 and more".to_owned())
            );
        }
        assert_eq!(reported(|| Ok(())), (NrllmStatus::Ok, 0, String::new()));
    }

    #[test]
    fn a_panic_is_a_status_and_does_not_reach_the_caller() {
        let (status, code, message) = reported(|| panic!("a defect"));
        assert_eq!((status, code), (NrllmStatus::Internal, 0));
        assert!(message.contains("a defect of the library"), "{message}");
        assert_eq!(report(ErrorOut::NONE, || panic!("a defect")), NrllmStatus::Internal);
    }

    #[test]
    fn a_failed_call_leaves_no_answer_in_its_place() {
        let mut number = 5_i64;
        let mut error = ptr::null_mut();
        for (body, expected) in
            [(Ok(7), (NrllmStatus::Ok, 7)), (Err(()), (NrllmStatus::Internal, 0))]
        {
            // SAFETY: both places outlive the call.
            let (place, error_out) =
                unsafe { (Out::new("number", &raw mut number, 0), ErrorOut::new(&raw mut error)) };
            let status = answer(error_out, place, || {
                body.map_err(|()| Error::new(Kind::Internal, "what happened"))
            });
            assert_eq!((status, number), expected);
            // SAFETY: NULL or the error object of this call, freed once.
            unsafe { nrllm_error_free(error) };
        }
        // SAFETY: NULL is a place for no answer.
        let place = unsafe { Out::new("number", ptr::null_mut(), 0) };
        let status = answer(ErrorOut::NONE, place, || panic!("the body of a call without a place"));
        assert_eq!(status, NrllmStatus::Argument);
    }
}
