//! The options of a runtime: table, clock, timeouts, budget, backoff.

use std::time::Duration;

use super::value::{Input, Key};
use crate::domain::MAX_REQUEUES;
use crate::domain::backoff::Backoff;
use crate::error::{Error, Result};

/// The clock by which times are written and compared (rule 23).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// The caller's, as PHP's `time()` does.
    #[default]
    Caller,
    /// The database's, which ends the skew between hosts.
    Database,
}

impl Clock {
    /// The word of the option `clock`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Database => "database",
        }
    }
}

/// A table name that was checked: one or two parts of 1 to 64 of `[0-9A-Za-z$_]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    schema: Option<String>,
    name: String,
    quoted: String,
}

impl TableName {
    /// Checks a name given as `table` or `schema.table`.
    ///
    /// # Errors
    ///
    /// A name with other characters, parts or lengths; `option` names where it came from.
    pub fn parse(option: &str, name: &str) -> Result<Self> {
        let parts: Vec<&str> = name.split('.').collect();
        let well_formed = |part: &&str| {
            (1..=64).contains(&part.len())
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'$' || byte == b'_')
        };
        match parts.as_slice() {
            [table] if well_formed(table) => {
                Ok(Self { schema: None, name: (*table).to_owned(), quoted: format!("`{table}`") })
            }
            [schema, table] if well_formed(schema) && well_formed(table) => Ok(Self {
                schema: Some((*schema).to_owned()),
                name: (*table).to_owned(),
                quoted: format!("`{schema}`.`{table}`"),
            }),
            _ => Err(Error::configuration(format!(
                "option {option} must be a table name of 1 to 64 characters of 0-9, A-Z, a-z, $ and _, optionally with a schema \
                 (schema.table)"
            ))),
        }
    }

    /// The name as it stands in SQL, quoted.
    #[must_use]
    pub fn quoted(&self) -> &str {
        &self.quoted
    }

    /// The schema, if the name has one.
    #[must_use]
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// The name without its schema.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The time limits of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For connecting and setting up a session.
    pub connect: Duration,
    /// For one statement.
    pub query: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_millis(3_000), query: Duration::from_millis(5_000) }
    }
}

/// The options of a runtime.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The run table.
    pub table: TableName,
    /// Whose clock counts.
    pub clock: Clock,
    /// Time limits.
    pub timeouts: Timeouts,
    /// How often a run is requeued.
    pub max_requeues: u32,
    /// How long a requeued run waits.
    pub backoff: Backoff,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            table: TableName {
                schema: None,
                name: "tx_nrllm_agentrun".to_owned(),
                quoted: "`tx_nrllm_agentrun`".to_owned(),
            },
            clock: Clock::default(),
            timeouts: Timeouts::default(),
            max_requeues: MAX_REQUEUES,
            backoff: Backoff::default(),
        }
    }
}

const KNOWN: &str = "table, clock, connectTimeoutMs, queryTimeoutMs, maxRequeues, backoffBaseMs, backoffCapMs, jitter";
/// The longest timeout, an hour, in milliseconds.
const MAX_TIMEOUT_MS: i64 = 3_600_000;
/// The longest backoff, thirty days, in milliseconds.
const MAX_BACKOFF_MS: i64 = 30 * 86_400_000;

impl Options {
    /// Reads the array of options.
    ///
    /// # Errors
    ///
    /// A configuration error that names an unknown option, or the option with a wrong value and
    /// what would be right.
    pub fn parse(entries: &[(Key, Input)]) -> Result<Self> {
        let mut options = Self::default();
        for (key, value) in entries {
            let label = key.label();
            match label.as_str() {
                "table" => options.table = TableName::parse("table", &text("table", value)?)?,
                "clock" => {
                    options.clock = match text("clock", value)?.as_str() {
                        "caller" => Clock::Caller,
                        "database" => Clock::Database,
                        other => {
                            return Err(Error::configuration(format!(
                                "option clock must be 'caller' or 'database', '{}' given",
                                other.escape_debug()
                            )));
                        }
                    }
                }
                "connectTimeoutMs" => {
                    options.timeouts.connect =
                        milliseconds("connectTimeoutMs", value, 1, MAX_TIMEOUT_MS)?
                }
                "queryTimeoutMs" => {
                    options.timeouts.query =
                        milliseconds("queryTimeoutMs", value, 1, MAX_TIMEOUT_MS)?
                }
                "maxRequeues" => {
                    let count = integer("maxRequeues", value, 0, i64::from(u32::MAX))?;
                    options.max_requeues = u32::try_from(count).unwrap_or(u32::MAX);
                }
                "backoffBaseMs" => {
                    options.backoff.base_ms =
                        integer("backoffBaseMs", value, 0, MAX_BACKOFF_MS)?.unsigned_abs()
                }
                "backoffCapMs" => {
                    options.backoff.cap_ms =
                        integer("backoffCapMs", value, 0, MAX_BACKOFF_MS)?.unsigned_abs()
                }
                "jitter" => options.backoff.jitter = share("jitter", value)?,
                _ => {
                    return Err(Error::configuration(format!(
                        "unknown option '{}'; the options are {KNOWN}",
                        label.escape_debug()
                    )));
                }
            }
        }
        Ok(options)
    }
}

