//! The engine's globals of this PHP thread.

use ext_php_rs::ffi::{ext_php_rs_executor_globals, zend_executor_globals};

/// The executor globals: one static of the process without thread safety, one per PHP thread with
/// it. Read directly, because a guard of the binding costs more than most lookups.
pub(super) fn executor() -> *mut zend_executor_globals {
    // SAFETY: on a PHP thread, where the engine has set them up. The address stays the same for as
    // long as the thread belongs to PHP.
    unsafe { ext_php_rs_executor_globals() }
}
