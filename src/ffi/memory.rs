//! Memory that crosses the boundary: what the caller lends, what it is given, where answers go.

use std::ffi::{CString, c_char};
use std::ptr::NonNull;

use crate::domain::validate::ArgumentError;
use crate::error::Error;

/// Text that ends where C expects it to: a NUL byte inside (a server may quote one) is spelled out.
pub(super) fn without_nul(text: String) -> CString {
    CString::new(text.replace('\0', "\\0")).unwrap_or_default()
}

/// The bytes that a caller lends for a call.
///
/// # Safety
///
/// `data` is NULL or the start of `length` bytes that stay as they are during the call.
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

/// [`bytes`], where NULL means that there are none.
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

/// A number that a caller lends, or none.
///
/// # Safety
///
/// `number` is NULL or may be read.
pub(super) unsafe fn number(number: *const i64) -> Option<i64> {
    // SAFETY: by this function's contract; PHP's FFI and others align what they lend, and where not, it is read all the same.
    (!number.is_null()).then(|| unsafe { number.read_unaligned() })
}

/// A place for an answer. It holds nothing (NULL, 0, false) until the answer is there.
pub(super) struct Out<T>(NonNull<T>);

impl<T> Out<T> {
    /// # Safety
    ///
    /// `place` is NULL or may be written until the call ends.
    pub(super) unsafe fn new(
        argument: &'static str,
        place: *mut T,
        nothing: T,
    ) -> Result<Self, ArgumentError> {
        let place = NonNull::new(place)
            .ok_or_else(|| ArgumentError::new(argument, "is NULL; the answer needs a place"))?;
        // SAFETY: by this function's contract.
        unsafe { place.write(nothing) };
        Ok(Self(place))
    }

    pub(super) fn set(self, answer: T) {
        // SAFETY: by the contract of new().
        unsafe { self.0.write(answer) };
    }
}

impl Out<*mut c_char> {
    /// A place for a text.
    ///
    /// # Safety
    ///
    /// As for [`Out::new`].
    pub(super) unsafe fn text(
        argument: &'static str,
        place: *mut *mut c_char,
    ) -> Result<Self, ArgumentError> {
        // SAFETY: by this function's contract.
        unsafe { Self::new(argument, place, std::ptr::null_mut()) }
    }

    /// Answers with a text, which the caller frees by `nrllm_string_free()`.
    pub(super) fn set_text(self, text: impl Into<String>) {
        self.set(without_nul(text.into()).into_raw());
    }

    /// Answers with a value as JSON.
    pub(super) fn set_json(self, value: &impl serde::Serialize) -> Result<(), Error> {
        let json = serde_json::to_string(value).map_err(|error| {
            Error::configuration(format!("the answer cannot be written as JSON: {error}"))
        })?;
        self.set_text(json);
        Ok(())
    }
}

/// Frees a text that a call has answered with. NULL is ignored.
///
/// # Safety
///
/// `text` is NULL or a text of this library that was not freed; it must not be used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_string_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: it came from CString::into_raw in set_text(), and is freed once by this function's contract.
        drop(unsafe { CString::from_raw(text) });
    }
}
