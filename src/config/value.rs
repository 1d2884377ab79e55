//! What a boundary hands over as settings and options: a plain tree, so that their policy is
//! written once.

/// A value of an option.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// No value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating point number.
    Float(f64),
    /// A string of any bytes.
    Bytes(Vec<u8>),
    /// An array with keys in order.
    Map(Vec<(Key, Input)>),
    /// Anything else; holds the name of its type.
    Other(&'static str),
}

/// A key of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// An integer key.
    Int(i64),
    /// A string key.
    Str(Vec<u8>),
}

impl Key {
    /// The key as text for messages.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Int(key) => key.to_string(),
            Self::Str(key) => String::from_utf8_lossy(key).into_owned(),
        }
    }
}

impl Input {
    /// The name of the type, for messages.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Bytes(_) => "string",
            Self::Map(_) => "array",
            Self::Other(name) => name,
        }
    }

    /// Null and the empty string count as absent in connection settings.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bytes(bytes) => bytes.is_empty(),
            _ => false,
        }
    }
}
