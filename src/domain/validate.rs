//! Checks of arguments, before any SQL: the same under every server and `sql_mode`.

use std::borrow::Cow;
use std::fmt::Display;

/// The largest value of the unsigned 32-bit columns.
pub const MAX_U32: i64 = 4_294_967_295;

/// A wrong value for an argument.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("${argument} {message}")]
pub struct ArgumentError {
    /// The argument, in the spelling of the interface (`runUid`, `options['dryRun']`).
    pub argument: Cow<'static, str>,
    /// What is wrong with it and what would be right.
    pub message: String,
    /// Whether the type is wrong, and not the value.
    pub is_type: bool,
}

impl ArgumentError {
    /// A wrong value for `argument`; `message` goes on where "$argument" ends.
    pub fn new(argument: &'static str, message: impl Into<String>) -> Self {
        Self { argument: Cow::Borrowed(argument), message: message.into(), is_type: false }
    }

    /// A value of the wrong type in the array `$options`: `expected` is the right one, `given` the
    /// type of the value.
    pub fn option_type(option: &str, expected: impl Display, given: &str) -> Self {
        let message = format!("must be of type {expected}, {given} given");
        Self { is_type: true, ..Self::option(option, message) }
    }

    /// A wrong value in the array `$options`; `message` goes on where "['option']" ends.
    pub fn option(option: &str, message: impl Into<String>) -> Self {
        Self {
            argument: Cow::Owned(format!("options['{option}']")),
            message: message.into(),
            is_type: false,
        }
    }
}

/// Checks a `runUid`.
///
/// # Errors
///
/// A value below 1.
pub fn run_uid(value: i64) -> Result<u64, ArgumentError> {
    positive("runUid", value)
}

/// Checks the uids of an option that lists runs.
///
/// # Errors
///
/// A value below 1.
pub fn positive(argument: &'static str, value: i64) -> Result<u64, ArgumentError> {
    match u64::try_from(value) {
        Ok(checked) if checked >= 1 => Ok(checked),
        _ => Err(ArgumentError::new(argument, format!("must be at least 1, {value} given"))),
    }
}

/// Checks an owner: 1 to 64 characters of UTF-8, not only blanks.
///
/// # Errors
///
/// An owner that is empty, made of ASCII white space, control characters and NUL alone, longer than
/// 64 characters, or not UTF-8.
pub fn claimed_by(value: &[u8]) -> Result<&str, ArgumentError> {
    const ARGUMENT: &str = "claimedBy";
    let owner = std::str::from_utf8(value)
        .map_err(|_| ArgumentError::new(ARGUMENT, "must be UTF-8, other bytes given"))?;
    if owner.bytes().all(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control()) {
        return Err(ArgumentError::new(
            ARGUMENT,
            "must name who holds the lease, an empty or blank string given; \
             NrLlmRuntime::identity() makes a name",
        ));
    }
    // As many bytes are never more characters.
    if owner.len() > 64 && owner.chars().count() > 64 {
        let length = owner.chars().count();
        return Err(ArgumentError::new(
            ARGUMENT,
            format!(
                "must be at most 64 characters long, {length} given; NrLlmRuntime::identity() \
                 makes a name that fits"
            ),
        ));
    }
    Ok(owner)
}

/// Checks the unix time at which a lease expires.
///
/// # Errors
///
/// A value outside 1 to 4 294 967 295.
pub fn lease_expires(value: i64) -> Result<i64, ArgumentError> {
    if (1..=MAX_U32).contains(&value) {
        Ok(value)
    } else {
        Err(ArgumentError::new(
            "leaseExpires",
            format!("must be a unix time in seconds from 1 to {MAX_U32}, {value} given"),
        ))
    }
}

/// Checks the unix time at which a lease must have expired.
///
/// # Errors
///
/// A value outside 0 to 4 294 967 295: milliseconds passed as seconds would make every live run
/// stale.
pub fn now(value: i64) -> Result<i64, ArgumentError> {
    unix_time("now", value)
}

/// Checks the unix time from which on runs are counted.
///
/// # Errors
///
/// A value outside 0 to 4 294 967 295.
pub fn since(value: i64) -> Result<i64, ArgumentError> {
    unix_time("since", value)
}

fn unix_time(argument: &'static str, value: i64) -> Result<i64, ArgumentError> {
    if (0..=MAX_U32).contains(&value) {
        Ok(value)
    } else {
        Err(ArgumentError::new(
            argument,
            format!(
                "must be a unix time in seconds (not milliseconds) from 0 to {MAX_U32}, {value} \
                 given"
            ),
        ))
    }
}

