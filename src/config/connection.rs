//! Connection settings: TYPO3's array or a URL, read into checked fields. The password is never shown.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use secrecy::{ExposeSecret, SecretString};

use super::value::{Input, Key};
use crate::error::{Error, Result};

/// Where the server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A host (name or address) and a port.
    Tcp {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
    /// A unix socket.
    Socket(PathBuf),
}

impl Endpoint {
    /// The address, when the host is one and no name has to be resolved.
    #[must_use]
    pub fn literal_address(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp { host, .. } => host.parse().ok(),
            Self::Socket(_) => None,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Socket(path) => write!(f, "{}", path.display()),
        }
    }
}

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

/// The settings of a connection.
#[derive(Clone)]
pub struct ConnectionSettings {
    /// Where.
    pub endpoint: Endpoint,
    /// Who.
    pub user: String,
    password: SecretString,
    /// Which database; may be empty when the table option names a schema.
    pub dbname: String,
    /// With TLS, if asked for.
    pub tls: Option<Tls>,
}

impl PartialEq for ConnectionSettings {
    fn eq(&self, other: &Self) -> bool {
        self.endpoint == other.endpoint
            && self.user == other.user
            && self.dbname == other.dbname
            && self.tls == other.tls
            && self.password.expose_secret() == other.password.expose_secret()
    }
}

// Tells `Arc` that the same settings need not be compared.
impl Eq for ConnectionSettings {}

impl fmt::Debug for ConnectionSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionSettings")
            .field("endpoint", &self.endpoint)
            .field("user", &self.user)
            .field("password", &"***")
            .field("dbname", &self.dbname)
            .field("tls", &self.tls)
            .finish()
    }
}

/// What a boundary knows about its surroundings.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    /// The socket that `localhost` means (PHP: `mysqli.default_socket`).
    pub socket: Option<PathBuf>,
}

