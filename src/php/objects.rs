//! How our objects compare (rule 35). Without a handler of their own any two of a class would be
//! equal, since they have no properties. Values are equal when their contents are; a runtime and a
//! lease are equal to themselves alone.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ext_php_rs::class::RegisteredClass;
use ext_php_rs::ffi::zend_std_compare_objects;
use ext_php_rs::types::{ZendClassObject, Zval};

/// What the engine takes for neither equal, nor less, nor greater.
const UNCOMPARABLE: c_int = 1;

/// A class whose objects compare.
pub(super) trait Compare: RegisteredClass {
    /// Returns whether two objects are equal that are not the same one.
    fn is_equal(&self, other: &Self) -> bool;
}

/// Makes the objects of a class compare.
///
/// # Safety
///
/// No object of the class exists yet.
pub(super) unsafe fn compare_objects_of<T: Compare>() {
    let handlers = std::ptr::from_ref(T::get_metadata().handlers()).cast_mut();
    // SAFETY: the binding keeps the handlers in a cell of the class's metadata, which is writable,
    // and only objects refer to them. The objects must share them: the binding knows its own
    // objects by their address.
    unsafe { (&raw mut (*handlers).compare).write(Some(compare::<T>)) };
}

/// The engine's comparison, of which one side at least is an object of the class.
///
/// # Safety
///
/// Called by the engine alone, with two values.
unsafe extern "C" fn compare<T: Compare>(one: *mut Zval, other: *mut Zval) -> c_int {
    // SAFETY: by this function's contract.
    unsafe {
        let (Some(first), Some(second)) = ((*one).object(), (*other).object()) else {
            return zend_std_compare_objects(one, other);
        };
        if std::ptr::eq(first, second) {
            return 0;
        }
        let values = [first, second].map(ZendClassObject::<T>::from_zend_obj);
        let equal = catch_unwind(AssertUnwindSafe(|| match values {
            [Some(first), Some(second)] => first.is_equal(second),
            _ => false,
        }));
        if equal.unwrap_or(false) { 0 } else { UNCOMPARABLE }
    }
}
