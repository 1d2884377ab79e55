//! The failure taxonomy's questions, answered by a Zend object: without autoloading, without
//! recursion, and without running user code except `getAttemptErrors()` and a get hook of `$code`
//! (rule 26).

use std::cell::Cell;
use std::ffi::c_char;
use std::ptr::{self, null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

use ext_php_rs::ffi::{
    ZEND_ACC_LINKED, ZEND_ACC_PRIVATE, ZEND_ACC_PUBLIC, ZEND_ACC_STATIC, zend_call_known_function,
    zend_class_entry, zend_function, zend_hash_find, zend_hash_str_find, zend_property_info,
    zend_string,
};
use ext_php_rs::flags::DataType;
use ext_php_rs::types::{ZendHashTable, ZendObject, ZendStr, Zval};
use ext_php_rs::zend::{ClassEntry, ce};

use super::convert::ThrowableArg;
use super::{globals, interrupt};
use crate::domain::failure::{self, Failure, KnownType, Throwable};

/// How many types are known.
const TYPES: usize = KnownType::ALL.len();

/// The names of the known types as the engine's table of classes has them: in lower case. Interned
/// at module start.
static NAMES: [AtomicPtr<zend_string>; TYPES] = [const { AtomicPtr::new(null_mut()) }; TYPES];

/// A property that classification reads.
#[derive(Clone, Copy)]
enum Property {
    Code,
    Error,
    RetryAfter,
}

impl Property {
    const NAMES: [&str; 3] = ["code", "error", "retryAfterSeconds"];

    /// The interned name, whose hash the engine has computed already; none before module start.
    fn key(self) -> Option<*mut zend_string> {
        let [code, error, retry_after] = &PROPERTIES;
        let key = match self {
            Self::Code => code,
            Self::Error => error,
            Self::RetryAfter => retry_after,
        }
        .load(Ordering::Acquire);
        (!key.is_null()).then_some(key)
    }
}

/// The names of [`Property`]. Interned at module start.
static PROPERTIES: [AtomicPtr<zend_string>; 3] = [const { AtomicPtr::new(null_mut()) }; 3];

thread_local! {
    /// The class or interface of each known type, once this request has found it: a class that is
    /// there stays until the request ends. Each PHP thread has classes of its own.
    static FOUND: [Cell<*const ClassEntry>; TYPES] = const { [const { Cell::new(null()) }; TYPES] };
}

/// Interns the names, at module start.
pub(super) fn prepare() {
    for (name, known) in NAMES.iter().zip(KnownType::ALL) {
        let key = ZendStr::new_interned(known.class_name().to_ascii_lowercase(), true).into_raw();
        name.store(key, Ordering::Release);
    }
    for (property, name) in PROPERTIES.iter().zip(Property::NAMES) {
        property.store(ZendStr::new_interned(name, true).into_raw(), Ordering::Release);
    }
}

/// Forgets the classes that an earlier request found: the engine has freed them. At the start and
/// not at the end, since the end of another extension may still run user code (a session's save
/// handler) after ours.
pub(super) fn request_started() {
    FOUND.with(|found| found.iter().for_each(|class| class.set(null())));
}

/// The class or interface of a known type, if it is loaded. Looked up in the engine's table itself:
/// nothing is autoloaded, whatever is registered.
fn class(
    name: &AtomicPtr<zend_string>,
    found: &Cell<*const ClassEntry>,
) -> Option<&'static ClassEntry> {
    // SAFETY: found in this request, and forgotten before the next one.
    if let Some(class) = unsafe { found.get().as_ref() } {
        return Some(class);
    }
    let key = name.load(Ordering::Acquire);
    // SAFETY: on the PHP thread.
    let loaded = unsafe { (*globals::executor()).class_table };
    if key.is_null() || loaded.is_null() {
        return None;
    }
    // SAFETY: an interned string that lives as long as the module; the table maps names to class
    // entries, which live as long as the request, and is used on the PHP thread during one.
    let class: &ClassEntry =
        unsafe { zend_hash_find(loaded, key).as_ref()?.value.ptr.cast::<ClassEntry>().as_ref()? };
    // One that is still being put together is no type yet.
    if class.ce_flags & ZEND_ACC_LINKED == 0 {
        return None;
    }
    found.set(class);
    Some(class)
}

