//! The failure taxonomy: the caller gathers the facts of its error, the class is decided here.

use std::ffi::c_char;

use serde::Serialize;

use super::error::{NrllmError, NrllmStatus, guard};
use super::memory::{Out, bytes, number};
use crate::domain::failure::{self, Failure, KnownType, MAX_CHAIN, Throwable};
use crate::domain::validate::ArgumentError;
use crate::views::FailureView;

/// What kind of error the caller met: the first that fits, in this order. `nrllm_failure_types()` names the PHP classes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NrllmFailureType {
    /// None of those below.
    Other = 0,
    /// The circuit breaker refused the call.
    CircuitOpen = 1,
    /// All attempts of a chain failed, and the error of the last one is not known. Where it is known, that error is told instead.
    FallbackChainExhausted = 2,
    /// The provider could not be reached.
    ProviderConnection = 3,
    /// An HTTP client could not reach the network.
    Network = 4,
    /// The provider is not set up.
    ProviderConfiguration = 5,
    /// The provider answered with an error; the code is the HTTP status.
    ProviderResponse = 6,
}

/// The facts of an error, as a caller gives them.
struct Told {
    known_type: Option<KnownType>,
    code: Option<i64>,
    retry_after: Option<i64>,
}

impl Throwable for Told {
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
        // The caller followed the chain as far as it goes.
        None
    }
}

/// The failure that a caller describes.
///
/// # Safety
///
/// `code` and `retry_after_seconds` are NULL or may be read, `error_class` points to that many bytes.
pub(super) unsafe fn told(
    failure_type: i32,
    code: *const i64,
    retry_after_seconds: *const i64,
    error_class: *const c_char,
    error_class_length: usize,
) -> Result<Failure, ArgumentError> {
    let known_type = match usize::try_from(failure_type) {
        Ok(0) => None,
        Ok(index) if index <= KnownType::ALL.len() => KnownType::ALL.get(index - 1).copied(),
        _ => {
            let message =
                format!("must be from 0 to {}, {failure_type} given", KnownType::ALL.len());
            return Err(ArgumentError::new("failureType", message));
        }
    };
    // SAFETY: by this function's contract.
    let (code, retry_after, class) = unsafe {
        let class = bytes("errorClass", error_class, error_class_length)?;
        (number(code), number(retry_after_seconds), class)
    };
    Ok(Failure {
        classification: failure::classify(Told { known_type, code, retry_after }),
        error_class: failure::error_class(class),
    })
}

/// What a PHP boundary has to know to gather the facts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TypesView {
    types: [&'static str; KnownType::ALL.len()],
    fallback_chain: usize,
    max_chain: usize,
}

/// The types of the taxonomy as JSON: `types` lists the PHP classes and interfaces in the order in which they are tested for (the
/// first is the type 1, and so on), `fallbackChain` is the type of an exhausted chain, `maxChain` says how many nested chains are
/// followed at most.
///
/// `types` receives the text, freed with `nrllm_string_free()`. Any thread may call it.
///
/// # Safety
///
/// `types` and `error` are places that may be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_failure_types(
    types: *mut *mut c_char,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            Out::text("types", types)?.set_json(&TypesView {
                types: KnownType::ALL.map(KnownType::class_name),
                fallback_chain: NrllmFailureType::FallbackChainExhausted as usize,
                max_chain: MAX_CHAIN,
            })
        })
    }
}

/// Classifies an error: `{"failureClass", "retryable", "tripsCircuit", "errorClass", "httpStatus", "retryAfterSeconds"}` as JSON.
///
/// `failure_type`: one of `NrllmFailureType`. `code`: the error's code, NULL where it has none that is an integer.
/// `retry_after_seconds`: for how long the error itself asks to wait, NULL (or negative) where it does not. `error_class`: the name of the error's class, any bytes; it is kept as far as the column `error_class` holds it. `failure` receives the text,
/// freed with `nrllm_string_free()`. Any thread may call it.
///
/// # Safety
///
/// `code` and `retry_after_seconds` are NULL or may be read, `error_class` points to that many bytes; `failure` and `error` are places that may be written; each
/// may be NULL.
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
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::text("failure", failure)?;
            answer.set_json(&FailureView::new(&told(
                failure_type,
                code,
                retry_after_seconds,
                error_class,
                error_class_length,
            )?))
        })
    }
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
