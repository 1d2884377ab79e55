//! TLS in the spelling of each driver: what asks for it, and what cannot be done. A setting that
//! asks for TLS is followed or refused, never left out.

use std::path::PathBuf;

use super::fields::{Driver, Fields, mistyped, string};
use super::value::{Input, Key};
use crate::error::{Error, Result};

/// How TLS is done, when it is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tls {
    /// The PEM file with the certificate authorities; without it those of the system count.
    pub ca: Option<PathBuf>,
    /// The PEM files of the client's certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Encrypt only: neither the certificate nor the name is checked.
    pub accept_any_certificate: bool,
}

/// mysqli's client flags.
const MYSQLI_CLIENT_SSL: i64 = 2048;
const MYSQLI_CLIENT_SSL_DONT_VERIFY: i64 = 64;
const MYSQLI_CLIENT_SSL_VERIFY: i64 = 1 << 30;
const MYSQLI_TLS: i64 =
    MYSQLI_CLIENT_SSL | MYSQLI_CLIENT_SSL_DONT_VERIFY | MYSQLI_CLIENT_SSL_VERIFY;
/// The driver options of PDO that concern TLS, with their names.
const PDO_SSL_KEY: i64 = 1007;
const PDO_SSL_CERT: i64 = 1008;
const PDO_SSL_CA: i64 = 1009;
const PDO_SSL_CAPATH: i64 = 1010;
const PDO_SSL_CIPHER: i64 = 1011;
const PDO_SSL_VERIFY: i64 = 1014;

impl Fields {
    /// Returns how TLS is done, if the settings ask for it.
    pub(super) fn tls(&self) -> Result<Option<Tls>> {
        match self.driver.unwrap_or(Driver::Mysqli) {
            Driver::Mysqli => self.mysqli_tls(),
            Driver::PdoMysql => self.pdo_tls(),
        }
    }

    fn mysqli_tls(&self) -> Result<Option<Tls>> {
        let mut files = TlsFiles::default();
        for (name, value) in &self.top_level_tls {
            let path = string(name, value)?;
            match name.as_str() {
                "ssl_key" => files.key = Some(path.into()),
                "ssl_cert" => files.cert = Some(path.into()),
                "ssl_ca" => files.ca = Some(path.into()),
                _ => return Err(unsupported_tls(name)),
            }
        }
        let mut flags = 0;
        for (key, value) in &self.driver_options {
            match key {
                Key::Str(name) if name.as_slice() == b"flags" => {
                    flags = match value {
                        Input::Int(flags) => *flags,
                        Input::Null => 0,
                        other => {
                            return Err(mistyped("driverOptions['flags']", "an integer", other));
                        }
                    }
                }
                Key::Int(
                    PDO_SSL_KEY | PDO_SSL_CERT | PDO_SSL_CA | PDO_SSL_CAPATH | PDO_SSL_CIPHER
                    | PDO_SSL_VERIFY,
                ) if !value.is_absent() => {
                    return Err(Error::configuration(
                        "driverOptions asks for TLS in the spelling of pdo_mysql (PDO::MYSQL_ATTR_SSL_*), but the driver is mysqli; use \
                         ssl_ca, ssl_cert, ssl_key at the top level and MYSQLI_CLIENT_SSL in driverOptions['flags']",
                    ));
                }
                _ => {}
            }
        }
        let unverified = flags & MYSQLI_CLIENT_SSL_DONT_VERIFY != 0;
        let asked = flags & MYSQLI_TLS != 0;
        files.finish(asked, unverified, "ssl_cert and ssl_key")
    }

