//! The exception classes, and the one place where an error becomes an exception.
//!
//! They are registered by hand and carry no Rust value: so `new`, subclasses, file, line and trace
//! are those of any exception.

use ext_php_rs::builders::ClassBuilder;
use ext_php_rs::exception::PhpException;
use ext_php_rs::flags::ClassFlags;
use ext_php_rs::zend::{ClassEntry, ce};

use super::entries::{CONFIGURATION, CONNECTION, EXCEPTION, LEASE_LOST, QUERY, RUN_CANCELLED};
use crate::domain::validate::ArgumentError;
use crate::error::{Error, Kind};

unsafe extern "C" {
    /// PHP's `RuntimeException`, of the extension SPL, which is always there.
    static spl_ce_RuntimeException: *mut ClassEntry;
}

#[allow(
    clippy::expect_used,
    reason = "module start: the base class is registered first, and a panic is caught there"
)]
fn base() -> &'static ClassEntry {
    EXCEPTION.get().expect("NrLlmException is registered before its subclasses")
}

fn runtime_exception() -> &'static ClassEntry {
    // SAFETY: SPL is started before every extension that is not built in, and its entry lives as
    // long as the process.
    unsafe { &*spl_ce_RuntimeException }
}

/// What a class builder calls with the new entry.
type Registration = fn(&'static mut ClassEntry, ext_php_rs::args::ArgInfoTables);

/// Registers the classes, at module start.
pub(super) fn register() -> ext_php_rs::error::Result<()> {
    ClassBuilder::new("NrLlmException")
        .extends((runtime_exception, "\\RuntimeException"))
        .registration(|ce, _| EXCEPTION.set(ce))
        .register()?;
    let finals: [(&str, Registration); 5] = [
        ("NrLlmConfigurationException", |ce, _| CONFIGURATION.set(ce)),
        ("NrLlmConnectionException", |ce, _| CONNECTION.set(ce)),
        ("NrLlmQueryException", |ce, _| QUERY.set(ce)),
        ("NrLlmLeaseLostException", |ce, _| LEASE_LOST.set(ce)),
        ("NrLlmRunCancelledException", |ce, _| RUN_CANCELLED.set(ce)),
    ];
    for (name, registration) in finals {
        ClassBuilder::new(name)
            .extends((base, "\\NrLlmException"))
            .flags(ClassFlags::Final)
            .registration(registration)
            .register()?;
    }
    Ok(())
}

/// The class of an error's exception.
pub(super) fn class_of(kind: Kind) -> &'static ClassEntry {
    let entry = match kind {
        Kind::Argument => return ce::value_error(),
        Kind::Type => return ce::type_error(),
        Kind::Configuration => &CONFIGURATION,
        Kind::Connection => &CONNECTION,
        Kind::Query => &QUERY,
        Kind::LeaseLost => &LEASE_LOST,
        Kind::RunCancelled => &RUN_CANCELLED,
        Kind::Resource | Kind::Internal => &EXCEPTION,
    };
    entry.get().unwrap_or_else(ce::exception)
}

impl From<Error> for PhpException {
    fn from(error: Error) -> Self {
        let (message, class) = parts(&error);
        Self::new(message, i32::from(error.code), class)
    }
}

/// The message and the class of an error's exception.
pub(super) fn parts(error: &Error) -> (String, &'static ClassEntry) {
    // A NUL byte would end the message (a driver may quote one).
    (error.message.replace('\0', "\\0"), class_of(error.kind))
}

impl From<ArgumentError> for PhpException {
    fn from(error: ArgumentError) -> Self {
        Error::from(error).into()
    }
}
