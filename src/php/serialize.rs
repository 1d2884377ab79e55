//! Answers as PHP values: a serde serializer, so that their keys are written down once, in
//! [`crate::views`].

use std::cell::{Cell, RefCell};
use std::fmt::{self, Display};

use ext_php_rs::boxed::ZBox;
use ext_php_rs::convert::IntoZval;
use ext_php_rs::error::Error as PhpError;
use ext_php_rs::exception::PhpResult;
use ext_php_rs::flags::DataType;
use ext_php_rs::types::{ArrayKey, ZendHashTable, ZendStr, Zval};
use serde::ser::{
    self, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, Serializer,
};

use crate::error::Kind;

/// An array that a method returns.
pub(super) struct Array(Zval);

impl IntoZval for Array {
    const TYPE: DataType = DataType::Array;
    const NULLABLE: bool = false;

    fn set_zval(self, zval: &mut Zval, _persistent: bool) -> ext_php_rs::error::Result<()> {
        *zval = self.0;
        Ok(())
    }
}

/// An answer as an array. It must be a list, a map or a structure.
pub(super) fn array(answer: &impl Serialize) -> PhpResult<Array> {
    match answer.serialize(ToPhp(&Names::default())) {
        Ok(value) if value.is_array() => Ok(Array(value)),
        Ok(_) => Err(crate::error::Error::new(Kind::Internal, "an answer is no array").into()),
        Err(error) => Err(crate::error::Error::new(Kind::Internal, error.to_string()).into()),
    }
}

/// What an answer may not hold, or PHP could not allocate.
#[derive(Debug)]
struct Error(String);

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl ser::Error for Error {
    fn custom<T: Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl From<PhpError> for Error {
    fn from(error: PhpError) -> Self {
        Self(error.to_string())
    }
}

/// The keys of an answer's structures as PHP strings. The entries of a list share them, so that
/// each key is allocated and hashed once.
#[derive(Default)]
struct Names {
    known: RefCell<Vec<(&'static str, ZBox<ZendStr>)>>,
    /// The place behind the key that was used last, where the next one usually is.
    next: Cell<usize>,
}

impl Names {
    fn insert(
        &self,
        table: &mut ZendHashTable,
        key: &'static str,
        value: Zval,
    ) -> Result<(), Error> {
        let mut known = self.known.borrow_mut();
        let is_key = |(name, _): &(&'static str, _)| std::ptr::eq(*name, key);
        let mut index = self.next.get();
        if !known.get(index).is_some_and(is_key) {
            index = known.iter().position(is_key).unwrap_or_else(|| {
                known.push((key, ZendStr::new(key, false)));
                known.len() - 1
            });
        }
        self.next.set((index + 1) % known.len());
        match known.get(index) {
            Some((_, name)) => Ok(table.insert(ArrayKey::ZendString(name), value)?),
            None => unsupported("a structure without keys"),
        }
    }
}

/// Makes a PHP value of whatever an answer holds: null, bool, int, float, string, list, map.
#[derive(Clone, Copy)]
struct ToPhp<'n>(&'n Names);

fn zval(value: impl IntoZval) -> Result<Zval, Error> {
    Ok(value.into_zval(false)?)
}

fn table(size: Option<usize>) -> ZBox<ZendHashTable> {
    ZendHashTable::with_capacity(size.and_then(|size| u32::try_from(size).ok()).unwrap_or(0))
}

fn unsupported<T>(what: &str) -> Result<T, Error> {
    Err(Error(format!("{what} has no form in PHP")))
}

impl<'n> Serializer for ToPhp<'n> {
    type Ok = Zval;
    type Error = Error;
    type SerializeSeq = List<'n>;
    type SerializeTuple = Impossible<Zval, Error>;
    type SerializeTupleStruct = Impossible<Zval, Error>;
    type SerializeTupleVariant = Impossible<Zval, Error>;
    type SerializeMap = Map<'n>;
    type SerializeStruct = Map<'n>;
    type SerializeStructVariant = Impossible<Zval, Error>;

    fn serialize_bool(self, value: bool) -> Result<Zval, Error> {
        zval(value)
    }

    fn serialize_i8(self, value: i8) -> Result<Zval, Error> {
        zval(i64::from(value))
    }

    fn serialize_i16(self, value: i16) -> Result<Zval, Error> {
        zval(i64::from(value))
    }

    fn serialize_i32(self, value: i32) -> Result<Zval, Error> {
        zval(i64::from(value))
    }

    fn serialize_i64(self, value: i64) -> Result<Zval, Error> {
        zval(value)
    }

    fn serialize_u8(self, value: u8) -> Result<Zval, Error> {
        zval(i64::from(value))
    }

    fn serialize_u16(self, value: u16) -> Result<Zval, Error> {
        zval(i64::from(value))
    }

    fn serialize_u32(self, value: u32) -> Result<Zval, Error> {
        zval(i64::from(value))
    }

    fn serialize_u64(self, value: u64) -> Result<Zval, Error> {
        zval(i64::try_from(value).unwrap_or(i64::MAX))
    }

    fn serialize_f32(self, value: f32) -> Result<Zval, Error> {
        zval(f64::from(value))
    }

    fn serialize_f64(self, value: f64) -> Result<Zval, Error> {
        zval(value)
    }

    fn serialize_char(self, value: char) -> Result<Zval, Error> {
        zval(value.to_string())
    }

    fn serialize_str(self, value: &str) -> Result<Zval, Error> {
        zval(value)
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<Zval, Error> {
        unsupported("a string of bytes")
    }

    fn serialize_none(self) -> Result<Zval, Error> {
        Ok(Zval::null())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Zval, Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Zval, Error> {
        Ok(Zval::null())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Zval, Error> {
        Ok(Zval::null())
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Zval, Error> {
        zval(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Zval, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Zval, Error> {
        unsupported("a variant")
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<List<'n>, Error> {
        Ok(List { table: table(length), to_php: self })
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Error> {
        unsupported("a tuple")
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Error> {
        unsupported("a tuple")
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        unsupported("a variant")
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Map<'n>, Error> {
        Ok(Map { table: table(length), key: None, to_php: self })
    }

    fn serialize_struct(self, _: &'static str, length: usize) -> Result<Map<'n>, Error> {
        self.serialize_map(Some(length))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        unsupported("a variant")
    }
}

/// A list under construction.
struct List<'n> {
    table: ZBox<ZendHashTable>,
    to_php: ToPhp<'n>,
}

impl SerializeSeq for List<'_> {
    type Ok = Zval;
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        Ok(self.table.push(value.serialize(self.to_php)?)?)
    }

    fn end(self) -> Result<Zval, Error> {
        zval(self.table)
    }
}

/// An array with names under construction.
struct Map<'n> {
    table: ZBox<ZendHashTable>,
    key: Option<String>,
    to_php: ToPhp<'n>,
}

impl SerializeMap for Map<'_> {
    type Ok = Zval;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key = key.serialize(self.to_php)?.str().map(str::to_owned);
        if self.key.is_none() {
            return unsupported("a key that is no string");
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        match self.key.take() {
            Some(key) => Ok(self.table.insert(key.as_str(), value.serialize(self.to_php)?)?),
            None => unsupported("a value without a key"),
        }
    }

    fn end(self) -> Result<Zval, Error> {
        zval(self.table)
    }
}

impl SerializeStruct for Map<'_> {
    type Ok = Zval;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let value = value.serialize(self.to_php)?;
        self.to_php.0.insert(&mut self.table, key, value)
    }

    fn end(self) -> Result<Zval, Error> {
        zval(self.table)
    }
}
