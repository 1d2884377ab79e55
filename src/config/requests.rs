//! The requests for a reap and a sweep, and the message that notifies a worker, read from the
//! arguments of a binding.

use super::options::TableName;
use super::value::{Input, Key};
use crate::domain::validate::{self, ArgumentError};
use crate::error::{Error, Result};

/// The request for a reap.
#[derive(Debug, Clone, Default)]
pub struct ReapRequest {
    /// Maximum number of runs that are handled.
    pub limit: u64,
    /// The time at which a lease must have expired, in unix seconds; the caller's time where
    /// absent.
    pub now: Option<i64>,
    /// Report what would be done, and write nothing.
    pub dry_run: bool,
    /// Handle these runs only.
    pub only: Option<Vec<u64>>,
    /// Leave these runs alone.
    pub except: Vec<u64>,
    /// Write a wake-up with every requeue.
    pub wake_up: Option<WakeUp>,
}

/// The request for a sweep.
#[derive(Debug, Clone, Default)]
pub struct SweepRequest {
    /// For how long after it was due a run counts as stranded, in seconds.
    pub older_than_seconds: i64,
    /// Maximum number of runs that are returned.
    pub limit: u64,
    /// The time to evaluate by, and to mark the runs with, in unix seconds; the caller's time where
    /// absent.
    pub now: Option<i64>,
    /// Write the wake-ups too.
    pub wake_up: Option<WakeUp>,
}

impl ReapRequest {
    /// Reads limit, time and options.
    ///
    /// # Errors
    ///
    /// An argument error for a limit or time out of its range, an unknown option or one of the
    /// wrong type; a configuration error for anything wrong inside the wake-up.
    pub fn parse(limit: i64, now: Option<i64>, options: &[(Key, Input)]) -> Result<Self> {
        let mut request = Self {
            limit: validate::limit(limit)?,
            now: now.map(validate::now).transpose()?,
            ..Self::default()
        };
        for (key, value) in options {
            match key.label().as_str() {
                "dryRun" => request.dry_run = flag("dryRun", value)?,
                "only" => request.only = Some(uids("only", value)?),
                "except" => request.except = uids("except", value)?,
                "wakeUp" => {
                    request.wake_up = match value {
                        Input::Null => None,
                        Input::Map(entries) => Some(WakeUp::parse(entries)?),
                        other => return Err(wrong_type("wakeUp", "array", other).into()),
                    }
                }
                unknown => {
                    let message = format!(
                        "has the unknown key '{}'; its keys are dryRun, only, except, wakeUp",
                        unknown.escape_debug()
                    );
                    return Err(ArgumentError::new("options", message).into());
                }
            }
        }
        Ok(request)
    }
}

impl SweepRequest {
    /// Reads the arguments.
    ///
    /// # Errors
    ///
    /// An argument error for an age, limit or time out of its range.
    pub fn parse(
        older_than_seconds: i64,
        limit: i64,
        now: Option<i64>,
        wake_up: Option<WakeUp>,
    ) -> Result<Self, ArgumentError> {
        Ok(Self {
            older_than_seconds: validate::age_seconds("olderThanSeconds", older_than_seconds)?,
            limit: validate::limit(limit)?,
            now: now.map(validate::now).transpose()?,
            wake_up,
        })
    }
}

fn wrong_type(option: &str, expected: &str, value: &Input) -> ArgumentError {
    ArgumentError::option_type(option, expected, value.type_name())
}

fn flag(option: &str, value: &Input) -> Result<bool, ArgumentError> {
    match value {
        Input::Bool(value) => Ok(*value),
        other => Err(wrong_type(option, "bool", other)),
    }
}

fn uids(option: &str, value: &Input) -> Result<Vec<u64>, ArgumentError> {
    let Input::Map(entries) = value else {
        return Err(wrong_type(option, "array", value));
    };
    entries
        .iter()
        .map(|(_, uid)| match uid {
            Input::Int(uid) => validate::positive("options", *uid).map_err(|_| {
                ArgumentError::option(option, format!("must list uids of at least 1, {uid} given"))
            }),
            other => Err(ArgumentError {
                is_type: true,
                ..ArgumentError::option(
                    option,
                    format!("must list values of type int, {} given", other.type_name()),
                )
            }),
        })
        .collect()
}

