//! The outbox: the wake-up of a queued run, written as a message of the doctrine transport in the
//! run's own transaction (rule 13).

use std::collections::{HashMap, HashSet};

use mysql_async::Value;

use super::sql::{Context, Sql, UUID, bind, number, sql};
use crate::config::options::TableName;
use crate::config::requests::WakeUp;
use crate::db::Session;
use crate::db::row::{flag, text};
use crate::error::{Error, Result, code};

/// The sizes of the lists of runs: a list is padded to the next, so that few statements serve all.
const LIST_SIZES: [usize; 4] = [1, 16, 128, 512];

/// The columns of the doctrine transport's table that are written or read.
const COLUMNS: [&str; 7] =
    ["id", "body", "headers", "queue_name", "created_at", "available_at", "delivered_at"];

/// Checks, before anything is written, that messages can be written in the transaction of a run.
/// Asks the server once per connection.
///
/// # Errors
///
/// A configuration error: another database, a missing table or column, a storage engine without
/// transactions.
pub(super) async fn check(
    session: &mut Session,
    context: Context<'_>,
    wake_up: &WakeUp,
) -> Result<()> {
    if session.knows_outbox(context.table(), &wake_up.table) {
        return Ok(());
    }
    let name = wake_up.table.quoted();
    let schema = session.table(&wake_up.table).await.map_err(|error| match error.code {
        code::NO_SUCH_TABLE | code::BAD_TABLE | code::BAD_DB => Error::configuration(format!(
            "wakeUp['table']: the table {name} does not exist; it has to be the doctrine transport's \
             table, in the run's own database"
        ))
        .with_code(error.code),
        code::NO_DB => Error::configuration(format!(
            "wakeUp['table']: {name} names no database, and the connection has no dbname"
        ))
        .with_code(code::NO_DB),
        _ => error,
    })?;
    let missing = schema.missing(&COLUMNS);
    if !missing.is_empty() {
        return Err(Error::configuration(format!(
            "wakeUp['table']: {name} lacks the column{} {}; it has to be the doctrine transport's \
             table",
            if missing.len() == 1 { "" } else { "s" },
            missing.join(", ")
        )));
    }
    let messages = placed(session, &wake_up.table).await?;
    let runs = placed(session, context.table()).await?;
    if messages.schema != runs.schema {
        return Err(Error::configuration(format!(
            "wakeUp['table']: {name} is in database {}, the runs are in {}: a message can only be \
             written with a requeue in the run's own database",
            messages.schema, runs.schema
        )));
    }
    for (table, placed) in [(name, &messages), (context.table().quoted(), &runs)] {
        if !placed.transactional {
            return Err(Error::configuration(format!(
                "wakeUp: {table} is {}, which has no transactions: a message cannot be written \
                 together with a requeue. Convert it to InnoDB, or call without wakeUp and notify \
                 the workers yourself",
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
    let read = Sql::with(
        "SELECT t.TABLE_SCHEMA, COALESCE(t.ENGINE, t.TABLE_TYPE), \
         COALESCE(e.TRANSACTIONS, 'NO') = 'YES' FROM information_schema.TABLES AS t \
         LEFT JOIN information_schema.ENGINES AS e ON e.ENGINE = t.ENGINE \
         WHERE t.TABLE_SCHEMA = COALESCE(?, DATABASE()) AND t.TABLE_NAME = ?",
        [Value::from(table.schema()), Value::from(table.name())],
    );
    let rows = read.query(session).await?;
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
pub(super) enum Available {
    /// Now, by the clock that counts (rule 23).
    AtOnce,
    /// So many milliseconds after the requeue that the row shows, rounded up to a second: never
    /// before the run is due.
    AfterRequeue(u64),
}

/// What a transaction wrote into the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    /// The first id that the messages were given.
    first_id: u64,
    count: usize,
}

/// Writes one message per run into the open transaction, which holds the locks of the runs. Their
/// uuids fit (see [`crate::config::requests::fits`]).
///
/// # Errors
///
/// A connection or query error; [`Error::waited`] where another transaction holds locks of the
/// message table.
pub(super) async fn insert(
    session: &mut Session,
    context: Context<'_>,
    wake_up: &WakeUp,
    uids: &[u64],
    available: Available,
) -> Result<Option<Written>> {
    let Some(last) = uids.last() else {
        return Ok(None);
    };
    // A delay counts from the row's own time, so that the message and the row never differ by a
    // tick of the clock between two statements.
    let (created_at, available_at) = match available {
        Available::AtOnce => (utc(context.bound_now()), utc(context.bound_now())),
        Available::AfterRequeue(delay_ms) => {
            let delay = i64::try_from(delay_ms.div_ceil(1_000)).unwrap_or(i64::MAX);
            (utc(Sql::from("tstamp")), utc(sql!("tstamp + {}", bind(delay))))
        }
    };
    let size = LIST_SIZES.into_iter().find(|&size| size >= uids.len()).unwrap_or(uids.len());
    let list = (0..size).map(|index| bind(*uids.get(index).unwrap_or(last)));
    let write = sql!(
        "INSERT INTO {} (body, headers, queue_name, created_at, available_at) \
         SELECT {}, {}, {}, {}, {} FROM {} FORCE INDEX (PRIMARY) WHERE uid IN ({}) ORDER BY uid",
        &wake_up.table,
        for_run(wake_up, &wake_up.body),
        for_run(wake_up, &wake_up.headers),
        bind(wake_up.queue.as_str()),
        created_at,
        available_at,
        context.table(),
        Sql::join(list, ",")
    );
    let reply = write.execute(session).await.map_err(|error| in_message_table(wake_up, error))?;
    match reply.matched {
        Some(written) if written != uids.len() as u64 => Err(Error::connection(format!(
            "{} wake-ups were to be written, but the server wrote {written}; nothing was changed. \
             Check the proxy in between, and triggers",
            uids.len()
        ))),
        _ => Ok(Some(Written { first_id: reply.insert_id, count: uids.len() })),
    }
}

/// Returns the error for a run whose uuid does not fit into the message; `action` is what the
/// caller may do without a wake-up.
pub(super) fn unfit_uuid(run_uid: u64, uuid: &str, action: &str) -> Error {
    Error::configuration(format!(
        "wakeUp: run {run_uid} has the uuid '{}', which cannot take the placeholder's place (36 \
         ASCII characters without quotation marks and backslashes); nothing was written. {action} \
         without wakeUp, and notify a worker yourself",
        uuid.escape_debug()
    ))
}

/// The template with the run's uuid in the placeholder's place.
fn for_run(wake_up: &WakeUp, template: &str) -> Sql {
    sql!("REPLACE({}, {}, {})", bind(template), bind(wake_up.placeholder.as_str()), UUID)
}

/// Names the table that a lock wait was for.
fn in_message_table(wake_up: &WakeUp, error: Error) -> Error {
    match error.code {
        code::LOCK_WAIT_TIMEOUT => Error {
            message: format!("the message table {}: {}", wake_up.table.quoted(), error.message),
            ..error
        },
        _ => error,
    }
}

/// A unix time in seconds as a date and time in UTC, whatever the session's time zone.
fn utc(seconds: Sql) -> Sql {
    sql!("TIMESTAMPADD(SECOND, {}, TIMESTAMP'1970-01-01 00:00:00')", seconds)
}

/// The condition for uuids that can take the placeholder's place; see
/// [`crate::config::requests::fits`].
pub(super) fn has_fitting_uuid() -> Sql {
    sql!("{} REGEXP {}", UUID, bind(r"^[ !#-\[\]-~]{36}$"))
}

/// Returns the uuids of those runs for which a message of this write is in the table; none where
/// nothing was written.
///
/// A message that is missing may have been taken by a consumer. One that is there may be another
/// reaper's, which writes the same text; it notifies a worker of the run either way.
pub(super) async fn remaining<'a>(
    session: &mut Session,
    wake_up: Option<&WakeUp>,
    written: Option<Written>,
    uuids: impl IntoIterator<Item = &'a str>,
) -> Result<HashSet<String>> {
    let (Some(wake_up), Some(written)) = (wake_up, written) else {
        return Ok(HashSet::new());
    };
    let body = |uuid| wake_up.body.replace(&wake_up.placeholder, uuid);
    let mut bodies: HashMap<String, &str> =
        uuids.into_iter().map(|uuid| (body(uuid), uuid)).collect();
    // A statement's ids need not be adjacent: others write at the same time, and a cluster's nodes
    // leave gaps.
    let most = written.count.saturating_mul(4).saturating_add(64);
    let read = sql!(
        "SELECT body FROM {} WHERE id >= {} ORDER BY id LIMIT {}",
        &wake_up.table,
        bind(written.first_id),
        number(most)
    );
    let mut remaining = HashSet::new();
    for mut row in read.query(session).await? {
        remaining.extend(bodies.remove(&text(&mut row, 0)?).map(str::to_owned));
    }
    Ok(remaining)
}
