//! Types of arguments, checked before a method runs, so that a wrong one is reported in PHP's own
//! words (rule 35).
//!
//! The binding to PHP converts the arguments one by one and has words of its own. So each method of
//! our classes gets a handler in front of its own, which compares all arguments with the declared
//! types. Nothing is coerced.

use std::ffi::{CStr, CString, c_char};
use std::sync::atomic::{AtomicI32, Ordering};

use ext_php_rs::boxed::ZBox;
use ext_php_rs::ffi::{
    ZEND_MODULE_API_NO, zend_class_entry, zend_execute_data, zend_function, zend_string, zend_type,
    zval,
};
use ext_php_rs::types::{ZendStr, Zval};
use ext_php_rs::zend::{ClassEntry, ce};

/// The engine's call of a native function.
type Handler = unsafe extern "C" fn(*mut zend_execute_data, *mut zval);

unsafe extern "C" {
    /// Reserves one of the pointers that the engine keeps for extensions in every function; -1
    /// where none is left.
    fn zend_get_resource_handle(module: *const c_char) -> i32;
    /// A type as PHP spells it. The caller owns the string.
    fn zend_type_to_string(of: zend_type) -> *mut zend_string;
    /// Throws a TypeError that names the running function and its argument.
    fn zend_argument_type_error(number: u32, format: *const c_char, ...);
}

/// Which of a function's reserved pointers holds its own handler; negative where there is none.
static SLOT: AtomicI32 = AtomicI32::new(-1);

/// At module start: the engine hands out the pointers then.
pub(super) fn module_started() {
    if SLOT.load(Ordering::Acquire) < 0 {
        // SAFETY: called at module start, on the thread that starts modules.
        SLOT.store(
            unsafe { zend_get_resource_handle(c"nrllm_runtime".as_ptr()) },
            Ordering::Release,
        );
    }
}

/// Puts the check in front of every method of a class.
///
/// # Safety
///
/// The class is one of ours, and no method of it runs yet.
pub(super) unsafe fn check_before_methods_of(class: &mut ClassEntry) {
    let Ok(slot) = usize::try_from(SLOT.load(Ordering::Acquire)) else {
        // Without a place for the handlers, wrong types are reported in the binding's words.
        return;
    };
    for (_, method) in &class.function_table {
        // SAFETY: the table holds native functions of ours, which no other code reads now by this
        // function's contract.
        unsafe {
            let Some(method) = method.value.ptr.cast::<zend_function>().as_mut() else { continue };
            let function = &mut method.internal_function;
            if let (Some(handler), Some(reserved)) =
                (function.handler, function.reserved.get_mut(slot))
                && handler as usize != checked as Handler as usize
            {
                *reserved = handler as *mut _;
                function.handler = Some(checked);
            }
        }
    }
}

/// Runs the method, unless an argument has the wrong type: then an exception is on its way.
///
/// # Safety
///
/// Called by the engine alone, with the frame of a method of ours.
unsafe extern "C" fn checked(frame: *mut zend_execute_data, returned: *mut zval) {
    // SAFETY: by this function's contract. check_before_methods_of() has put the handler there
    // before this one can be called.
    unsafe {
        if let Some(number) = wrong_argument(frame) {
            throw(frame, number);
            return;
        }
        let slot = usize::try_from(SLOT.load(Ordering::Acquire)).unwrap_or(0);
        if let Some(&handler) = (*(*frame).func).internal_function.reserved.get(slot) {
            std::mem::transmute::<*mut std::ffi::c_void, Handler>(handler)(frame, returned);
        }
    }
}

/// How many slots of the size of a value a frame takes before its arguments.
const FRAME: usize = size_of::<zend_execute_data>().div_ceil(size_of::<Zval>());

/// Returns the number of the first argument that has another type than declared. Too many or too
/// few are not checked: the method itself reports them, in PHP's words.
///
/// # Safety
///
/// `frame` is the frame of a method of ours.
unsafe fn wrong_argument(frame: *const zend_execute_data) -> Option<usize> {
    // SAFETY: by this function's contract. The arguments follow the frame, as many as it says; a
    // function has as many declared ones as it says.
    unsafe {
        let function = &(*(*frame).func).common;
        let given = (*frame).This.u2.num_args;
        if given < function.required_num_args || given > function.num_args {
            return None;
        }
        (0..given as usize)
            .find(|&index| {
                let value = &*frame.cast::<Zval>().add(FRAME + index);
                let declared = &*function.arg_info.add(index);
                !fits(value.dereference(), &declared.type_)
            })
            .map(|index| index + 1)
    }
}

/// Returns whether a value has the declared type. The one class that our methods name is
/// `Throwable`.
fn fits(value: &Zval, declared: &zend_type) -> bool {
    // SAFETY: every value has a type.
    let kind = unsafe { value.u1.v.type_ };
    // An argument that a call by names left out has no type; it gets its default.
    kind == 0
        || declared.type_mask & (1 << kind) != 0
        || (!declared.ptr.is_null()
            && value.object().is_some_and(|object| object.instance_of(ce::throwable())))
}

/// # Safety
///
/// `frame` is the running frame, and one of a method of ours with an argument of that number.
unsafe fn throw(frame: *const zend_execute_data, number: usize) {
    // SAFETY: by this function's contract. The formats' arguments are strings that end with a NUL
    // byte, and the engine copies them.
    unsafe {
        let function = &(*(*frame).func).common;
        let value = (*frame.cast::<Zval>().add(FRAME + number - 1)).dereference();
        let declared = zend_type_to_string((*function.arg_info.add(number - 1)).type_);
        let declared: ZBox<ZendStr> = ZBox::from_raw(declared);
        let given = type_name(value);
        zend_argument_type_error(
            u32::try_from(number).unwrap_or(u32::MAX),
            c"must be of type %s, %s given".as_ptr(),
            (&raw const declared.val).cast::<c_char>(),
            given.as_ptr(),
        );
    }
}

/// The type of a value, as this PHP names it in such an error.
pub(super) fn type_name(value: &Zval) -> CString {
    /// From PHP 8.3 on, true and false have names of their own.
    const NAMES_BOOLEANS: bool = ZEND_MODULE_API_NO >= 20_230_831;
    let value = value.dereference();
    let name: &CStr = match value.bool() {
        Some(true) if NAMES_BOOLEANS => c"true",
        Some(false) if NAMES_BOOLEANS => c"false",
        Some(_) => c"bool",
        None if value.is_null() => c"null",
        None if value.is_long() => c"int",
        None if value.is_double() => c"float",
        None if value.is_string() => c"string",
        None if value.is_array() => c"array",
        None => match value.object() {
            Some(object) => return class_name(object.get_class_entry()),
            None => c"resource",
        },
    };
    name.to_owned()
}

/// Without the path that follows the NUL byte in the name of an anonymous class.
fn class_name(class: &zend_class_entry) -> CString {
    // SAFETY: the class of a live object has a name.
    let name = unsafe { class.name.as_ref() }.map(ZendStr::as_bytes).unwrap_or_default();
    CString::new(name.split(|byte| *byte == 0).next().unwrap_or_default()).unwrap_or_default()
}
