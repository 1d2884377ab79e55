//! Reads settings, options and wake-ups from JSON into the tree that their parsers take.
//!
//! PHP's strings are bytes and its arrays have integer keys too. JSON has neither, so four objects
//! with a single key express them: `{"$hex": "00ff"}` is a string of these bytes, `{"$entries":
//! [[key, value], …]}` a map whose keys are any strings, `{"$float": "NAN"}` one of the numbers
//! that JSON lacks, `{"$type": "object"}` a value of another type.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::config::value::{Input, Key};
use crate::domain::validate::ArgumentError;

/// Reads a document. The message of an error never quotes it: it may hold a password.
pub(super) fn read(argument: &'static str, json: &[u8]) -> Result<Input, ArgumentError> {
    serde_json::from_slice::<Tree>(json).map(|tree| tree.0).map_err(|error| {
        ArgumentError::new(argument, format!("is no JSON of the right form: {error}"))
    })
}

/// Reads a document that must be an object (or a list).
pub(super) fn entries(
    argument: &'static str,
    json: &[u8],
) -> Result<Vec<(Key, Input)>, ArgumentError> {
    match read(argument, json)? {
        Input::Map(entries) => Ok(entries),
        other => Err(ArgumentError::new(
            argument,
            format!("must be a JSON object, {} given", other.type_name()),
        )),
    }
}