/// Checks a number of runs.
///
/// # Errors
///
/// A value below 1.
pub fn limit(value: i64) -> Result<u64, ArgumentError> {
    positive("limit", value)
}

/// Checks an age in seconds.
///
/// # Errors
///
/// A negative value or one above 4 294 967 295.
pub fn age_seconds(argument: &'static str, value: i64) -> Result<i64, ArgumentError> {
    if (0..=MAX_U32).contains(&value) {
        Ok(value)
    } else {
        Err(ArgumentError::new(
            argument,
            format!("must be a number of seconds from 0 to {MAX_U32}, {value} given"),
        ))
    }
}

/// Checks a requeue count.
///
/// # Errors
///
/// A value outside 0 to 4 294 967 295.
pub fn requeue_count(value: i64) -> Result<u32, ArgumentError> {
    u32::try_from(value).map_err(|_| {
        ArgumentError::new("requeueCount", format!("must be from 0 to {MAX_U32}, {value} given"))
    })
}

/// Checks a run's uuid: 1 to 36 characters of UTF-8.
///
/// # Errors
///
/// A uuid that is empty, longer, or not UTF-8.
pub fn uuid(value: &[u8]) -> Result<&str, ArgumentError> {
    word("uuid", value, 1, 36)
}

/// Checks the effect of a tool: at most 32 characters of UTF-8; unknown effects are allowed, the
/// empty one clears the write fence.
///
/// # Errors
///
/// An effect that is longer or not UTF-8.
pub fn effect(value: &[u8]) -> Result<&str, ArgumentError> {
    word("effect", value, 0, 32)
}

/// Checks a termination reason: 1 to 32 characters of UTF-8.
///
/// # Errors
///
/// A reason that is empty, longer, or not UTF-8.
pub fn termination_reason(value: &[u8]) -> Result<&str, ArgumentError> {
    word("terminationReason", value, 1, 32)
}

fn word<'a>(
    argument: &'static str,
    value: &'a [u8],
    min: usize,
    max: usize,
) -> Result<&'a str, ArgumentError> {
    let text = std::str::from_utf8(value)
        .map_err(|_| ArgumentError::new(argument, "must be UTF-8, other bytes given"))?;
    let length = text.chars().count();
    if length < min {
        return Err(ArgumentError::new(argument, "must not be empty"));
    }
    if length > max {
        return Err(ArgumentError::new(
            argument,
            format!("must be at most {max} characters long, {length} given"),
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners() {
        for good in [
            "w",
            "worker:web-01:4711",
            "\u{e9}",
            "a b",
            &"x".repeat(64),
            &"\u{1f600}".repeat(64),
            "\u{a0}",
        ] {
            assert_eq!(claimed_by(good.as_bytes()), Ok(good));
        }
        for bad in ["", " ", "\t\n\r ", "\0", "\0 \u{7f}", "\u{b}", &"x".repeat(65)] {
            assert_eq!(claimed_by(bad.as_bytes()).unwrap_err().argument, "claimedBy", "{bad:?}");
        }
        assert!(claimed_by(b"a\xff").is_err());
    }

    #[test]
    fn numbers_at_their_ends() {
        assert!(run_uid(0).is_err() && run_uid(-1).is_err() && run_uid(i64::MIN).is_err());
        assert_eq!(run_uid(i64::MAX), Ok(i64::MAX as u64));
        assert!(lease_expires(0).is_err() && lease_expires(MAX_U32 + 1).is_err());
        assert_eq!(lease_expires(MAX_U32), Ok(MAX_U32));
        assert_eq!(now(0), Ok(0));
        assert!(now(-1).is_err() && now(1_790_000_000_000).is_err());
        assert!(limit(0).is_err());
        assert!(age_seconds("olderThanSeconds", -1).is_err());
        assert!(requeue_count(-1).is_err() && requeue_count(MAX_U32 + 1).is_err());
        assert_eq!(requeue_count(MAX_U32), Ok(u32::MAX));
    }

    #[test]
    fn words() {
        assert_eq!(effect(b""), Ok(""));
        assert!(effect("x".repeat(33).as_bytes()).is_err());
        assert!(uuid(b"").is_err() && uuid("u".repeat(37).as_bytes()).is_err());
        assert!(termination_reason(b"").is_err());
        assert!(termination_reason(b"\xff").is_err());
    }

    #[test]
    fn the_message_names_the_argument() {
        assert_eq!(run_uid(0).unwrap_err().to_string(), "$runUid must be at least 1, 0 given");
    }
}
