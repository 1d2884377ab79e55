//! The single settings of a connection, read and checked one by one, before they are put together.

use secrecy::SecretString;

use super::value::{Input, Key};
use crate::error::{Error, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Driver {
    Mysqli,
    PdoMysql,
}

/// The fields of the array, before they are put together.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) driver: Option<Driver>,
    pub(super) host: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) unix_socket: Option<String>,
    pub(super) user: Option<String>,
    pub(super) password: Option<SecretString>,
    pub(super) dbname: Option<String>,
    /// `ssl_*` at the top level: mysqli's spelling.
    pub(super) top_level_tls: Vec<(String, Input)>,
    pub(super) driver_options: Vec<(Key, Input)>,
}

pub(super) fn parse_driver(name: &str) -> Result<Driver> {
    match name {
        "mysqli" | "mysql" | "mysql2" => Ok(Driver::Mysqli),
        "pdo_mysql" | "pdo-mysql" => Ok(Driver::PdoMysql),
        other => Err(Error::configuration(format!(
            "driver '{}' is not supported; the runtime talks to MySQL and MariaDB: driver is 'mysqli' or 'pdo_mysql' (URLs: mysql://)",
            other.escape_debug()
        ))),
    }
}

pub(super) fn mistyped(name: &str, expected: &str, value: &Input) -> Error {
    Error::configuration(format!(
        "connection setting {name} must be {expected}, {} given",
        value.type_name()
    ))
}

pub(super) fn string(name: &str, value: &Input) -> Result<String> {
    match value {
        Input::Bytes(bytes) => {
            let text = String::from_utf8(bytes.clone()).map_err(|_| {
                Error::configuration(format!("connection setting {name} must be UTF-8"))
            })?;
            if text.contains('\0') {
                return Err(Error::configuration(format!(
                    "connection setting {name} must not hold a NUL byte"
                )));
            }
            Ok(text)
        }
        other => Err(mistyped(name, "a string", other)),
    }
}

pub(super) fn secret(value: &Input) -> Result<SecretString> {
    // The messages of string() name the setting and never its value.
    string("password", value).map(SecretString::from)
}

pub(super) fn port(value: &Input) -> Result<Option<u16>> {
    let number = match value {
        Input::Int(number) => Some(*number),
        Input::Bytes(bytes) => {
            std::str::from_utf8(bytes).ok().and_then(|text| text.trim().parse().ok())
        }
        other => return Err(mistyped("port", "an integer or a numeric string", other)),
    };
    match number {
        // TYPO3's default of "no port".
        Some(0) => Ok(None),
        Some(number @ 1..=65_535) => Ok(u16::try_from(number).ok()),
        _ => Err(Error::configuration("connection setting port must be a number from 1 to 65535")),
    }
}
