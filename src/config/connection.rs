//! Connection settings: TYPO3's array or a URL, read into checked fields. The password is never
//! shown.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use secrecy::{ExposeSecret, SecretString};

use super::fields::{Fields, mistyped, parse_driver, port, secret, string};
pub use super::tls::Tls;
use super::tls::{speaks_of_tls, unknown_tls};
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

/// The settings of a connection.
#[derive(Clone)]
pub struct ConnectionSettings {
    /// The server's address or socket.
    pub endpoint: Endpoint,
    /// The account.
    pub user: String,
    password: SecretString,
    /// The database; may be empty when the table option names a schema.
    pub dbname: String,
    /// The TLS settings, if TLS is requested.
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

// With `Eq`, `Arc` compares pointers first, and not the same settings with themselves.
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

/// Defaults of a binding's host.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    /// The socket that `localhost` means (PHP: `mysqli.default_socket`).
    pub socket: Option<PathBuf>,
}

/// The usual paths of a server's socket, where no setting names one.
const USUAL_SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
];

impl ConnectionSettings {
    /// Reads the connection as a boundary got it: an array, or a URL as a string.
    ///
    /// # Errors
    ///
    /// A configuration error that names the setting and what would be right. It never quotes the
    /// password.
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

    /// As PHP does: no host or `localhost` means the socket, any other host means TCP, whatever
    /// `unix_socket` says.
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
