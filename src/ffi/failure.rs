//! The failure taxonomy. The caller passes the facts of its error; this library classifies them.

use std::ffi::c_char;

use serde::Serialize;

use super::error::{ErrorOut, NrllmError, NrllmStatus, answer};
use super::memory::{Out, bytes, json, number};
use crate::domain::failure::{self, Failure, KnownType, MAX_CHAIN, Throwable};
use crate::domain::validate::ArgumentError;
use crate::views::FailureView;

/// The type of the caller's error: the first that matches, in this order. `nrllm_failure_types()`
/// returns the PHP classes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NrllmFailureType {
    /// None of the types below.
    Other = 0,
    /// The circuit breaker refused the call.
    CircuitOpen = 1,
    /// All attempts of a chain failed, and the error of the last attempt is unknown. If it is
    /// known, pass that error instead.
    FallbackChainExhausted = 2,
    /// The provider could not be reached.
    ProviderConnection = 3,
    /// An HTTP client could not reach the network.
    Network = 4,
    /// The provider is not configured.
    ProviderConfiguration = 5,
    /// The provider answered with an error; the code is the HTTP status.
    ProviderResponse = 6,
}

/// The facts of an error, as a caller passes them.
pub(super) struct ErrorFacts<'a> {
    failure_type: i32,
    code: Option<i64>,
    retry_after: Option<i64>,
    class: Result<&'a [u8], ArgumentError>,
}

impl ErrorFacts<'_> {
    /// Takes the arguments that describe an error.
    ///
    /// # Safety
    ///
    /// `code` and `retry_after_seconds` are NULL or readable; `error_class` is as `data` of
    /// [`bytes`].
    pub(super) unsafe fn read(
        failure_type: i32,
        code: *const i64,
        retry_after_seconds: *const i64,
        error_class: *const c_char,
        error_class_length: usize,
    ) -> Self {
        // SAFETY: by this function's contract.
        let (code, retry_after) = unsafe { (number(code), number(retry_after_seconds)) };
        // SAFETY: by this function's contract.
        let class = unsafe { bytes("errorClass", error_class, error_class_length) };
        Self { failure_type, code, retry_after, class }
    }

    /// Classifies the error.
    pub(super) fn classify(self) -> Result<Failure, ArgumentError> {
        let known_type = known_type(self.failure_type)?;
        let class = self.class?;
        let described = Described { known_type, code: self.code, retry_after: self.retry_after };
        Ok(Failure {
            classification: failure::classify(described),
            error_class: failure::error_class(class),
        })
    }
}

/// Returns the type with a number of [`NrllmFailureType`], `None` for 0.
fn known_type(number: i32) -> Result<Option<KnownType>, ArgumentError> {
    match usize::try_from(number) {
        Ok(0) => Ok(None),
        Ok(index) if index <= KnownType::ALL.len() => Ok(KnownType::ALL.get(index - 1).copied()),
        _ => {
            let message = format!("must be from 0 to {}, {number} given", KnownType::ALL.len());
            Err(ArgumentError::new("failureType", message))
        }
    }
}

/// An error that a caller described.
struct Described {
    known_type: Option<KnownType>,
    code: Option<i64>,
    retry_after: Option<i64>,
}

impl Throwable for Described {
    fn known_type(&self) -> Option<KnownType> {
        self.known_type
    }

    fn code(&self) -> Option<i64> {
        self.code
    }

    fn retry_after(&self) -> Option<i64> {
        self.retry_after
    }

    fn last_attempt(self) -> Option<Self> {
        // The caller has already followed the chain.
        None
    }
}

/// What a PHP binding needs to collect the facts of an error.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TypesView {
    types: [&'static str; KnownType::ALL.len()],
    fallback_chain: usize,
    by_code: usize,
    max_chain: usize,
}

/// Returns the types of the taxonomy as JSON: `types` lists the PHP classes and interfaces in the
/// order of the tests (the first is type 1, and so on), `fallbackChain` is the type of an exhausted
/// chain, `byCode` is the type whose code decides, `maxChain` is the maximum number of nested
/// chains to follow.
///
/// `types` receives the text, freed with `nrllm_string_free()`. Any thread may call it.
///
/// # Safety
///
/// `types` and `error` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_failure_types(
    types: *mut *mut c_char,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: `types` and `error` are NULL or writable, by the contract in the header.
    let (types, error) = unsafe { (Out::text("types", types), ErrorOut::new(error)) };
    answer(error, types, || {
        json(&TypesView {
            types: KnownType::ALL.map(KnownType::class_name),
            fallback_chain: NrllmFailureType::FallbackChainExhausted as usize,
            by_code: NrllmFailureType::ProviderResponse as usize,
            max_chain: MAX_CHAIN,
        })
    })
}

/// Classifies an error: `{"failureClass", "retryable", "tripsCircuit", "errorClass", "httpStatus",
/// "retryAfterSeconds"}` as JSON.
///
/// `failure_type`: one of `NrllmFailureType`. `code`: the error's code, NULL if it has no integer
/// code. `retry_after_seconds`: the wait that the error itself requests, NULL (or negative) if it
/// requests none. `error_class`: the name of the error's class, any bytes, truncated to the length
/// of the column `error_class`. `failure` receives the text, freed with `nrllm_string_free()`. Any
/// thread may call it.
///
/// # Safety
///
/// `code` and `retry_after_seconds` are NULL or readable, `error_class` is NULL or points to
/// `error_class_length` bytes; `failure` and `error` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_classify_failure(
    failure_type: i32,
    code: *const i64,
    retry_after_seconds: *const i64,
    error_class: *const c_char,
    error_class_length: usize,
    failure: *mut *mut c_char,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: both numbers are NULL or readable, and `error_class_length` bytes lie at
    // `error_class`, by the contract in the header.
    let facts = unsafe {
        ErrorFacts::read(failure_type, code, retry_after_seconds, error_class, error_class_length)
    };
    // SAFETY: `failure` and `error` are NULL or writable, by the contract in the header.
    let (failure, error) = unsafe { (Out::text("failure", failure), ErrorOut::new(error)) };
    answer(error, failure, || json(&FailureView::new(&facts.classify()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_the_types_are_their_places_in_the_ladder() {
        let numbers = [
            (NrllmFailureType::CircuitOpen, KnownType::CircuitOpen),
            (NrllmFailureType::FallbackChainExhausted, KnownType::FallbackChainExhausted),
            (NrllmFailureType::ProviderConnection, KnownType::ProviderConnection),
            (NrllmFailureType::Network, KnownType::Network),
            (NrllmFailureType::ProviderConfiguration, KnownType::ProviderConfiguration),
            (NrllmFailureType::ProviderResponse, KnownType::ProviderResponse),
        ];
        assert_eq!(numbers.map(|(_, known)| known), KnownType::ALL);
        for (place, (number, _)) in numbers.iter().enumerate() {
            assert_eq!(*number as usize, place + 1);
        }
    }
}