/// The message that notifies a worker: a serialised envelope for a placeholder in place of a run's
/// uuid (rule 13).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WakeUp {
    /// The message table.
    pub table: TableName,
    /// The queue's name.
    pub queue: String,
    /// The serialised envelope.
    pub body: String,
    /// The serialised headers.
    pub headers: String,
    /// What each run's uuid replaces: 36 characters.
    pub placeholder: String,
}

/// The length of a placeholder and of the uuids that replace it.
const PLACEHOLDER_BYTES: usize = 36;

impl WakeUp {
    /// Reads the array `wakeUp`.
    ///
    /// # Errors
    ///
    /// A configuration error that names what is missing or wrong.
    pub fn parse(entries: &[(Key, Input)]) -> Result<Self> {
        let mut fields: [Option<String>; 5] = Default::default();
        const NAMES: [&str; 5] = ["table", "queue", "body", "headers", "placeholder"];
        for (key, value) in entries {
            let label = key.label();
            let Some(index) = NAMES.iter().position(|name| *name == label) else {
                return Err(Error::configuration(format!(
                    "wakeUp has the unknown key '{}'; its keys are {}",
                    label.escape_debug(),
                    NAMES.join(", ")
                )));
            };
            let text = match value {
                Input::Bytes(bytes) => String::from_utf8(bytes.clone()).map_err(|_| {
                    Error::configuration(format!(
                        "wakeUp['{label}'] must be UTF-8; take the body \
                                        as the transport's serializer makes it"
                    ))
                })?,
                other => {
                    return Err(Error::configuration(format!(
                        "wakeUp['{label}'] must be a string, \
                                        {} given",
                        other.type_name()
                    )));
                }
            };
            if let Some(field) = fields.get_mut(index) {
                *field = Some(text);
            }
        }
        let [table, queue, body, headers, placeholder] = fields;
        let needed = |field: Option<String>, name: &str| {
            field.ok_or_else(|| Error::configuration(format!("wakeUp lacks the key '{name}'")))
        };
        let wake_up = Self {
            table: TableName::parse("wakeUp['table']", &needed(table, "table")?)?,
            queue: needed(queue, "queue")?,
            body: needed(body, "body")?,
            headers: needed(headers, "headers")?,
            placeholder: needed(placeholder, "placeholder")?,
        };
        if !fits(&wake_up.placeholder) {
            return Err(Error::configuration(
                "wakeUp['placeholder'] must be 36 ASCII characters long, as a run's uuid, without \
                 quotation marks and backslashes",
            ));
        }
        if !wake_up.body.contains(&wake_up.placeholder) {
            return Err(Error::configuration(
                "wakeUp['body'] does not contain the placeholder that the run's uuid replaces; \
                 take the body as the transport's serializer \
                 makes it from an envelope for the placeholder (a body in base64 cannot be a \
                 template)",
            ));
        }
        let queue_length = wake_up.queue.chars().count();
        if !(1..=190).contains(&queue_length) {
            return Err(Error::configuration(format!(
                "wakeUp['queue'] must be 1 to 190 characters long, {queue_length} given"
            )));
        }
        Ok(wake_up)
    }
}

