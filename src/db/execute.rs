//! Statements and their replies. No other code sends a statement after the connection is set up.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mysql_async::prelude::{Protocol, Queryable};
use mysql_async::{Column, Conn, Params, QueryResult, Row, Statement, Value};

use super::reply::{HeldReply, Reply, unreadable};
use super::retry::pause;
use super::session::{Live, Session};
use super::statement_cache::StatementCache;
use crate::error::{Error, Fate, Result, code, server_error};

impl Session {
    /// Runs a statement that returns no rows. Outside a transaction, one that meets a deadlock is
    /// retried (rule 9).
    ///
    /// # Errors
    ///
    /// A connection or query error.
    pub async fn execute(&mut self, sql: &str, params: Params) -> Result<Reply> {
        self.execute_with(sql, || params.clone()).await
    }

    /// Runs a statement as [`Session::execute`] does, with parameters that are created for each
    /// attempt instead of copied for a second attempt, which is rare.
    pub(crate) async fn execute_with(
        &mut self,
        sql: &str,
        params: impl Fn() -> Params,
    ) -> Result<Reply> {
        let mut attempt = 1;
        loop {
            match self.execute_once(sql, params()).await {
                Err(error) if self.may_repeat(&error, attempt) => pause(attempt).await,
                outcome => return outcome,
            }
            attempt += 1;
        }
    }

    async fn execute_once(&mut self, sql: &str, params: Params) -> Result<Reply> {
        let watched = self.watched;
        let Live { conn, deadline, socket, statements, limits, .. } = self.live().await?;
        let socket = socket.and_then(|socket| socket.for_statement(size(sql, &params)));
        let work = async {
            // Prepared first, so that between `before` and the reply there is one OK packet: that
            // of this execution.
            match params {
                Params::Empty => {
                    let before = HeldReply::of(conn);
                    conn.query_drop(sql).await?;
                    Ok(before)
                }
                params => {
                    let statement = prepared(conn, statements, sql).await?;
                    let before = HeldReply::of(conn);
                    conn.exec_iter(statement, params).await?.drop_result().await?;
                    Ok(before)
                }
            }
        };
        let done = {
            // Polled in place: moving a future copies it.
            let work = pin!(work);
            deadline.bounded(limits.client, socket.filter(|_| !watched), work).await
        };
        match outcome(done) {
            Ok(before) => {
                if before.is_still_held(conn) {
                    return Err(self.failed(Failure::Driver(unreadable())));
                }
                Ok(Reply::of(conn))
            }
            Err(failure) => Err(self.failed(failure)),
        }
    }

    /// Runs a statement and collects its rows. Outside a transaction, one that meets a deadlock is
    /// retried (rule 9).
    ///
    /// # Errors
    ///
    /// A connection or query error.
    pub async fn query(&mut self, sql: &str, params: Params) -> Result<Vec<Row>> {
        self.query_as(sql, params, Ok).await
    }

    /// Runs a statement as [`Session::query`] does, and converts each row as it arrives. Of a long
    /// result only the converted rows are kept, so that the allocator reuses the memory of the
    /// driver's rows.
    pub(crate) async fn query_as<T>(
        &mut self,
        sql: &str,
        params: Params,
        convert: impl Fn(Row) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.query_result(sql, params, &convert).await.map(|(_, rows)| rows)
    }

    /// Runs a query without parameters and returns the columns of its result. It is repeated as
    /// [`Session::query_as`] is.
    ///
    /// # Errors
    ///
    /// A connection or query error.
    pub(super) async fn columns(&mut self, sql: &str) -> Result<Arc<[Column]>> {
        self.query_result(sql, Params::Empty, &Ok).await.map(|(columns, _)| columns)
    }

    async fn query_result<T>(
        &mut self,
        sql: &str,
        params: Params,
        convert: &impl Fn(Row) -> Result<T>,
    ) -> Result<(Arc<[Column]>, Vec<T>)> {
        let mut attempt = 1;
        loop {
            match self.query_once(sql, params.clone(), convert).await {
                Err(error) if self.may_repeat(&error, attempt) => pause(attempt).await,
                outcome => return outcome,
            }
            attempt += 1;
        }
    }

