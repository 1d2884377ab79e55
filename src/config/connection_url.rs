//! A connection as a URL: `mysql://user:password@host:port/dbname?socket=/path`.

use percent_encoding::percent_decode_str;
use secrecy::SecretString;

use super::fields::{Fields, parse_driver};
use super::tls::{speaks_of_tls, unknown_tls};
use super::value::{Input, Key};
use crate::error::{Error, Result};

impl Fields {
    /// Reads the parts of a URL into the fields.
    pub(super) fn read_url(&mut self, url: &[u8]) -> Result<()> {
        const SHAPE: &str = "a connection URL looks like mysql://user:password@host:port/dbname?socket=/path; special characters in it are \
                             percent-encoded";
        // Neither error nor message may quote the URL: it holds the password.
        let text = std::str::from_utf8(url).map_err(|_| {
            Error::configuration(format!("the connection URL is not UTF-8; {SHAPE}"))
        })?;
        // The parser would drop some of them without an error.
        if text.contains(|c: char| c.is_ascii_control()) {
            return Err(Error::configuration(format!(
                "the connection URL holds control characters; {SHAPE}"
            )));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(Error::configuration(format!("the connection string is no URL; {SHAPE}")));
        };
        self.driver = Some(parse_driver(&scheme.to_ascii_lowercase())?);
        // No host, as in mysql://user:password@/dbname, means localhost here as it does in the
        // array.
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
}

/// A driver option of a URL's query (`driverOptions[flags]=2048`): as in PHP, digits make a number.
fn driver_option(name: &str, value: &str) -> (Key, Input) {
    let key = name.parse().map_or_else(|_| Key::Str(name.as_bytes().to_vec()), Key::Int);
    let value = value.parse().map_or_else(|_| Input::Bytes(value.as_bytes().to_vec()), Input::Int);
    (key, value)
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
