//! The outbox: the wake-up of a requeued run, written as a message of the doctrine transport in the requeue's own transaction
//! (rule 13).

use std::collections::{HashMap, HashSet};

use mysql_async::{Params, Value};

use super::sql::Context;
use crate::config::options::TableName;
use crate::config::value::{Input, Key};
use crate::db::row::{flag, text};
use crate::db::{Session, params};
use crate::error::{Error, Result, code};

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

/// The length of a placeholder and of the uuids that replace it.
const PLACEHOLDER_BYTES: usize = 36;

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
                "wakeUp['placeholder'] must be 36 ASCII characters long, as a run's uuid, without quotation marks and backslashes",
            ));
        }
        if !wake_up.body.contains(&wake_up.placeholder) {
            return Err(Error::configuration(
                "wakeUp['body'] does not contain the placeholder that the run's uuid replaces; take the body as the transport's serializer \
                 makes it from an envelope for the placeholder (a body in base64 cannot be a template)",
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

    /// The message's body for a run.
    fn body_for(&self, uuid: &str) -> String {
        self.body.replace(&self.placeholder, uuid)
    }
}

/// The columns of the doctrine transport's table that are written or read.
const COLUMNS: [&str; 7] =
    ["id", "body", "headers", "queue_name", "created_at", "available_at", "delivered_at"];

/// Can the message be written in the run's own transaction? Asked before anything is written, once a connection.
///
/// # Errors
///
/// A configuration error: another database, a missing table or column, a storage engine without transactions.
pub(crate) async fn check(
    session: &mut Session,
    context: Context<'_>,
    wake_up: &WakeUp,
) -> Result<()> {
    if session.knows_outbox(context.table(), &wake_up.table) {
        return Ok(());
    }
    let name = wake_up.table.quoted();
    let facts = session.table(&wake_up.table).await.map_err(|error| match error.code {
        code::NO_SUCH_TABLE | code::BAD_TABLE | code::BAD_DB => Error::configuration(format!(
            "wakeUp['table']: there is no table {name}; it has to be the doctrine transport's table, in the run's own database"
        ))
        .with_code(error.code),
        code::NO_DB => {
            Error::configuration(format!("wakeUp['table']: {name} names no database, and the connection has no dbname")).with_code(code::NO_DB)
        }
        _ => error,
    })?;
    let missing = facts.missing(&COLUMNS);
    if !missing.is_empty() {
        return Err(Error::configuration(format!(
            "wakeUp['table']: {name} lacks the column{} {}; it has to be the doctrine transport's table",
            if missing.len() == 1 { "" } else { "s" },
            missing.join(", ")
        )));
    }
    let messages = placed(session, &wake_up.table).await?;
    let runs = placed(session, context.table()).await?;
    if messages.schema != runs.schema {
        return Err(Error::configuration(format!(
            "wakeUp['table']: {name} is in database {}, the runs are in {}: a message can only be written with a requeue in the run's own \
             database",
            messages.schema, runs.schema
        )));
    }
    for (table, placed) in [(name, &messages), (context.quoted(), &runs)] {
        if !placed.transactional {
            return Err(Error::configuration(format!(
                "wakeUp: {table} is {}, which knows no transactions: a message cannot be written together with a requeue. Convert it to InnoDB, \
                 or call without wakeUp and wake the workers yourself",
                placed.kind
            )));
        }
    }
    session.remember_outbox(context.table(), &wake_up.table);
    Ok(())
}

/// Where a table is and what it is made of.
struct Placed {
    schema: String,
    kind: String,
    transactional: bool,
}

async fn placed(session: &mut Session, table: &TableName) -> Result<Placed> {
    let sql = "SELECT t.TABLE_SCHEMA, COALESCE(t.ENGINE, t.TABLE_TYPE), COALESCE(e.TRANSACTIONS, 'NO') = 'YES' \
               FROM information_schema.TABLES AS t LEFT JOIN information_schema.ENGINES AS e ON e.ENGINE = t.ENGINE \
               WHERE t.TABLE_SCHEMA = COALESCE(?, DATABASE()) AND t.TABLE_NAME = ?";
    let rows = session.query(sql, params![table.schema(), table.name()]).await?;
    let Some(mut row) = rows.into_iter().next() else {
        return Err(Error::configuration(format!(
            "wakeUp: information_schema does not show the table {}",
            table.quoted()
        )));
    };
    Ok(Placed {
        schema: text(&mut row, 0)?,
        kind: text(&mut row, 1)?,
        transactional: flag(&mut row, 2)?,
    })
}

/// From when on a consumer may take a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Available {
    /// Now, by the clock that counts (rule 23).
    AtOnce,
    /// So many milliseconds after the requeue that the row shows, rounded up to a second: never before the run is due.
    AfterRequeue(u64),
}

/// What a transaction wrote into the outbox: the first id that its messages got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    first_id: u64,
    count: usize,
}

