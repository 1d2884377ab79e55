//! What a reaper is asked to do, read from the arguments of a boundary.

use super::value::{Input, Key};
use crate::domain::validate::{self, ArgumentError};
use crate::error::Error;
use crate::ops::outbox::WakeUp;
use crate::ops::reap::Request;

impl Request {
    /// Reads limit, time and options.
    ///
    /// # Errors
    ///
    /// An argument error for a limit or time out of its range, an unknown option or one of the wrong type; a configuration error for
    /// anything wrong inside the wake-up.
    pub fn parse(limit: i64, now: Option<i64>, options: &[(Key, Input)]) -> Result<Self, Error> {
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
                        other => return Err(wrong_type("wakeUp", "an array", other).into()),
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

fn wrong_type(option: &str, expected: &str, value: &Input) -> ArgumentError {
    ArgumentError::option_type(option, format!("must be {expected}, {} given", value.type_name()))
}

fn flag(option: &str, value: &Input) -> Result<bool, ArgumentError> {
    match value {
        Input::Bool(value) => Ok(*value),
        other => Err(wrong_type(option, "a bool", other)),
    }
}

fn uids(option: &str, value: &Input) -> Result<Vec<u64>, ArgumentError> {
    let Input::Map(entries) = value else {
        return Err(wrong_type(option, "a list of run uids", value));
    };
    entries
        .iter()
        .map(|(_, uid)| match uid {
            Input::Int(uid) => validate::positive("options", *uid).map_err(|_| {
                ArgumentError::option(option, format!("must list uids of at least 1, {uid} given"))
            }),
            other => Err(wrong_type(option, "a list of run uids (int)", other)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn parse(option: &str, value: Input) -> Result<Request, Error> {
        Request::parse(50, None, &[(Key::Str(option.as_bytes().to_vec()), value)])
    }

    #[test]
    fn options_are_read() {
        let uids = Input::Map(vec![(Key::Int(0), Input::Int(7)), (Key::Int(1), Input::Int(9))]);
        assert_eq!(parse("only", uids.clone()).unwrap().only, Some(vec![7, 9]));
        assert_eq!(parse("except", uids).unwrap().except, [7, 9]);
        assert_eq!(parse("only", Input::Map(Vec::new())).unwrap().only, Some(Vec::new()));
        assert!(parse("dryRun", Input::Bool(true)).unwrap().dry_run);
        assert_eq!(parse("wakeUp", Input::Null).unwrap().wake_up, None);
        assert_eq!(Request::parse(1, Some(0), &[]).unwrap().now, Some(0));
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
                "$options ['dryRun'] must be a bool, int given",
            ),
            (
                Kind::Argument,
                parse("only", wrong_uids),
                "$options ['only'] must list uids of at least 1, 0 given",
            ),
            (
                Kind::Type,
                parse("only", wrong_type),
                "$options ['only'] must be a list of run uids (int), string given",
            ),
            (
                Kind::Type,
                parse("except", Input::Int(5)),
                "$options ['except'] must be a list of run uids, int given",
            ),
            (
                Kind::Type,
                parse("wakeUp", Input::Bytes(Vec::new())),
                "$options ['wakeUp'] must be an array, string given",
            ),
            (Kind::Argument, Request::parse(0, None, &[]), "$limit must be at least 1, 0 given"),
            (Kind::Argument, Request::parse(1, Some(-1), &[]), "$now must be"),
        ];
        for (kind, result, message) in cases {
            let error = result.unwrap_err();
            assert!(error.kind == kind && error.message.starts_with(message), "{}", error.message);
        }
        assert_eq!(parse("wakeUp", Input::Map(Vec::new())).unwrap_err().kind, Kind::Configuration);
    }
}