struct Tree(Input);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor).map(Self)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Input;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Input, E> {
        Ok(Input::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Input, E> {
        Ok(Input::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Input, E> {
        Ok(Input::Int(value))
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "an integer too large for the type is a float, as in PHP"
    )]
    fn visit_u64<E>(self, value: u64) -> Result<Input, E> {
        Ok(i64::try_from(value).map_or(Input::Float(value as f64), Input::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Input, E> {
        Ok(Input::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Input, E> {
        Ok(Input::Bytes(value.as_bytes().to_vec()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Input, A::Error> {
        let mut entries = Vec::new();
        while let Some(Tree(value)) = list.next_element()? {
            let key = i64::try_from(entries.len()).map_err(A::Error::custom)?;
            entries.push((Key::Int(key), value));
        }
        Ok(Input::Map(entries))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Input, A::Error> {
        let mut entries: Vec<(Key, Input)> = Vec::new();
        while let Some((key, Tree(value))) = map.next_entry::<String, Tree>()? {
            entries.push((array_key(key.into_bytes()), value));
        }
        if let [(Key::Str(tag), value)] = entries.as_slice()
            && tag.first() == Some(&b'$')
        {
            return tagged(tag, value).ok_or_else(|| {
                A::Error::custom(
                    "an object with the key $hex, $entries, $float or $type is not well-formed",
                )
            });
        }
        Ok(Input::Map(entries))
    }
}

/// A key as PHP's arrays have it: a decimal integer is one.
fn array_key(key: Vec<u8>) -> Key {
    let number = std::str::from_utf8(&key)
        .ok()
        .and_then(|text| text.parse::<i64>().ok().filter(|number| number.to_string() == text));
    number.map_or(Key::Str(key), Key::Int)
}

fn tagged(tag: &[u8], value: &Input) -> Option<Input> {
    match (tag, value) {
        (b"$hex", Input::Bytes(digits)) => unhex(digits).map(Input::Bytes),
        (b"$float", Input::Bytes(name)) => match name.as_slice() {
            b"NAN" => Some(Input::Float(f64::NAN)),
            b"INF" => Some(Input::Float(f64::INFINITY)),
            b"-INF" => Some(Input::Float(f64::NEG_INFINITY)),
            _ => None,
        },
        (b"$type", Input::Bytes(name)) => Some(Input::Other(match name.as_slice() {
            b"array" => "array",
            b"resource" => "resource",
            _ => "object",
        })),
        (b"$entries", Input::Map(pairs)) => {
            pairs.iter().map(|(_, pair)| entry(pair)).collect::<Option<_>>().map(Input::Map)
        }
        _ => None,
    }
}

fn entry(pair: &Input) -> Option<(Key, Input)> {
    let Input::Map(pair) = pair else { return None };
    match pair.as_slice() {
        [(_, Input::Int(key)), (_, value)] => Some((Key::Int(*key), value.clone())),
        [(_, Input::Bytes(key)), (_, value)] => Some((array_key(key.clone()), value.clone())),
        _ => None,
    }
}

fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_chunks::<2>();
    let value = |digit: u8| char::from(digit).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| u8::try_from(value(*high)? * 16 + value(*low)?).ok();
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &[u8]) -> Input {
        Input::Bytes(text.to_vec())
    }

    fn key(name: &str) -> Key {
        Key::Str(name.as_bytes().to_vec())
    }

    #[test]
    fn json_is_read_as_php_s_values() {
        let tree =
            read("x", r#"{"a": [1, -2, 1.0, true, null, "é"], "1007": "f", "-0": 0, "01": 0, "big": 18446744073709551615}"#.as_bytes())
                .unwrap();
        let list = [
            Input::Int(1),
            Input::Int(-2),
            Input::Float(1.0),
            Input::Bool(true),
            Input::Null,
            text("é".as_bytes()),
        ];
        assert_eq!(
            tree,
            Input::Map(vec![
                (key("a"), Input::Map((0..).map(Key::Int).zip(list).collect())),
                (Key::Int(1007), text(b"f")),
                (key("-0"), Input::Int(0)),
                (key("01"), Input::Int(0)),
                (key("big"), Input::Float(18_446_744_073_709_551_615.0)),
            ])
        );
    }

    #[test]
    fn what_json_cannot_say_is_tagged() {
        assert_eq!(read("x", br#"{"$hex": "00fFc3"}"#).unwrap(), text(b"\0\xff\xc3"));
        assert_eq!(read("x", br#"{"$hex": ""}"#).unwrap(), text(b""));
        assert_eq!(read("x", br#"{"$float": "-INF"}"#).unwrap(), Input::Float(f64::NEG_INFINITY));
        assert!(
            matches!(read("x", br#"{"$float": "NAN"}"#).unwrap(), Input::Float(number) if number.is_nan())
        );
        assert_eq!(read("x", br#"{"$type": "resource"}"#).unwrap(), Input::Other("resource"));
        let entries = read(
            "x",
            br#"{"$entries": [["$hex", "ab"], [{"$hex": "ff"}, 1], [5, null], ["6", 1]]}"#,
        )
        .unwrap();
        assert_eq!(
            entries,
            Input::Map(vec![
                (key("$hex"), text(b"ab")),
                (Key::Str(vec![0xff]), Input::Int(1)),
                (Key::Int(5), Input::Null),
                (Key::Int(6), Input::Int(1))
            ])
        );
        for bad in [
            r#"{"$hex": "0"}"#,
            r#"{"$hex": "0g"}"#,
            r#"{"$hex": 1}"#,
            r#"{"$new": 1}"#,
            r#"{"$entries": [[1]]}"#,
            r#"{"$float": "1"}"#,
        ] {
            assert!(read("x", bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn garbage_is_an_error_that_does_not_quote_it() {
        let deep = "[".repeat(100_000);
        for bad in [
            "",
            "hush",
            "{\"password\": hush}",
            "{\"password\":\"hush\"",
            "\"hush",
            "[hush]",
            "{\"password\":\"hush\"}hush",
            &deep,
        ] {
            let message = read("connection", bad.as_bytes()).unwrap_err().to_string();
            assert!(
                message.starts_with("$connection is no JSON") && !message.contains("hush"),
                "{message}"
            );
        }
        assert!(read("x", b"\"\xff\"").is_err());
        assert_eq!(
            entries("options", b"5").unwrap_err().to_string(),
            "$options must be a JSON object, int given"
        );
    }
}