/// Writes one message a run into the open transaction. The runs are locked by it, and their uuids fit.
pub(crate) async fn insert(
    session: &mut Session,
    context: Context<'_>,
    wake_up: &WakeUp,
    uids: &[u64],
    available: Available,
) -> Result<Option<Written>> {
    let Some(last) = uids.last() else {
        return Ok(None);
    };
    let size = LIST_SIZES.into_iter().find(|&size| size >= uids.len()).unwrap_or(uids.len());
    // A delay counts from the row's own time, so that the message and the row never differ by a tick of the clock between two
    // statements.
    let (created, available, mut times) = match available {
        Available::AtOnce => {
            let now = utc(context.time_sql());
            (now.clone(), now, vec![Value::from(context.at_now()), Value::from(context.at_now())])
        }
        Available::AfterRequeue(delay_ms) => {
            let delay = i64::try_from(delay_ms.div_ceil(1_000)).unwrap_or(i64::MAX);
            (utc("tstamp"), utc("tstamp + ?"), vec![Value::from(delay)])
        }
    };
    let sql = format!(
        "INSERT INTO {messages} (body, headers, queue_name, created_at, available_at) \
         SELECT REPLACE(?, ?, {UUID}), REPLACE(?, ?, {UUID}), ?, {created}, {available} \
         FROM {runs} FORCE INDEX (PRIMARY) WHERE uid IN ({placeholders}) ORDER BY uid",
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
    ];
    values.append(&mut times);
    values.extend((0..size).map(|index| Value::from(*uids.get(index).unwrap_or(last))));
    let reply =
        session.execute(&sql, Params::Positional(values)).await.map_err(|error| {
            match error.code {
                code::LOCK_WAIT_TIMEOUT => Error {
                    message: format!(
                        "the message table {}: {}",
                        wake_up.table.quoted(),
                        error.message
                    ),
                    ..error
                },
                _ => error,
            }
        })?;
    match reply.matched {
        Some(written) if written != uids.len() as u64 => Err(Error::connection(format!(
            "{} wake-ups were to be written, but the server wrote {written}; nothing was changed. Check the proxy in between, and triggers",
            uids.len()
        ))),
        _ => Ok(Some(Written { first_id: reply.insert_id, count: uids.len() })),
    }
}

/// A run's uuid in the character set of the connection: what is read, hashed and written is the same text.
pub(crate) const UUID: &str = "CONVERT(uuid USING utf8mb4)";

/// A unix time in seconds as a date and time in UTC, whatever the session's time zone.
fn utc(seconds: &str) -> String {
    format!("TIMESTAMPADD(SECOND, {seconds}, TIMESTAMP'1970-01-01 00:00:00')")
}

/// The pattern of the uuids that can take the placeholder's place, for `REGEXP`; see [`fits`].
pub(crate) const FITTING: &str = r"^[ !#-\[\]-~]{36}$";

/// Can the uuid take the placeholder's place without breaking the envelope? It needs the placeholder's length in bytes, which
/// the envelope tells, and no character that serializers write otherwise than it is.
#[must_use]
pub(crate) fn fits(uuid: &str) -> bool {
    uuid.len() == PLACEHOLDER_BYTES
        && uuid.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'))
}

/// The runs, of those given by uuid, for which a message as of this write is there. One that is not may have been taken by a consumer; one that
/// is may be another reaper's, who writes the same. It wakes the run either way. None where nothing was written.
pub(crate) async fn standing<'a>(
    session: &mut Session,
    wake_up: Option<&WakeUp>,
    written: Option<Written>,
    uuids: impl IntoIterator<Item = &'a str>,
) -> Result<HashSet<String>> {
    let (Some(wake_up), Some(written)) = (wake_up, written) else {
        return Ok(HashSet::new());
    };
    let mut bodies: HashMap<String, &str> =
        uuids.into_iter().map(|uuid| (wake_up.body_for(uuid), uuid)).collect();
    // A statement's ids need not lie side by side: others write at the same time, and a cluster's nodes leave gaps.
    let most = written.count.saturating_mul(4).saturating_add(64);
    let sql = format!(
        "SELECT body FROM {} WHERE id >= ? ORDER BY id LIMIT {most}",
        wake_up.table.quoted()
    );
    let mut standing = HashSet::new();
    for mut row in session.query(&sql, params![written.first_id]).await? {
        standing.extend(bodies.remove(&text(&mut row, 0)?).map(str::to_owned));
    }
    Ok(standing)
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
