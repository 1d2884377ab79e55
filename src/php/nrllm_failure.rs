//! `NrLlmFailure`: the class of a failure.

use ext_php_rs::flags::ClassFlags;
use ext_php_rs::prelude::*;
use ext_php_rs::zend::ClassEntry;

use super::convert::int;
use super::objects::Compare;
use super::serialize::{self, Array};
use crate::domain::failure::{Failure, FailureClass};
use crate::views::FailureView;

unsafe extern "C" {
    /// PHP's `JsonSerializable`, of the extension json, which is always there.
    static php_json_serializable_ce: *mut ClassEntry;
}

/// PHP's `JsonSerializable`.
pub(super) fn json_serializable() -> &'static ClassEntry {
    // SAFETY: json is built in and started before every extension that is not.
    unsafe { &*php_json_serializable_ce }
}

/// The class of a failure, and what follows from it.
#[php_class]
#[derive(PartialEq)]
#[php(flags = ClassFlags::Final.union(ClassFlags::NoDynamicProperties))]
#[php(implements(ce = json_serializable, stub = "\\JsonSerializable"))]
pub(super) struct NrLlmFailure {
    failure: Failure,
}

impl Compare for NrLlmFailure {
    fn is_equal(&self, other: &Self) -> bool {
        self == other
    }
}

impl NrLlmFailure {
    pub(super) const fn new(failure: Failure) -> Self {
        Self { failure }
    }

    fn class(&self) -> FailureClass {
        self.failure.classification.class
    }
}

#[php_impl]
impl NrLlmFailure {
    /// The provider could not be reached.
    const CONNECTION: &'static str = FailureClass::Connection.as_str();
    /// The provider limits the rate of calls.
    const RATE_LIMIT: &'static str = FailureClass::RateLimit.as_str();
    /// The provider refuses the credentials.
    const AUTH: &'static str = FailureClass::Auth.as_str();
    /// The provider is not set up.
    const CONFIGURATION: &'static str = FailureClass::Configuration.as_str();
    /// The request is wrong.
    const CLIENT_ERROR: &'static str = FailureClass::ClientError.as_str();
    /// The provider failed.
    const SERVER_ERROR: &'static str = FailureClass::ServerError.as_str();
    /// The circuit breaker refused the call.
    const CIRCUIT_OPEN: &'static str = FailureClass::CircuitOpen.as_str();
    /// Anything else.
    const UNKNOWN: &'static str = FailureClass::Unknown.as_str();

    /// Returns the class: one of the constants.
    fn failure_class(&self) -> &'static str {
        self.class().as_str()
    }

    /// Returns whether another attempt may succeed.
    fn is_retryable(&self) -> bool {
        self.class().is_retryable()
    }

    /// Returns whether the failure counts against the provider's circuit breaker.
    fn trips_circuit(&self) -> bool {
        self.class().trips_circuit()
    }

    /// Returns the name of the error's class, as stored in `error_class`.
    fn error_class(&self) -> &str {
        &self.failure.error_class
    }

    /// Returns the HTTP status, where it decided the class.
    fn http_status(&self) -> Option<i64> {
        self.failure.classification.http_status.map(i64::from)
    }

    /// Returns the waiting time that the failure requests, in seconds; null where it requests none.
    fn retry_after_seconds(&self) -> Option<i64> {
        self.failure.classification.retry_after_seconds.map(int)
    }

    /// Returns the failure class.
    #[php(name = "__toString")]
    fn string(&self) -> &'static str {
        self.class().as_str()
    }

    /// Returns all values, for `json_encode()`.
    fn json_serialize(&self) -> PhpResult<Array> {
        serialize::array(&FailureView::new(&self.failure))
    }

    /// Not cloneable: the engine refuses to call it.
    #[php(vis = "private", name = "__clone")]
    fn __clone(&self) {}
}
