//! What our classes get beyond their registration: `#[\SensitiveParameter]` on the constructor's
//! `$connection`, so that no trace shows a password (rule 22), checks of arguments, and comparison
//! (rule 35).

use std::sync::{Mutex, PoisonError};

use ext_php_rs::ffi::{HashTable, zend_hash_str_find, zend_string};
use ext_php_rs::types::ZendStr;
use ext_php_rs::zend::ClassEntry;

use super::nrllm_failure::NrLlmFailure;
use super::nrllm_lease::NrLlmLease;
use super::nrllm_reap_report::NrLlmReapReport;
use super::nrllm_recovery::NrLlmRecovery;
use super::nrllm_runtime::NrLlmRuntime;
use super::objects::Compare;
use super::{arguments, entries, globals, objects};

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

static COMPLETE: Mutex<bool> = Mutex::new(false);

/// At module start: the classes are new.
pub(super) fn module_started() {
    arguments::module_started();
    *COMPLETE.lock().unwrap_or_else(PoisonError::into_inner) = false;
}

/// Completes the classes, once per module start. Done at the first request: they are registered
/// after the hook of module start. Other threads wait for it with their first request.
pub(super) fn complete_once() {
    let mut complete = COMPLETE.lock().unwrap_or_else(PoisonError::into_inner);
    if !std::mem::replace(&mut *complete, true) {
        // SAFETY: no request has begun, so no code uses the classes.
        unsafe {
            if let Some(runtime) = complete_class::<NrLlmRuntime>() {
                entries::RUNTIME.set(runtime);
                hide_first_parameter(runtime);
            }
            complete_class::<NrLlmLease>();
            complete_class::<NrLlmFailure>();
            complete_class::<NrLlmRecovery>();
            complete_class::<NrLlmReapReport>();
        }
    }
}

/// # Safety
///
/// No code uses the class.
unsafe fn complete_class<T: Compare>() -> Option<&'static mut ClassEntry> {
    let name = T::CLASS_NAME.to_ascii_lowercase();
    // SAFETY: the table maps names in lower case to entries. Ours lives as long as the module, and
    // by this function's contract this is the only reference.
    unsafe {
        let found = zend_hash_str_find(
            (*globals::executor()).class_table,
            name.as_ptr().cast(),
            name.len(),
        );
        let class = found.as_ref()?.value.ptr.cast::<ClassEntry>().as_mut()?;
        arguments::check_before_methods_of(class);
        objects::compare_objects_of::<T>();
        Some(class)
    }
}

/// # Safety
///
/// No code uses the class.
unsafe fn hide_first_parameter(class: &mut ClassEntry) {
    // SAFETY: the constructor is a native function of ours, and no other code reads its attributes
    // now.
    unsafe {
        if let Some(constructor) = class.constructor.as_mut() {
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