    fn pdo_tls(&self) -> Result<Option<Tls>> {
        if let Some((name, _)) = self.top_level_tls.first() {
            return Err(Error::configuration(format!(
                "{name} asks for TLS in the spelling of mysqli, but the driver is pdo_mysql, which ignores it; use \
                 driverOptions[PDO::MYSQL_ATTR_SSL_CA] and its kin"
            )));
        }
        let mut files = TlsFiles::default();
        let mut verify = None;
        for (key, value) in &self.driver_options {
            match key {
                Key::Str(name) if name.as_slice() == b"flags" => {
                    let flags = match value {
                        Input::Int(flags) => *flags,
                        Input::Null => 0,
                        other => {
                            return Err(mistyped("driverOptions['flags']", "an integer", other));
                        }
                    };
                    if flags & MYSQLI_TLS != 0 {
                        return Err(Error::configuration(
                            "driverOptions['flags'] asks for TLS in the spelling of mysqli, but the driver is pdo_mysql, which ignores it; use \
                             driverOptions[PDO::MYSQL_ATTR_SSL_CA] and its kin",
                        ));
                    }
                }
                Key::Int(PDO_SSL_VERIFY) => {
                    verify = match value {
                        Input::Bool(verify) => Some(*verify),
                        Input::Int(verify) => Some(*verify != 0),
                        Input::Null => None,
                        other => {
                            return Err(mistyped(
                                "driverOptions[PDO::MYSQL_ATTR_SSL_VERIFY_SERVER_CERT]",
                                "a bool",
                                other,
                            ));
                        }
                    }
                }
                Key::Int(
                    number @ (PDO_SSL_KEY | PDO_SSL_CERT | PDO_SSL_CA | PDO_SSL_CAPATH
                    | PDO_SSL_CIPHER),
                ) => {
                    if value.is_absent() {
                        continue;
                    }
                    let name = match *number {
                        PDO_SSL_KEY => "driverOptions[PDO::MYSQL_ATTR_SSL_KEY]",
                        PDO_SSL_CERT => "driverOptions[PDO::MYSQL_ATTR_SSL_CERT]",
                        PDO_SSL_CA => "driverOptions[PDO::MYSQL_ATTR_SSL_CA]",
                        PDO_SSL_CAPATH => {
                            return Err(unsupported_tls(
                                "driverOptions[PDO::MYSQL_ATTR_SSL_CAPATH]",
                            ));
                        }
                        _ => {
                            return Err(unsupported_tls(
                                "driverOptions[PDO::MYSQL_ATTR_SSL_CIPHER]",
                            ));
                        }
                    };
                    let path = Some(PathBuf::from(string(name, value)?));
                    match *number {
                        PDO_SSL_KEY => files.key = path,
                        PDO_SSL_CERT => files.cert = path,
                        _ => files.ca = path,
                    }
                }
                _ => {}
            }
        }
        let tls = files.finish(
            false,
            verify == Some(false),
            "PDO::MYSQL_ATTR_SSL_CERT and PDO::MYSQL_ATTR_SSL_KEY",
        )?;
        if tls.is_none() && verify == Some(true) {
            return Err(Error::configuration(
                "driverOptions[PDO::MYSQL_ATTR_SSL_VERIFY_SERVER_CERT] is set, but pdo_mysql does TLS only where \
                 driverOptions[PDO::MYSQL_ATTR_SSL_CA] names the certificate authorities; set it too",
            ));
        }
        Ok(tls)
    }
}

#[derive(Default)]
struct TlsFiles {
    key: Option<PathBuf>,
    cert: Option<PathBuf>,
    ca: Option<PathBuf>,
}

impl TlsFiles {
    fn finish(self, asked: bool, unverified: bool, pair: &str) -> Result<Option<Tls>> {
        let identity = match (self.cert, self.key) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => {
                return Err(Error::configuration(format!(
                    "a client certificate needs both {pair}; only one is set"
                )));
            }
        };
        if !asked && self.ca.is_none() && identity.is_none() {
            return Ok(None);
        }
        Ok(Some(Tls { ca: self.ca, identity, accept_any_certificate: unverified }))
    }
}

/// Returns whether a key that neither driver knows is meant to ask for TLS (`sslmode`, `ssl`,
/// `tls`).
pub(super) fn speaks_of_tls(key: &[u8]) -> bool {
    key.get(..3).is_some_and(|start| {
        start.eq_ignore_ascii_case(b"ssl") || start.eq_ignore_ascii_case(b"tls")
    })
}

pub(super) fn unknown_tls(name: &str) -> Error {
    Error::configuration(format!(
        "connection setting {} asks for TLS in a way that neither mysqli nor pdo_mysql knows, and would be ignored; use ssl_ca, ssl_cert, ssl_key or \
         MYSQLI_CLIENT_SSL in driverOptions['flags'] (mysqli), or driverOptions[PDO::MYSQL_ATTR_SSL_CA] and its kin (pdo_mysql)",
        name.escape_debug()
    ))
}

fn unsupported_tls(name: &str) -> Error {
    Error::configuration(format!(
        "{name} is not supported by the runtime's TLS (rustls); name the certificate authorities in one PEM file with the CA setting and leave \
         the cipher suites to TLS 1.2 and 1.3"
    ))
}
