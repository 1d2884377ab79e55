//! Memory that crosses the boundary: readers of what the caller lends, places for answers, texts
//! for the caller.

use std::ffi::{CString, c_char};
use std::ptr::NonNull;

use crate::domain::validate::ArgumentError;
use crate::error::Error;

/// Makes a C string. A NUL byte inside (a server may quote one) becomes `\0`.
pub(super) fn without_nul(text: String) -> CString {
    CString::new(text.replace('\0', "\\0")).unwrap_or_default()
}

/// Reads the bytes that the caller lends for a call.
///
/// # Safety
///
/// `data` is NULL or points to `length` bytes that stay unchanged until the call returns.
pub(super) unsafe fn bytes<'a>(
    argument: &'static str,
    data: *const c_char,
    length: usize,
) -> Result<&'a [u8], ArgumentError> {
    if length == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(ArgumentError::new(argument, format!("is NULL, but {length} bytes long")));
    }
    if isize::try_from(length).is_err() {
        return Err(ArgumentError::new(argument, "is longer than memory can be"));
    }
    // SAFETY: by this function's contract; not NULL and not too long, as checked.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), length) })
}

/// Reads [`bytes`] that may be absent: NULL with the length 0.
///
/// # Safety
///
/// As for [`bytes`].
pub(super) unsafe fn optional<'a>(
    argument: &'static str,
    data: *const c_char,
    length: usize,
) -> Result<Option<&'a [u8]>, ArgumentError> {
    if data.is_null() && length == 0 {
        return Ok(None);
    }
    // SAFETY: by this function's contract.
    unsafe { bytes(argument, data, length) }.map(Some)
}

/// Reads a number that may be absent: NULL.
///
/// # Safety
///
/// `number` is NULL or readable.
pub(super) unsafe fn number(number: *const i64) -> Option<i64> {
    // SAFETY: by this function's contract; the read needs no alignment.
    (!number.is_null()).then(|| unsafe { number.read_unaligned() })
}

/// The caller's place for an answer.
pub(super) struct Out<T> {
    argument: &'static str,
    place: *mut T,
    nothing: T,
}

/// A place for an answer that is not NULL and holds no answer yet.
pub(super) struct Cleared<T>(NonNull<T>);

impl<T> Out<T> {
    /// Takes an out-parameter; `nothing` is its value until the answer is written.
    ///
    /// # Safety
    ///
    /// `place` is NULL or writable until the call returns.
    pub(super) const unsafe fn new(argument: &'static str, place: *mut T, nothing: T) -> Self {
        Self { argument, place, nothing }
    }

    /// Checks the place and writes that there is no answer.
    pub(super) fn cleared(self) -> Result<Cleared<T>, ArgumentError> {
        let place = NonNull::new(self.place).ok_or_else(|| {
            ArgumentError::new(self.argument, "is NULL; the answer needs a place")
        })?;
        // SAFETY: writable until the call returns, as the caller of new() promised.
        unsafe { place.write(self.nothing) };
        Ok(Cleared(place))
    }
}

impl<T> Cleared<T> {
    /// Writes the answer.
    pub(super) fn set(self, answer: T) {
        // SAFETY: writable until the call returns, as the caller of Out::new() promised.
        unsafe { self.0.write(answer) };
    }
}

impl Out<*mut c_char> {
    /// Takes an out-parameter for a text.
    ///
    /// # Safety
    ///
    /// As for [`Out::new`].
    pub(super) const unsafe fn text(argument: &'static str, place: *mut *mut c_char) -> Self {
        // SAFETY: by this function's contract.
        unsafe { Self::new(argument, place, std::ptr::null_mut()) }
    }
}

/// Makes a text for the caller, who frees it with `nrllm_string_free()`.
pub(super) fn text(text: impl Into<String>) -> *mut c_char {
    without_nul(text.into()).into_raw()
}

/// Makes the [`text`] of a value as JSON.
pub(super) fn json(value: &impl serde::Serialize) -> Result<*mut c_char, Error> {
    let json = serde_json::to_string(value).map_err(|error| {
        Error::configuration(format!("the answer cannot be written as JSON: {error}"))
    })?;
    Ok(text(json))
}

/// Frees a text that a call returned. NULL is ignored.
///
/// # Safety
///
/// `text` is NULL or a text of this library that was not freed; it must not be used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_string_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: it came from CString::into_raw in text() and is freed once, by the contract in
        // the header.
        drop(unsafe { CString::from_raw(text) });
    }
}
