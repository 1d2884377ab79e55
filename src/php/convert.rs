//! Arguments as PHP gives them, and arrays as PHP takes them.

use std::ffi::{CStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use ext_php_rs::convert::{FromZval, StubLiteral};
use ext_php_rs::exception::{PhpException, PhpResult};
use ext_php_rs::flags::DataType;
use ext_php_rs::types::{ZendHashTable, Zval};
use ext_php_rs::zend::ce;

use crate::config::connection::Defaults;
use crate::config::value::{Input, Key};
use crate::error::Error;

/// A string of any bytes.
#[derive(Clone, Copy)]
pub(super) struct Text<'a>(pub(super) &'a [u8]);

impl<'a> FromZval<'a> for Text<'a> {
    const TYPE: DataType = DataType::String;

    fn from_zval(zval: &'a Zval) -> Option<Self> {
        zval.zend_str().map(|text| Self(text.as_bytes()))
    }
}

/// An array of options; absent means empty.
#[derive(Clone, Copy)]
pub(super) struct Array<'a>(Option<&'a ZendHashTable>);

impl Array<'_> {
    pub(super) const EMPTY: Self = Self(None);

    pub(super) fn entries(self) -> Vec<(Key, Input)> {
        self.0.map(|table| entries(table, 0)).unwrap_or_default()
    }
}

impl<'a> FromZval<'a> for Array<'a> {
    const TYPE: DataType = DataType::Array;

    fn from_zval(zval: &'a Zval) -> Option<Self> {
        zval.array().map(|table| Self(Some(table)))
    }
}

impl StubLiteral for Array<'_> {
    fn stub_literal(&self) -> String {
        "[]".to_owned()
    }
}

/// An object that is a `Throwable`.
pub(super) struct ThrowableArg<'a>(pub(super) &'a Zval);

impl<'a> FromZval<'a> for ThrowableArg<'a> {
    const TYPE: DataType = DataType::object("Throwable");

    fn from_zval(zval: &'a Zval) -> Option<Self> {
        zval.object().filter(|object| object.instance_of(ce::throwable())).map(|_| Self(zval))
    }
}

/// How deep arrays are read; no option has a deeper one.
const MAX_DEPTH: u32 = 8;

/// A PHP value as a plain tree.
pub(super) fn input(zval: &Zval) -> Input {
    read(zval, 0)
}

fn read(zval: &Zval, depth: u32) -> Input {
    let zval = zval.dereference();
    if zval.is_null() {
        Input::Null
    } else if let Some(value) = zval.bool() {
        Input::Bool(value)
    } else if let Some(value) = zval.long() {
        Input::Int(value)
    } else if let Some(value) = zval.double() {
        Input::Float(value)
    } else if let Some(value) = zval.zend_str() {
        Input::Bytes(value.as_bytes().to_vec())
    } else if let Some(table) = zval.array() {
        if depth < MAX_DEPTH {
            Input::Map(entries(table, depth + 1))
        } else {
            Input::Other("array")
        }
    } else if zval.is_object() {
        Input::Other("object")
    } else {
        Input::Other("resource")
    }
}

fn entries(table: &ZendHashTable, depth: u32) -> Vec<(Key, Input)> {
    let mut all = Vec::with_capacity(table.len());
    let mut iterator = table.iter();
    while let Some((key, value)) = iterator.next_zval() {
        let key = match key.long() {
            Some(number) => Key::Int(number),
            None => {
                Key::Str(key.zend_str().map(|text| text.as_bytes().to_vec()).unwrap_or_default())
            }
        };
        all.push((key, read(value, depth)));
    }
    all
}

/// What `localhost` means to PHP on this machine.
pub(super) fn defaults() -> Defaults {
    Defaults {
        socket: ini_path(c"mysqli.default_socket")
            .or_else(|| ini_path(c"pdo_mysql.default_socket")),
    }
}

unsafe extern "C" {
    /// The value of an INI setting, or NULL where no module registered it.
    fn zend_ini_string(name: *const c_char, name_length: usize, original: c_int) -> *mut c_char;
}

fn ini_path(name: &CStr) -> Option<PathBuf> {
    // SAFETY: called on the PHP thread during a request; the engine owns the string that is
    // returned, and it is copied at once.
    let value = unsafe {
        let value = zend_ini_string(name.as_ptr(), name.count_bytes(), 0);
        if value.is_null() {
            return None;
        }
        CStr::from_ptr(value).to_bytes()
    };
    (!value.is_empty()).then(|| PathBuf::from(std::ffi::OsStr::from_bytes(value)))
}

/// An array of connection settings or a URL; anything else is a `TypeError`.
pub(super) fn connection(zval: &Zval) -> PhpResult<Input> {
    match input(zval) {
        connection @ (Input::Map(_) | Input::Bytes(_)) => Ok(connection),
        _ => Err(PhpException::new(
            format!(
                "NrLlmRuntime::__construct(): Argument #1 ($connection) must be of type array|string, {} given",
                super::arguments::type_name(zval).to_string_lossy()
            ),
            0,
            ce::type_error(),
        )),
    }
}

/// A count as PHP's int.
pub(super) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Optional wake-up settings.
pub(super) fn wake_up(entries: &[(Key, Input)]) -> Result<crate::config::requests::WakeUp, Error> {
    crate::config::requests::WakeUp::parse(entries)
}
