//! How a lease is kept: its length, the interval between heartbeats, the limits, and what a loss
//! does.

use crate::config::value::{Input, Key};
use crate::domain::validate::{ArgumentError, MAX_U32};
use crate::ops::sql::unix_time;
use crate::process::clock::{MILLISECOND, SECOND};

/// The shortest interval between heartbeats, in milliseconds.
const MIN_EVERY_MS: i64 = 100;
/// The default of `maxSilentSeconds`.
const MAX_SILENT_SECONDS: i64 = 3_600;
/// The default of `maxSeconds`.
const MAX_SECONDS: i64 = 86_400;
const KNOWN: &str = "everyMs, maxSilentSeconds, maxSeconds, interruptOnLoss";

/// How a lease is kept. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepOptions {
    /// The length of the lease, in seconds.
    pub lease_seconds: i64,
    /// The interval between two heartbeats.
    pub every: u64,
    /// The longest time without a step.
    pub max_silent: u64,
    /// The longest time for which the lease is renewed.
    pub max_total: u64,
    /// Whether running code is interrupted when the lease is lost.
    pub interrupt_on_loss: bool,
}

impl KeepOptions {
    /// Checks the length of the lease and reads the array of options.
    ///
    /// # Errors
    ///
    /// A length below 2 or beyond what the column holds; an unknown option, or one with a wrong
    /// value.
    pub fn parse(lease_seconds: i64, entries: &[(Key, Input)]) -> Result<Self, ArgumentError> {
        Self::parse_at(lease_seconds, entries, unix_time())
    }

    fn parse_at(
        lease_seconds: i64,
        entries: &[(Key, Input)],
        now: i64,
    ) -> Result<Self, ArgumentError> {
        let longest = MAX_U32.saturating_sub(now);
        if !(2..=longest).contains(&lease_seconds) {
            let message =
                format!("must be a number of seconds from 2 to {longest}, {lease_seconds} given");
            return Err(ArgumentError::new("leaseSeconds", message));
        }
        let lease_ms = lease_seconds.saturating_mul(1_000);
        let (mut every, mut silent, mut total, mut interrupt_on_loss) =
            (lease_ms / 3, MAX_SILENT_SECONDS, MAX_SECONDS, false);
        for (key, value) in entries {
            match key.label().as_str() {
                "everyMs" => {
                    every = integer("everyMs", value, MIN_EVERY_MS, lease_ms / 2, "half the lease")?
                }
                "maxSilentSeconds" => {
                    silent = integer(
                        "maxSilentSeconds",
                        value,
                        1,
                        MAX_U32,
                        "unlimited is not supported",
                    )?
                }
                "maxSeconds" => {
                    total = integer("maxSeconds", value, 1, MAX_U32, "unlimited is not supported")?
                }
                "interruptOnLoss" => match value {
                    Input::Bool(value) => interrupt_on_loss = *value,
                    other => {
                        return Err(ArgumentError::option_type(
                            "interruptOnLoss",
                            "bool",
                            other.type_name(),
                        ));
                    }
                },
                other => {
                    let message = format!(
                        "has the unknown key '{}'; its keys are {KNOWN}",
                        other.escape_debug()
                    );
                    return Err(ArgumentError::new("options", message));
                }
            }
        }
        Ok(Self {
            lease_seconds,
            every: every.unsigned_abs().saturating_mul(MILLISECOND),
            max_silent: silent.unsigned_abs().saturating_mul(SECOND),
            max_total: total.unsigned_abs().saturating_mul(SECOND),
            interrupt_on_loss,
        })
    }

    /// The length of the lease in nanoseconds.
    #[must_use]
    pub const fn lease(&self) -> u64 {
        self.lease_seconds.unsigned_abs().saturating_mul(SECOND)
    }
}

fn integer(
    option: &str,
    value: &Input,
    min: i64,
    max: i64,
    max_is: &str,
) -> Result<i64, ArgumentError> {
    match value {
        Input::Int(number) if (min..=max).contains(number) => Ok(*number),
        Input::Int(number) => Err(ArgumentError::option(
            option,
            format!("must be from {min} to {max} ({max_is}), {number} given"),
        )),
        other => Err(ArgumentError::option_type(option, "int", other.type_name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn parse(lease: i64, option: Option<(&str, Input)>) -> Result<KeepOptions, ArgumentError> {
        let entries: Vec<_> = option
            .into_iter()
            .map(|(key, value)| (Key::Str(key.as_bytes().to_vec()), value))
            .collect();
        KeepOptions::parse_at(lease, &entries, NOW)
    }

    #[test]
    fn the_defaults() {
        let options = parse(60, None).unwrap();
        assert_eq!(options.every, 20 * SECOND);
        assert_eq!((options.max_silent, options.max_total), (3_600 * SECOND, 86_400 * SECOND));
        assert_eq!((options.lease(), options.interrupt_on_loss), (60 * SECOND, false));
        assert_eq!(parse(2, None).unwrap().every, 666 * MILLISECOND);
    }

    #[test]
    fn the_ends_of_the_ranges() {
        assert!(
            parse(1, None).is_err()
                && parse(0, None).is_err()
                && parse(-5, None).is_err()
                && parse(i64::MAX, None).is_err()
        );
        assert!(parse(MAX_U32 - NOW, None).is_ok() && parse(MAX_U32 - NOW + 1, None).is_err());
        for (key, value, fits) in [
            ("everyMs", 100, true),
            ("everyMs", 99, false),
            ("everyMs", 5_000, true),
            ("everyMs", 5_001, false),
            ("maxSilentSeconds", 1, true),
            ("maxSilentSeconds", 0, false),
            ("maxSilentSeconds", -1, false),
            ("maxSeconds", 1, true),
            ("maxSeconds", 0, false),
            ("maxSeconds", i64::MAX, false),
        ] {
            assert_eq!(parse(10, Some((key, Input::Int(value)))).is_ok(), fits, "{key} {value}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (key, value, message, is_type) in [
            ("everyMs", Input::Int(1), "$options['everyMs'] must be from 100 to 5000", false),
            (
                "maxSilentSeconds",
                Input::Null,
                "$options['maxSilentSeconds'] must be of type int, null given",
                true,
            ),
            (
                "maxSeconds",
                Input::Float(5.0),
                "$options['maxSeconds'] must be of type int, float given",
                true,
            ),
            (
                "interruptOnLoss",
                Input::Int(1),
                "$options['interruptOnLoss'] must be of type bool, int given",
                true,
            ),
            ("every", Input::Int(500), "$options has the unknown key 'every'", false),
        ] {
            let error = parse(10, Some((key, value))).unwrap_err();
            assert_eq!(error.is_type, is_type, "{key}");
            assert!(error.to_string().starts_with(message), "{error}");
        }
        assert_eq!(parse(1, None).unwrap_err().argument, "leaseSeconds");
        assert!(KeepOptions::parse_at(10, &[(Key::Int(0), Input::Int(1))], NOW).is_err());
    }
}
