//! `#[\SensitiveParameter]` on the constructor's `$connection`, so that no trace shows a password (rule 22).

use std::sync::atomic::{AtomicBool, Ordering};

use ext_php_rs::class::RegisteredClass;
use ext_php_rs::ffi::{HashTable, zend_string};
use ext_php_rs::types::ZendStr;

use super::runtime::NrLlmRuntime;

unsafe extern "C" {
    /// Adds an attribute to a function's or parameter's table of attributes.
    fn zend_add_attribute(
        attributes: *mut *mut HashTable,
        name: *mut zend_string,
        argc: u32,
        flags: u32,
        offset: u32,
        line: u32,
    ) -> *mut std::ffi::c_void;
}

/// The attribute lives as long as the class, not as the request.
const ZEND_ATTRIBUTE_PERSISTENT: u32 = 1;

static MARKED: AtomicBool = AtomicBool::new(false);

/// The classes are new, and so are their functions.
pub(super) fn module_started() {
    MARKED.store(false, Ordering::Release);
}

/// Marks the parameter, once a module start. Done at the first request: classes are registered after the hook of module start.
pub(super) fn mark_once() {
    if MARKED.swap(true, Ordering::AcqRel) {
        return;
    }
    let entry = NrLlmRuntime::get_metadata().ce();
    // SAFETY: on the PHP thread, between module start and the first user code; the constructor is an internal function of our own
    // class, and nobody else reads its attributes now.
    unsafe {
        if let Some(constructor) = entry.constructor.as_mut() {
            let name = ZendStr::new_interned("SensitiveParameter", true).into_raw();
            // Offset 0 is the function itself, 1 its first parameter.
            zend_add_attribute(
                &raw mut constructor.common.attributes,
                name,
                0,
                ZEND_ATTRIBUTE_PERSISTENT,
                1,
                0,
            );
        }
    }
}