/// Where servers put their socket when nothing says where.
const USUAL_SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Driver {
    Mysqli,
    PdoMysql,
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

/// The fields of the array, before they are put together.
#[derive(Default)]
struct Fields {
    driver: Option<Driver>,
    host: Option<String>,
    port: Option<u16>,
    unix_socket: Option<String>,
    user: Option<String>,
    password: Option<SecretString>,
    dbname: Option<String>,
    /// `ssl_*` at the top level: mysqli's spelling.
    top_level_tls: Vec<(String, Input)>,
    driver_options: Vec<(Key, Input)>,
}

impl ConnectionSettings {
    /// Reads the connection as a boundary got it: an array, or a URL as a string.
    ///
    /// # Errors
    ///
    /// A configuration error that names the setting and what would be right. It never quotes the password.
    pub fn parse(connection: &Input, defaults: &Defaults) -> Result<Self> {
        match connection {
            Input::Bytes(url) => {
                let mut fields = Fields::default();
                fields.read_url(url)?;
                fields.finish(defaults)
            }
            Input::Map(entries) => {
                let mut fields = Fields::default();
                fields.read_array(entries)?;
                fields.finish(defaults)
            }
            other => Err(Error::configuration(format!(
                "the connection must be an array of settings or a URL (mysql://user:password@host:port/dbname), {} given",
                other.type_name()
            ))),
        }
    }

    pub(crate) fn password(&self) -> &str {
        self.password.expose_secret()
    }
}

impl Fields {
    fn read_array(&mut self, entries: &[(Key, Input)]) -> Result<()> {
        let mut url = None;
        for (key, value) in entries {
            let Key::Str(key) = key else { continue };
            if value.is_absent() {
                continue;
            }
            match key.as_slice() {
                b"driver" => self.driver = Some(parse_driver(&string("driver", value)?)?),
                b"host" => self.host = Some(string("host", value)?),
                b"port" => self.port = port(value)?,
                b"unix_socket" => self.unix_socket = Some(string("unix_socket", value)?),
                b"user" => self.user = Some(string("user", value)?),
                b"password" => self.password = Some(secret(value)?),
                b"dbname" => self.dbname = Some(string("dbname", value)?),
                b"charset" => drop(string("charset", value)?),
                b"url" => match value {
                    Input::Bytes(bytes) => url = Some(bytes.as_slice()),
                    other => return Err(mistyped("url", "a string", other)),
                },
                b"driverOptions" => match value {
                    Input::Map(options) => self.driver_options.clone_from(options),
                    other => return Err(mistyped("driverOptions", "an array", other)),
                },
                b"ssl_key" | b"ssl_cert" | b"ssl_ca" | b"ssl_capath" | b"ssl_cipher" => {
                    let name = String::from_utf8_lossy(key).into_owned();
                    self.top_level_tls.push((name, value.clone()));
                }
                other
                    if speaks_of_tls(other)
                        && !matches!(value, Input::Bool(false) | Input::Int(0)) =>
                {
                    return Err(unknown_tls(&String::from_utf8_lossy(other)));
                }
                _ => {}
            }
        }
        // As in TYPO3, the parts of the URL win over the single keys.
        match url {
            Some(url) => self.read_url(url),
            None => Ok(()),
        }
    }

    fn read_url(&mut self, url: &[u8]) -> Result<()> {
        const SHAPE: &str = "a connection URL looks like mysql://user:password@host:port/dbname?socket=/path; special characters in it are \
                             percent-encoded";
        // Neither error nor message may quote the URL: it holds the password.
        let text = std::str::from_utf8(url).map_err(|_| {
            Error::configuration(format!("the connection URL is not UTF-8; {SHAPE}"))
        })?;
        // The parser would drop some of them without a word.
        if text.contains(|c: char| c.is_ascii_control()) {
            return Err(Error::configuration(format!(
                "the connection URL holds control characters; {SHAPE}"
            )));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(Error::configuration(format!("the connection string is no URL; {SHAPE}")));
        };
        self.driver = Some(parse_driver(&scheme.to_ascii_lowercase())?);
        // No host, as in mysql://user:password@/dbname, means localhost here as it does in the array.
        let (authority, behind) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let localhost = if authority.ends_with('@') { "localhost" } else { "" };
        // A scheme that the parser knows nothing about keeps it from normalising the parts.
        let parsed = url::Url::parse(&format!("mysql://{authority}{localhost}{behind}")).map_err(
            |error| {
                Error::configuration(format!(
                    "the connection URL cannot be read ({error}); {SHAPE}"
                ))
            },
        )?;
        if let Some(host) = parsed.host_str().filter(|host| !host.is_empty()) {
            self.host = Some(decode("host", host)?);
        }
        if let Some(port) = parsed.port() {
            self.port = Some(port);
        }
        if !parsed.username().is_empty() {
            self.user = Some(decode("user", parsed.username())?);
        }
        if let Some(password) = parsed.password() {
            self.password = Some(SecretString::from(decode("password", password)?));
        }
        let dbname = decode("dbname", parsed.path().strip_prefix('/').unwrap_or(parsed.path()))?;
        if !dbname.is_empty() {
            self.dbname = Some(dbname);
        }
        for (key, value) in parsed.query_pairs() {
            match key.as_ref() {
                "socket" | "unix_socket" if !value.is_empty() => {
                    self.unix_socket = Some(value.into_owned())
                }
                "ssl_key" | "ssl_cert" | "ssl_ca" | "ssl_capath" | "ssl_cipher"
                    if !value.is_empty() =>
                {
                    self.top_level_tls
                        .push((key.into_owned(), Input::Bytes(value.as_bytes().to_vec())));
                }
                other => {
                    if let Some(name) =
                        other.strip_prefix("driverOptions[").and_then(|name| name.strip_suffix(']'))
                    {
                        self.driver_options.push(driver_option(name, &value));
                    } else if speaks_of_tls(other.as_bytes())
                        && !matches!(value.as_ref(), "" | "0" | "false")
                    {
                        return Err(unknown_tls(other));
                    }
                }
            }
        }
        Ok(())
    }

    fn finish(self, defaults: &Defaults) -> Result<ConnectionSettings> {
        let tls = self.tls()?;
        let endpoint = self.endpoint(defaults)?;
        if tls.is_some() && matches!(endpoint, Endpoint::Socket(_)) {
            return Err(Error::configuration(
                "TLS is asked for, but the connection goes over a unix socket, where it cannot be done; set host to 127.0.0.1 or a name, or \
                 remove the TLS settings",
            ));
        }
        Ok(ConnectionSettings {
            endpoint,
            user: self.user.unwrap_or_default(),
            password: self.password.unwrap_or_else(|| SecretString::from(String::new())),
            dbname: self.dbname.unwrap_or_default(),
            tls,
        })
    }

    /// As PHP does: no host or `localhost` means the socket, any other host means TCP, whatever `unix_socket` says.
    fn endpoint(&self, defaults: &Defaults) -> Result<Endpoint> {
        let host = self.host.as_deref().unwrap_or_default();
        // mysqli's spelling for a persistent connection.
        let host = host.strip_prefix("p:").unwrap_or(host);
        if host.is_empty() || host.eq_ignore_ascii_case("localhost") {
            if let Some(path) = self.unix_socket.as_ref() {
                return Ok(Endpoint::Socket(PathBuf::from(path)));
            }
            let usual = || USUAL_SOCKETS.iter().map(PathBuf::from).find(|path| path.exists());
            let path = defaults
                .socket
                .clone()
                .or_else(usual)
                .unwrap_or_else(|| PathBuf::from("/run/mysqld/mysqld.sock"));
            return Ok(Endpoint::Socket(path));
        }
        let host = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host);
        if host.bytes().any(|byte| {
            byte.is_ascii_whitespace() || byte.is_ascii_control() || b"/@?#".contains(&byte)
        }) {
            return Err(Error::configuration(
                "host must be a host name or an address, without port, path or blanks",
            ));
        }
        Ok(Endpoint::Tcp { host: host.to_owned(), port: self.port.unwrap_or(3306) })
    }

    fn tls(&self) -> Result<Option<Tls>> {
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

/// Is it a key that neither driver knows, and that was meant to ask for TLS (`sslmode`, `ssl`, `tls`)?
fn speaks_of_tls(key: &[u8]) -> bool {
    key.get(..3).is_some_and(|start| {
        start.eq_ignore_ascii_case(b"ssl") || start.eq_ignore_ascii_case(b"tls")
    })
}

fn unknown_tls(name: &str) -> Error {
    Error::configuration(format!(
        "connection setting {} asks for TLS in a way that neither mysqli nor pdo_mysql knows, and would be ignored; use ssl_ca, ssl_cert, ssl_key or \
         MYSQLI_CLIENT_SSL in driverOptions['flags'] (mysqli), or driverOptions[PDO::MYSQL_ATTR_SSL_CA] and its kin (pdo_mysql)",
        name.escape_debug()
    ))
}

/// A driver option of a URL's query (`driverOptions[flags]=2048`): as in PHP, digits make a number.
fn driver_option(name: &str, value: &str) -> (Key, Input) {
    let key = name.parse().map_or_else(|_| Key::Str(name.as_bytes().to_vec()), Key::Int);
    let value = value.parse().map_or_else(|_| Input::Bytes(value.as_bytes().to_vec()), Input::Int);
    (key, value)
}

fn unsupported_tls(name: &str) -> Error {
    Error::configuration(format!(
        "{name} is not supported by the runtime's TLS (rustls); name the certificate authorities in one PEM file with the CA setting and leave \
         the cipher suites to TLS 1.2 and 1.3"
    ))
}

fn parse_driver(name: &str) -> Result<Driver> {
    match name {
        "mysqli" | "mysql" | "mysql2" => Ok(Driver::Mysqli),
        "pdo_mysql" | "pdo-mysql" => Ok(Driver::PdoMysql),
        other => Err(Error::configuration(format!(
            "driver '{}' is not supported; the runtime talks to MySQL and MariaDB: driver is 'mysqli' or 'pdo_mysql' (URLs: mysql://)",
            other.escape_debug()
        ))),
    }
}

fn mistyped(name: &str, expected: &str, value: &Input) -> Error {
    Error::configuration(format!(
        "connection setting {name} must be {expected}, {} given",
        value.type_name()
    ))
}

fn string(name: &str, value: &Input) -> Result<String> {
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

fn secret(value: &Input) -> Result<SecretString> {
    // The messages of string() name the setting and never its value.
    string("password", value).map(SecretString::from)
}

fn port(value: &Input) -> Result<Option<u16>> {
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

fn decode(part: &str, encoded: &str) -> Result<String> {
    let text = percent_decode_str(encoded).decode_utf8().map_err(|_| {
        Error::configuration(format!("the {part} in the connection URL is not UTF-8"))
    })?;
    if text.contains('\0') {
        return Err(Error::configuration(format!(
            "the {part} in the connection URL must not hold a NUL byte"
        )));
    }
    Ok(text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(entries: &[(&str, Input)]) -> Result<ConnectionSettings> {
        let entries = entries
            .iter()
            .map(|(key, value)| (Key::Str(key.as_bytes().to_vec()), value.clone()))
            .collect();
        ConnectionSettings::parse(&Input::Map(entries), &Defaults::default())
    }

    fn url(url: &str) -> Result<ConnectionSettings> {
        ConnectionSettings::parse(&Input::Bytes(url.as_bytes().to_vec()), &Defaults::default())
    }

    fn s(text: &str) -> Input {
        Input::Bytes(text.as_bytes().to_vec())
    }

    const AWKWARD: &str = "p@ss:w/o#rd?%41&+ \u{fc}";

    #[test]
    fn special_characters_in_a_password_and_in_a_url() {
        let settings = array(&[("host", s("db")), ("password", s(AWKWARD))]).unwrap();
        assert_eq!(settings.password(), AWKWARD);
        let settings =
            url("mysql://us%40er:p%40ss%3Aw%2Fo%23rd%3F%2541%26%2B%20%C3%BC@db:3307/sh%2Fop")
                .unwrap();
        assert_eq!(settings.password(), AWKWARD);
        assert_eq!((settings.user.as_str(), settings.dbname.as_str()), ("us@er", "sh/op"));
        assert_eq!(settings.endpoint, Endpoint::Tcp { host: "db".into(), port: 3307 });
    }

    #[test]
    fn the_password_is_never_shown() {
        let settings = array(&[("host", s("db")), ("password", s(AWKWARD))]).unwrap();
        assert!(!format!("{settings:?}").contains("w/o"));
        for bad in [
            "pgsql://u:hunter2@h/d",
            "mysql://u:hunter2@h:port/d",
            "mysql://u:hunter2@[h/d",
            "hunter2",
            "mysql://u:hunter2%ff@h/d",
        ] {
            let message = url(bad).unwrap_err().message;
            assert!(!message.contains("hunter2"), "{message}");
        }
    }

    #[test]
    fn localhost_means_the_socket_and_an_address_does_not() {
        for host in ["", "localhost", "LOCALHOST", "p:localhost"] {
            let settings = array(&[
                ("host", s(host)),
                ("unix_socket", s("/x.sock")),
                ("port", Input::Int(3306)),
            ])
            .unwrap();
            assert_eq!(settings.endpoint, Endpoint::Socket("/x.sock".into()), "{host:?}");
        }
        let settings =
            array(&[("host", s("127.0.0.1")), ("unix_socket", s("/x.sock")), ("port", s("3307"))])
                .unwrap();
        assert_eq!(settings.endpoint, Endpoint::Tcp { host: "127.0.0.1".into(), port: 3307 });
        let default = Defaults { socket: Some("/default.sock".into()) };
        let settings = ConnectionSettings::parse(&Input::Map(vec![]), &default).unwrap();
        assert_eq!(settings.endpoint, Endpoint::Socket("/default.sock".into()));
    }

    #[test]
    fn ports_and_types_are_checked() {
        for bad in [Input::Int(-1), Input::Int(65_536), s("http"), Input::Float(1.0)] {
            assert!(array(&[("host", s("db")), ("port", bad.clone())]).is_err(), "{bad:?}");
        }
        assert!(array(&[("host", Input::Int(1))]).unwrap_err().message.contains("host"));
        assert!(array(&[("host", s("db:3306/x"))]).unwrap_err().message.contains("host"));
    }

    #[test]
    fn other_drivers_are_refused_with_what_is_supported() {
        for driver in ["pdo_pgsql", "pdo_sqlite", "sqlsrv"] {
            let message = array(&[("driver", s(driver))]).unwrap_err().message;
            assert!(message.contains(driver) && message.contains("mysqli"), "{message}");
        }
        assert!(url("postgres://h/d").is_err());
    }

    #[test]
    fn tls_in_each_drivers_spelling() {
        let ca = Some(Tls { ca: Some("/ca.pem".into()), ..Tls::default() });
        assert_eq!(array(&[("host", s("db")), ("ssl_ca", s("/ca.pem"))]).unwrap().tls, ca);
        let options = Input::Map(vec![(Key::Int(1009), s("/ca.pem"))]);
        assert_eq!(
            array(&[
                ("driver", s("pdo_mysql")),
                ("host", s("db")),
                ("driverOptions", options.clone())
            ])
            .unwrap()
            .tls,
            ca
        );
        let flags = Input::Map(vec![(Key::Str(b"flags".to_vec()), Input::Int(2048 | 64))]);
        assert!(
            array(&[("host", s("db")), ("driverOptions", flags.clone())])
                .unwrap()
                .tls
                .unwrap()
                .accept_any_certificate
        );
        // The other driver's spelling is never plain text.
        assert!(array(&[("host", s("db")), ("driverOptions", options)]).is_err());
        assert!(
            array(&[("driver", s("pdo_mysql")), ("host", s("db")), ("ssl_ca", s("/ca.pem"))])
                .is_err()
        );
        assert!(
            array(&[("driver", s("pdo_mysql")), ("host", s("db")), ("driverOptions", flags)])
                .is_err()
        );
        // Nor is what rustls cannot do.
        assert!(array(&[("host", s("db")), ("ssl_cipher", s("AES"))]).is_err());
        assert!(array(&[("host", s("db")), ("ssl_cert", s("/c.pem"))]).is_err());
        assert!(array(&[("unix_socket", s("/x.sock")), ("ssl_ca", s("/ca.pem"))]).is_err());
        assert_eq!(array(&[("host", s("db")), ("ssl_ca", s(""))]).unwrap().tls, None);
        for flags in
            [Input::Int(64), Input::Int(2048), Input::Int(1 << 30), s("2048"), Input::Bool(true)]
        {
            let options = Input::Map(vec![(Key::Str(b"flags".to_vec()), flags.clone())]);
            assert!(
                array(&[("driver", s("pdo_mysql")), ("host", s("db")), ("driverOptions", options)])
                    .is_err(),
                "{flags:?}"
            );
        }
        // What neither driver knows.
        for (key, value) in [
            ("ssl", Input::Bool(true)),
            ("sslmode", s("require")),
            ("SSL_MODE", s("REQUIRED")),
            ("tls", Input::Int(1)),
        ] {
            let message = array(&[("host", s("db")), (key, value)]).unwrap_err().message;
            assert!(
                message.contains(key) && message.contains("ssl_ca") && !message.contains("  "),
                "{message}"
            );
        }
        assert_eq!(
            array(&[("host", s("db")), ("ssl", Input::Bool(false)), ("tls", Input::Null)])
                .unwrap()
                .tls,
            None
        );
    }

    #[test]
    fn tls_in_a_url_is_done_or_refused_and_never_left_out() {
        for query in [
            "sslmode=require",
            "ssl-mode=REQUIRED",
            "ssl_mode=VERIFY_CA",
            "ssl=true",
            "tls=1",
            "driverOptions[1009]=/ca.pem",
            "ssl_cipher=x",
        ] {
            assert!(url(&format!("mysql://u@db/d?{query}")).is_err(), "{query}");
        }
        for query in
            ["ssl_ca=/ca.pem", "driverOptions[flags]=2048", "driverOptions%5Bflags%5D=2048"]
        {
            assert!(url(&format!("mysql://u@db/d?{query}")).unwrap().tls.is_some(), "{query}");
        }
        assert_eq!(
            url("pdo-mysql://u@db/d?driverOptions[1009]=/ca.pem").unwrap().tls.unwrap().ca,
            Some("/ca.pem".into())
        );
        assert!(url("pdo-mysql://u@db/d?driverOptions[flags]=2048").is_err());
        assert_eq!(
            url("mysql://u@db/d?ssl=0&tls=&charset=utf8mb4&driverOptions[2]=x").unwrap().tls,
            None
        );
    }

    #[test]
    fn the_url_wins_over_the_single_keys() {
        let settings =
            array(&[("host", s("old")), ("dbname", s("kept")), ("url", s("mysql://u@new:1/"))])
                .unwrap();
        assert_eq!(settings.endpoint, Endpoint::Tcp { host: "new".into(), port: 1 });
        assert_eq!((settings.user.as_str(), settings.dbname.as_str()), ("u", "kept"));
        for text in [
            "mysql://u@localhost/db?socket=/s.sock",
            "MySQL://u:p@/db?socket=/s.sock",
            "mysql://u@?socket=/s.sock",
        ] {
            assert_eq!(url(text).unwrap().endpoint, Endpoint::Socket("/s.sock".into()), "{text}");
        }
        for text in ["mysql://u@h/db\0", "mysql://u@h/d\tb", "\nmysql://u@h/db"] {
            assert!(url(text).unwrap_err().message.contains("control characters"), "{text:?}");
        }
    }
}
