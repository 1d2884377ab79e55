//! The Zend boundary: one file per PHP class. A method here converts its arguments, calls, and
//! converts the answer: no SQL, no policy.

mod arguments;
mod classes;
mod convert;
mod entries;
mod exceptions;
mod frames;
mod globals;
mod interrupt;
mod nrllm_failure;
mod nrllm_lease;
mod nrllm_reap_report;
mod nrllm_recovery;
mod nrllm_runtime;
mod objects;
mod serialize;
mod throwable;

use std::panic::catch_unwind;

use ext_php_rs::prelude::*;
use ext_php_rs::zend::ModuleEntry;
use ext_php_rs::{info_table_end, info_table_row, info_table_start};

use crate::keeper;
use crate::process::sessions;

/// The name that PHP knows the extension by.
const EXTENSION: &str = "nrllm_runtime";

/// MINIT: classes and the chained interrupt handler, nothing else. No thread, socket, file or
/// runtime is made here: PHP-FPM forks afterwards.
///
/// # Safety
///
/// Called by the engine alone, once per module start.
unsafe extern "C" fn startup(_type: i32, _module: i32) -> i32 {
    let registered = catch_unwind(|| {
        throwable::prepare();
        classes::module_started();
        interrupt::module_started();
        exceptions::register()
    });
    match registered {
        Ok(Ok(())) => 0,
        _ => -1,
    }
}

/// RINIT.
///
/// # Safety
///
/// Called by the engine alone, on the PHP thread.
unsafe extern "C" fn request_startup(_type: i32, _module: i32) -> i32 {
    let _ = catch_unwind(|| {
        throwable::request_started();
        classes::complete_once();
    });
    0
}

/// RSHUTDOWN: the program has ended (another extension's end may still run user code after it), so
/// the request's leases end and the connections of this process are closed, in bounded time and
/// without waiting for the server.
///
/// # Safety
///
/// Called by the engine alone, on the PHP thread.
unsafe extern "C" fn request_shutdown(_type: i32, _module: i32) -> i32 {
    let _ = catch_unwind(end_request);
    0
}

/// Ends the interrupts, then the heartbeats, then the connections of this thread's request.
fn end_request() {
    interrupt::request_ended();
    keeper::end_thread();
    sessions::close_thread();
}

/// MSHUTDOWN: ends what the last request has left; normally everything is closed by now.
///
/// # Safety
///
/// Called by the engine alone.
unsafe extern "C" fn shutdown(_type: i32, _module: i32) -> i32 {
    let _ = catch_unwind(|| {
        end_request();
        keeper::end_all();
        sessions::close_all();
        interrupt::module_ended();
    });
    0
}

/// `phpinfo()` and `php --ri nrllm_runtime`.
extern "C" fn info(_module: *mut ModuleEntry) {
    let _ = catch_unwind(|| {
        info_table_start!();
        info_table_row!("NrLlmRuntime", "enabled");
        info_table_row!("Version", env!("CARGO_PKG_VERSION"));
        info_table_row!("Features", "php");
        info_table_row!("Databases", "MySQL, MariaDB (mysql_async, no client library needed)");
        info_table_row!("TLS", "rustls (TLS 1.2, TLS 1.3)");
        info_table_row!(
            "Threads",
            "none until a lease is kept; a host name is resolved on a thread of its own"
        );
        info_table_row!(
            "Thread safety",
            if ext_php_rs::ffi::USING_ZTS == 1 { "ZTS" } else { "NTS" }
        );
        info_table_end!();
    });
}

#[php_module]
fn get_module(module: ModuleBuilder) -> ModuleBuilder {
    module
        .name(EXTENSION)
        .startup_function(startup)
        .shutdown_function(shutdown)
        .request_startup_function(request_startup)
        .request_shutdown_function(request_shutdown)
        .info_function(info)
        .class::<nrllm_failure::NrLlmFailure>()
        .class::<nrllm_lease::NrLlmLease>()
        .class::<nrllm_recovery::NrLlmRecovery>()
        .class::<nrllm_reap_report::NrLlmReapReport>()
        .class::<nrllm_runtime::NrLlmRuntime>()
}
