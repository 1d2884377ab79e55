//! The outbox: the wake-up of a requeued run, written as a message of the doctrine transport in the requeue's own transaction
//! (rule 13).

use mysql_async::{Params, Value};

use super::context::Context;
use super::error::{Error, Result};
use super::input::{Input, Key};
use super::options::TableName;
use super::session::Session;

/// What is written to wake a worker: a serialised envelope for a placeholder in place of a run's uuid.
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

/// The sizes of the lists of runs: a list is padded to the next, so that few statements serve all.
const LIST_SIZES: [usize; 4] = [1, 16, 128, 512];

impl WakeUp {
    /// Reads the array.
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
                    Error::configuration(format!("wakeUp['{label}'] must be UTF-8; take the body as the transport's serializer makes it"))
                })?,
                other => {
                    return Err(Error::configuration(format!("wakeUp['{label}'] must be a string, {} given", other.type_name())));
                }
            };
            if let Some(field) = fields.get_mut(index) {
                *field = Some(text);
            }
        }
        let [table, queue, body, headers, placeholder] = fields;
        let needed =
            |field: Option<String>, name: &str| field.ok_or_else(|| Error::configuration(format!("wakeUp lacks the key '{name}'")));
        let wake_up = Self {
            table: TableName::parse("wakeUp['table']", &needed(table, "table")?)?,
            queue: needed(queue, "queue")?,
            body: needed(body, "body")?,
            headers: needed(headers, "headers")?,
            placeholder: needed(placeholder, "placeholder")?,
        };
        if wake_up.placeholder.len() != 36 || !wake_up.placeholder.is_ascii() {
            return Err(Error::configuration("wakeUp['placeholder'] must be 36 ASCII characters long, as a run's uuid"));
        }
        if !wake_up.body.contains(&wake_up.placeholder) {
            return Err(Error::configuration("wakeUp['body'] does not contain the placeholder that the run's uuid replaces"));
        }
        let queue_length = wake_up.queue.chars().count();
        if !(1..=190).contains(&queue_length) {
            return Err(Error::configuration(format!("wakeUp['queue'] must be 1 to 190 characters long, {queue_length} given")));
        }
        Ok(wake_up)
    }
}

/// Can the message be written in the run's own transaction? Asked before anything is written.
///
/// # Errors
///
/// A configuration error: another database, a missing table or column.
pub(super) async fn check(session: &mut Session, context: Context<'_>, wake_up: &WakeUp) -> Result<()> {
    if let Some(schema) = wake_up.table.schema() {
        let runs_in = context.table().schema().unwrap_or(session.settings().dbname.as_str());
        if schema != runs_in {
            return Err(Error::configuration(format!(
                "wakeUp['table'] is in database {schema}, the runs are in {runs_in}: a message can only be written in the run's own database"
            )));
        }
    }
    let facts = session.table(&wake_up.table).await?;
    facts.require(&["body", "headers", "queue_name", "created_at", "available_at", "delivered_at"])
}

/// Writes one message a run, available `delay_ms` from now, in the open transaction.
pub(super) async fn insert(session: &mut Session, context: Context<'_>, wake_up: &WakeUp, uids: &[u64], delay_ms: u64) -> Result<()> {
    let Some(last) = uids.last() else {
        return Ok(());
    };
    let size = LIST_SIZES.into_iter().find(|&size| size >= uids.len()).unwrap_or(uids.len());
    let delay_seconds = i64::try_from(delay_ms.div_ceil(1_000)).unwrap_or(i64::MAX);
    let at = |time: &str| format!("TIMESTAMPADD(SECOND, {time}, '1970-01-01 00:00:00')");
    let time = at(context.time_sql());
    let sql = format!(
        "INSERT INTO {messages} (body, headers, queue_name, created_at, available_at) \
         SELECT REPLACE(?, ?, uuid), REPLACE(?, ?, uuid), ?, {time}, {time} FROM {runs} FORCE INDEX (PRIMARY) WHERE uid IN ({placeholders})",
        messages = wake_up.table.quoted(),
        runs = context.quoted(),
        placeholders = vec!["?"; size].join(",")
    );
    let mut values = vec![
        Value::from(wake_up.body.as_str()),
        Value::from(wake_up.placeholder.as_str()),
        Value::from(wake_up.headers.as_str()),
        Value::from(wake_up.placeholder.as_str()),
        Value::from(wake_up.queue.as_str()),
        Value::from(context.at_now()),
        Value::from(context.at(context.time.saturating_add(delay_seconds))),
    ];
    values.extend((0..size).map(|index| Value::from(*uids.get(index).unwrap_or(last))));
    session.execute(&sql, Params::Positional(values)).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let entries: Vec<_> =
            fields.into_iter().map(|(key, value)| (Key::Str(key.as_bytes().to_vec()), Input::Bytes(value.as_bytes().to_vec()))).collect();
        WakeUp::parse(&entries)
    }

    #[test]
    fn a_template_is_checked_before_anything_is_sent() {
        assert_eq!(template(&[]).unwrap().queue, "default");
        for (changes, part) in [
            ([("body", "no placeholder here")], "placeholder"),
            ([("body", "-")], "'body'"),
            ([("placeholder", "short")], "36"),
            ([("queue", "")], "queue"),
            ([("table", "a b")], "table"),
            ([("extra", "x")], "unknown key 'extra'"),
        ] {
            let message = template(&changes).unwrap_err().message;
            assert!(message.contains(part), "{message}");
        }
    }
}