/// A throwable of the engine, kept alive while it is read.
struct Object(Zval);

impl Object {
    fn object(&self) -> Option<&ZendObject> {
        self.0.object()
    }
}

impl Throwable for Object {
    fn known_type(&self) -> Option<KnownType> {
        let class = self.object()?.get_class_entry();
        FOUND.with(|found| {
            KnownType::ALL
                .into_iter()
                .zip(NAMES.iter().zip(found))
                .find(|(_, (name, found))| {
                    self::class(name, found).is_some_and(|known| class.instance_of(known))
                })
                .map(|(known, _)| known)
        })
    }

    fn code(&self) -> Option<i64> {
        let object = self.object()?;
        let info = declaration(object.get_class_entry(), Property::Code)?;
        let stored = slot(object, info);
        // getCode() is final and reads this property. Its own declaration has no hook, and __get()
        // is not called where the property was unset.
        if is_native(info) || stored.is_some_and(|value| value.get_type() == DataType::Undef) {
            return stored?.long();
        }
        call_public(object, "getcode")?.dereference().long()
    }

    fn retry_after(&self) -> Option<i64> {
        declared_property(self.object()?, Property::RetryAfter)?.long()
    }

    fn last_attempt(self) -> Option<Self> {
        let errors = call_public(self.object()?, "getattempterrors")?;
        let list = errors.dereference().array()?;
        if !is_list(list) {
            return None;
        }
        let last = list.get_index(i64::try_from(list.len()).ok()?.checked_sub(1)?)?.dereference();
        let error = match last.array() {
            Some(attempt) => attempt.get("error")?,
            None => property(last.object()?, Property::Error)?,
        };
        let error = error.dereference();
        error
            .object()
            .filter(|object| object.instance_of(ce::throwable()))
            .map(|_| Self(error.shallow_clone()))
    }
}

/// Returns whether the keys of an array are 0, 1, 2 and so on, in this order.
fn is_list(array: &ZendHashTable) -> bool {
    /// `HASH_FLAG_PACKED`: the array has no keys but its positions.
    const PACKED: u32 = 1 << 2;
    // SAFETY: the flags of a table are always initialised.
    let packed = unsafe { array.u.flags } & PACKED != 0;
    // As many elements as places are in use: without holes.
    (packed && array.nNumUsed == array.nNumOfElements) || array.has_sequential_keys()
}

/// A property, as the object's own class declares it, whatever its visibility; else one that was
/// added to the object; else a private one of the class above. `None` for one that is static, or
/// that has no slot: a virtual one (PHP 8.4) is nothing but its hooks, which are user code.
fn property(object: &ZendObject, name: Property) -> Option<&Zval> {
    let class = object.get_class_entry();
    let declared = declaration(class, name);
    let hidden =
        declared.is_some_and(|info| info.flags & ZEND_ACC_PRIVATE != 0 && !ptr::eq(info.ce, class));
    if (declared.is_none() || hidden)
        && let Some(value) = added(object, name)
    {
        return Some(value);
    }
    slot(object, declared?)
}

/// A property that a class of the object declares, whatever its visibility. `None` for one that is
/// static, or that has no slot.
fn declared_property(object: &ZendObject, name: Property) -> Option<&Zval> {
    slot(object, declaration(object.get_class_entry(), name)?)
}

/// Returns whether a native class declares the property: such a one has no hooks.
fn is_native(info: &zend_property_info) -> bool {
    /// From Zend/zend_compile.h; the same in PHP 8.2 to 8.6.
    const ZEND_INTERNAL_CLASS: c_char = 1;
    // SAFETY: the class that declares a property lives as long as its declaration.
    unsafe { info.ce.as_ref() }.is_some_and(|class| class.type_ == ZEND_INTERNAL_CLASS)
}

/// The declaration of a property by the class or by one above it.
fn declaration(class: &ClassEntry, name: Property) -> Option<&zend_property_info> {
    // SAFETY: the table maps names to property infos, which live as long as the class; it has those
    // of the classes above too.
    unsafe {
        zend_hash_find(&raw const class.properties_info, name.key()?)
            .as_ref()
            .and_then(|found| found.value.ptr.cast::<zend_property_info>().as_ref())
    }
}