fn wrong(option: &str, expected: &str, value: &Input) -> Error {
    Error::configuration(format!("option {option} must be {expected}, {} given", value.type_name()))
}

/// A string option.
pub(crate) fn text(option: &str, value: &Input) -> Result<String> {
    match value {
        Input::Bytes(bytes) => String::from_utf8(bytes.clone())
            .map_err(|_| Error::configuration(format!("option {option} must be UTF-8"))),
        other => Err(wrong(option, "a string", other)),
    }
}

/// An integer option within a range.
pub(crate) fn integer(option: &str, value: &Input, min: i64, max: i64) -> Result<i64> {
    match value {
        Input::Int(number) if (min..=max).contains(number) => Ok(*number),
        Input::Int(number) => Err(Error::configuration(format!(
            "option {option} must be from {min} to {max}, {number} given"
        ))),
        other => Err(wrong(option, "an integer", other)),
    }
}

fn milliseconds(option: &str, value: &Input, min: i64, max: i64) -> Result<Duration> {
    Ok(Duration::from_millis(integer(option, value, min, max)?.unsigned_abs()))
}

fn share(option: &str, value: &Input) -> Result<f64> {
    let number = match value {
        Input::Float(number) => *number,
        Input::Int(0) => 0.0,
        Input::Int(1) => 1.0,
        Input::Int(number) => {
            return Err(Error::configuration(format!(
                "option {option} must be from 0.0 to 1.0, {number} given"
            )));
        }
        other => return Err(wrong(option, "a number from 0.0 to 1.0", other)),
    };
    if (0.0..=1.0).contains(&number) {
        Ok(number)
    } else {
        Err(Error::configuration(format!(
            "option {option} must be from 0.0 to 1.0, {number} given"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(key: &str, value: Input) -> Result<Options> {
        Options::parse(&[(Key::Str(key.as_bytes().to_vec()), value)])
    }

    #[test]
    fn table_names_are_checked_and_quoted() {
        for (name, quoted) in [
            ("runs", "`runs`"),
            ("tx_nrllm_agentrun", "`tx_nrllm_agentrun`"),
            ("site.runs$1", "`site`.`runs$1`"),
        ] {
            assert_eq!(TableName::parse("table", name).unwrap().quoted(), quoted);
        }
        for bad in ["", "a b", "a`b", "a.b.c", ".a", "a.", "r\u{e9}", "a\0", &"x".repeat(65)] {
            assert!(TableName::parse("table", bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn wrong_options_are_named() {
        let cases = [
            ("tabel", Input::Bytes(b"x".to_vec()), "tabel"),
            ("clock", Input::Bytes(b"wall".to_vec()), "'caller' or 'database'"),
            ("queryTimeoutMs", Input::Int(0), "queryTimeoutMs"),
            ("queryTimeoutMs", Input::Bytes(b"5".to_vec()), "an integer"),
            ("jitter", Input::Float(1.5), "jitter"),
            ("jitter", Input::Float(f64::NAN), "jitter"),
            ("maxRequeues", Input::Int(-1), "maxRequeues"),
        ];
        for (key, value, part) in cases {
            let message = one(key, value).unwrap_err().message;
            assert!(message.contains(part), "{message}");
        }
        assert!(Options::parse(&[(Key::Int(0), Input::Null)]).is_err());
    }

    #[test]
    fn options_are_read() {
        let options = one("jitter", Input::Int(1)).unwrap();
        assert!((options.backoff.jitter - 1.0).abs() < f64::EPSILON);
        assert_eq!(
            one("clock", Input::Bytes(b"database".to_vec())).unwrap().clock,
            Clock::Database
        );
        assert_eq!(Options::parse(&[]).unwrap(), Options::default());
    }
}