/// Returns whether the uuid can take the placeholder's place without breaking the envelope. It
/// needs the placeholder's length in bytes, which the envelope states, and no character that
/// serializers escape.
#[must_use]
pub(crate) fn fits(uuid: &str) -> bool {
    uuid.len() == PLACEHOLDER_BYTES
        && uuid.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn parse(option: &str, value: Input) -> Result<ReapRequest> {
        ReapRequest::parse(50, None, &[(Key::Str(option.as_bytes().to_vec()), value)])
    }

    #[test]
    fn options_are_read() {
        let uids = Input::Map(vec![(Key::Int(0), Input::Int(7)), (Key::Int(1), Input::Int(9))]);
        assert_eq!(parse("only", uids.clone()).unwrap().only, Some(vec![7, 9]));
        assert_eq!(parse("except", uids).unwrap().except, [7, 9]);
        assert_eq!(parse("only", Input::Map(Vec::new())).unwrap().only, Some(Vec::new()));
        assert!(parse("dryRun", Input::Bool(true)).unwrap().dry_run);
        assert_eq!(parse("wakeUp", Input::Null).unwrap().wake_up, None);
        assert_eq!(ReapRequest::parse(1, Some(0), &[]).unwrap().now, Some(0));
    }

    #[test]
    fn wrong_options_are_named() {
        let wrong_uids = Input::Map(vec![(Key::Int(0), Input::Int(0))]);
        let wrong_type = Input::Map(vec![(Key::Int(0), Input::Bytes(b"5".to_vec()))]);
        let cases = [
            (
                Kind::Argument,
                parse("dryrun", Input::Bool(true)),
                "$options has the unknown key 'dryrun'",
            ),
            (
                Kind::Type,
                parse("dryRun", Input::Int(1)),
                "$options['dryRun'] must be of type bool, int given",
            ),
            (
                Kind::Argument,
                parse("only", wrong_uids),
                "$options['only'] must list uids of at least 1, 0 given",
            ),
            (
                Kind::Type,
                parse("only", wrong_type),
                "$options['only'] must list values of type int, string given",
            ),
            (
                Kind::Type,
                parse("except", Input::Int(5)),
                "$options['except'] must be of type array, int given",
            ),
            (
                Kind::Type,
                parse("wakeUp", Input::Bytes(Vec::new())),
                "$options['wakeUp'] must be of type array, string given",
            ),
            (
                Kind::Argument,
                ReapRequest::parse(0, None, &[]),
                "$limit must be at least 1, 0 given",
            ),
            (Kind::Argument, ReapRequest::parse(1, Some(-1), &[]), "$now must be"),
        ];
        for (kind, result, message) in cases {
            let error = result.unwrap_err();
            assert!(error.kind == kind && error.message.starts_with(message), "{}", error.message);
        }
        assert_eq!(parse("wakeUp", Input::Map(Vec::new())).unwrap_err().kind, Kind::Configuration);
    }

    const PLACEHOLDER: &str = "00000000-0000-0000-0000-000000000000";

    fn template(changes: &[(&str, &str)]) -> Result<WakeUp> {
        let mut fields = vec![
            ("table", "sys_messenger_messages"),
            ("queue", "default"),
            ("body", "O:1:\\\"x\\\";s:36:\\\"00000000-0000-0000-0000-000000000000\\\""),
            ("headers", "[]"),
            ("placeholder", PLACEHOLDER),
        ];
        for &(key, value) in changes {
            fields.retain(|(name, _)| *name != key);
            if value != "-" {
                fields.push((key, value));
            }
        }
        let entries: Vec<_> = fields
            .into_iter()
            .map(|(key, value)| {
                (Key::Str(key.as_bytes().to_vec()), Input::Bytes(value.as_bytes().to_vec()))
            })
            .collect();
        WakeUp::parse(&entries)
    }

    #[test]
    fn a_uuid_has_to_fit_into_the_envelope() {
        for (uuid, expected) in [
            (PLACEHOLDER, true),
            ("0E12362E-CBF0-4052-A2E9-F3C849A50BC4", true),
            ("run_1 [with~36#printable!characters]", true),
            ("0e12362e-cbf0-4052-a2e9-f3c849a50bc", false),
            ("0e12362e-cbf0-4052-a2e9-f3c849a50bc42", false),
            ("", false),
            ("0e12362e-cbf0-4052-a2e9-f3c849a50b\u{e9}", false),
            ("0e12362e-cbf0-4052-a2e9-f3c849a50bc\"", false),
            ("0e12362e-cbf0-4052-a2e9-f3c849a50bc\\", false),
            ("0e12362e-cbf0-4052-a2e9-f3c849a50bc\n", false),
            ("0e12362e-cbf0-4052-a2e9-f3c849a50bc\0", false),
        ] {
            assert_eq!(fits(uuid), expected, "{uuid:?}");
        }
    }

    #[test]
    fn a_template_is_checked_before_anything_is_sent() {
        assert_eq!(template(&[]).unwrap().queue, "default");
        for (changes, part) in [
            ([("body", "no placeholder here")], "placeholder"),
            ([("body", "-")], "'body'"),
            ([("placeholder", "short")], "36"),
            ([("placeholder", "0000000\u{e9}-0000-0000-0000-00000000000")], "36"),
            ([("placeholder", "00000000-0000-0000-0000-00000000000\\")], "backslashes"),
            ([("headers", "-")], "'headers'"),
            ([("table", "-")], "'table'"),
            ([("queue", "")], "queue"),
            ([("table", "a b")], "table"),
            ([("extra", "x")], "unknown key 'extra'"),
        ] {
            let message = template(&changes).unwrap_err().message;
            assert!(message.contains(part), "{message}");
        }
    }
}