/// The value of a declared property, where it has a slot.
fn slot<'a>(object: &'a ZendObject, info: &zend_property_info) -> Option<&'a Zval> {
    let class = object.get_class_entry();
    let offset = usize::try_from(info.offset).ok()?;
    let place =
        offset.checked_sub(std::mem::offset_of!(ZendObject, properties_table))? / size_of::<Zval>();
    if info.flags & ZEND_ACC_STATIC != 0
        || place >= usize::try_from(class.default_properties_count).ok()?
    {
        return None;
    }
    // SAFETY: a slot's offset is relative to the object, which has as many slots as its class says.
    // A virtual property's is none of them.
    unsafe { Some((*ptr::from_ref(object).cast::<u8>().add(offset).cast::<Zval>()).dereference()) }
}

/// A property that no class declares.
fn added(object: &ZendObject, name: Property) -> Option<&Zval> {
    // SAFETY: null, or the object's own table, which lives as long as the object and is not changed
    // while it is read.
    let value = unsafe { zend_hash_find(object.properties.as_ref()?, name.key()?).as_ref()? };
    // The table may name the slots of declared ones too.
    (!value.is_indirect()).then(|| value.dereference())
}

/// Calls a public method without arguments. An exception of it is dropped, also that of a signal's
/// handler which happens to run in it: classification never throws. `exit()` goes on, and the loss
/// of a lease waits (see [`interrupt`]).
fn call_public(object: &ZendObject, lower_name: &str) -> Option<Zval> {
    if !pending_exception().is_null() {
        return None;
    }
    let class = object.get_class_entry();
    let mut returned = Zval::new();
    // SAFETY: the function table maps lower-case names to functions, which live as long as their
    // class; the object is alive during the call. No guard or lock is held here: the callee may
    // bail out.
    unsafe {
        let found = zend_hash_str_find(
            &raw const class.function_table,
            lower_name.as_ptr().cast(),
            lower_name.len(),
        );
        let function = found.as_ref()?.value.ptr.cast::<zend_function>();
        let flags = (*function).common.fn_flags;
        if flags & ZEND_ACC_PUBLIC == 0 || flags & ZEND_ACC_STATIC != 0 {
            return None;
        }
        zend_call_known_function(
            function,
            ptr::from_ref(object).cast_mut(),
            ptr::from_ref(class).cast_mut().cast::<zend_class_entry>(),
            &raw mut returned,
            0,
            null_mut(),
            null_mut(),
        );
        interrupt::call_ended();
        if !pending_exception().is_null() {
            clear_exception();
            return None;
        }
    }
    Some(returned)
}

unsafe extern "C" {
    fn zend_clear_exception();
    fn zend_is_unwind_exit(exception: *const ZendObject) -> bool;
    fn zend_is_graceful_exit(exception: *const ZendObject) -> bool;
}

/// The engine's pending exception, or null.
fn pending_exception() -> *const ZendObject {
    // SAFETY: on the PHP thread, as in [`Name::class`].
    unsafe { (*globals::executor()).exception }
}

/// Drops the pending exception, unless it is the engine's own way of carrying out `exit()`.
fn clear_exception() {
    let pending = pending_exception();
    // SAFETY: on the PHP thread; `pending` is the engine's pending exception, which is not null
    // here.
    unsafe {
        if !zend_is_unwind_exit(pending) && !zend_is_graceful_exit(pending) {
            zend_clear_exception();
        }
    }
}

/// The failure that a throwable is: its classification, and its class as `error_class` keeps it.
pub(super) fn failure(error: &ThrowableArg<'_>) -> Failure {
    Failure {
        classification: failure::classify(Object(error.0.shallow_clone())),
        error_class: error_class(error),
    }
}

/// The name of a throwable's class as `error_class` keeps it.
pub(super) fn error_class(error: &ThrowableArg<'_>) -> String {
    // SAFETY: a class entry of a live object has a name.
    let name =
        error.0.object().and_then(|object| unsafe { object.get_class_entry().name.as_ref() });
    failure::error_class(name.map(ZendStr::as_bytes).unwrap_or_default())
}