    async fn query_once<T>(
        &mut self,
        sql: &str,
        params: Params,
        convert: &impl Fn(Row) -> Result<T>,
    ) -> Result<(Arc<[Column]>, Vec<T>)> {
        let watched = self.watched;
        let Live { conn, deadline, socket, statements, limits, .. } = self.live().await?;
        let socket = socket.and_then(|socket| socket.for_statement(size(sql, &params)));
        let work = async {
            match params {
                Params::Empty => rows_of(conn.query_iter(sql).await?, convert).await,
                params => {
                    let statement = prepared(conn, statements, sql).await?;
                    rows_of(conn.exec_iter(statement, params).await?, convert).await
                }
            }
        };
        let done = {
            // Polled in place: moving a future copies it.
            let work = pin!(work);
            deadline.bounded(limits.client, socket.filter(|_| !watched), work).await
        };
        match outcome(done) {
            Ok(Some((columns, rows))) => Ok((columns, rows?)),
            // Without this check, a reply without rows would be read as "there is no such run".
            Ok(None) => Err(self.failed(Failure::Driver(unreadable()))),
            Err(failure) => Err(self.failed(failure)),
        }
    }

    /// Converts a failure into an error, and discards the connection where it must not be used
    /// again.
    fn failed(&mut self, failure: Failure) -> Error {
        match failure {
            Failure::TimedOut => {
                self.discard();
                Error::connection(format!(
                    "no reply from {} within {} ms; the connection was closed. Check the load of the server, or raise queryTimeoutMs",
                    self.settings.endpoint,
                    self.timeouts.query.as_millis()
                ))
                .with_fate(Fate::TimedOut)
            }
            Failure::Driver(mysql_async::Error::Server(error)) => {
                let (mapped, ends) = server_error(error.code, &error.message);
                if ends {
                    self.discard();
                } else if matches!(error.code, code::BAD_FIELD | code::NO_SUCH_TABLE) {
                    self.forget_tables();
                }
                mapped
            }
            Failure::Driver(error) => {
                self.discard();
                Error::connection(format!(
                    "lost the connection to {}: {}",
                    self.settings.endpoint,
                    words(&error)
                ))
                .with_fate(Fate::Lost)
                .with_source(error)
            }
        }
    }
}

/// Why a bounded piece of work failed.
pub(super) enum Failure {
    TimedOut,
    Driver(mysql_async::Error),
}

/// Returns the message of the driver's error. The driver repeats the message of an error of the
/// operating system, which is removed here.
pub(super) fn words(error: &mysql_async::Error) -> String {
    match error {
        mysql_async::Error::Io(mysql_async::IoError::Io(error)) => error.to_string(),
        mysql_async::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// Returns the approximate size of a statement on the wire, in bytes.
fn size(sql: &str, params: &Params) -> usize {
    let values = match params {
        Params::Positional(values) => values.as_slice(),
        _ => &[],
    };
    let bytes = |value: &Value| if let Value::Bytes(bytes) = value { bytes.len() + 16 } else { 16 };
    values.iter().fold(sql.len() + 64, |sum, value| sum + bytes(value))
}

/// Returns the prepared statement of a text, and prepares it if it is not cached.
async fn prepared(
    conn: &mut Conn,
    statements: &mut StatementCache,
    sql: &str,
) -> mysql_async::Result<Statement> {
    if let Some(statement) = statements.find(sql) {
        return Ok(statement);
    }
    let statement = conn.prep(sql).await?;
    if let Some(oldest) = statements.keep(sql, statement.clone()) {
        conn.close(oldest).await?;
    }
    Ok(statement)
}

/// Returns the columns and the converted rows of a result; `None` when the reply is not a result
/// set. The result is read to its end also where a row cannot be converted.
async fn rows_of<P: Protocol, T>(
    mut result: QueryResult<'_, '_, P>,
    convert: &impl Fn(Row) -> Result<T>,
) -> mysql_async::Result<Option<(Arc<[Column]>, Result<Vec<T>>)>> {
    let Some(columns) = result.columns().filter(|columns| !columns.is_empty()) else {
        result.drop_result().await?;
        return Ok(None);
    };
    let mut rows = Ok(Vec::new());
    let collect = |row| {
        if let Ok(converted) = &mut rows {
            match convert(row) {
                Ok(row) => converted.push(row),
                Err(error) => rows = Err(error),
            }
        }
    };
    result.for_each(collect).await?;
    result.drop_result().await?;
    Ok(Some((columns, rows)))
}

pub(super) async fn bounded<T>(
    limit: Duration,
    work: impl Future<Output = mysql_async::Result<T>>,
) -> Result<T, Failure> {
    outcome(tokio::time::timeout(limit, work).await.ok())
}

/// Converts the outcome of work with a time limit; `None` stands for a time-out.
fn outcome<T>(ended: Option<mysql_async::Result<T>>) -> Result<T, Failure> {
    match ended {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(Failure::Driver(error)),
        None => Err(Failure::TimedOut),
    }
}

/// Builds positional parameters.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        mysql_async::Params::Positional(vec![$(mysql_async::Value::from($value)),*])
    };
}
pub(crate) use params;
