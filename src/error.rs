//! The one error of the crate: what kind, which server error, what became of the statement, whether
//! it may be repeated, and a message that says what to do.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use crate::domain::validate::ArgumentError;

/// The kind of an error, which decides the class of the exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A wrong argument; nothing was sent.
    Argument,
    /// An option of the wrong type; nothing was sent.
    Type,
    /// Settings, an unsupported driver, a missing table or column.
    Configuration,
    /// The server cannot be reached, was lost, timed out, or the outcome of a write is unknown.
    Connection,
    /// The server refused a statement.
    Query,
    /// The caller does not hold the lease.
    LeaseLost,
    /// The run was cancelled.
    RunCancelled,
    /// The process has no thread, descriptor or memory left.
    Resource,
    /// A defect of this crate or of its driver.
    Internal,
}

/// An error.
#[derive(Debug, Clone)]
pub struct Error {
    /// The kind.
    pub kind: Kind,
    /// The server's error number, or 0. It is reported, and decides nothing: that is what `fate`
    /// and `retry` are for.
    pub code: u16,
    /// What failed, with the value, and what to do about it. Never holds a password.
    pub message: String,
    /// What became of the statement.
    pub fate: Fate,
    /// Whether the statement may succeed when it is repeated.
    pub retry: Retry,
    /// What caused it, where that is an error of another crate.
    pub source: Option<Arc<dyn StdError + Send + Sync>>,
}

/// What became of the statement that an error belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It took no effect: it was refused, or never sent.
    Refused,
    /// The connection was lost before the reply: the outcome is unknown, and may be read back on a
    /// new connection.
    Lost,
    /// The time was up before the reply: the outcome is unknown.
    TimedOut,
}

/// Whether a statement that was refused may succeed when it is repeated on the same connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// No: the reason stays.
    No,
    /// At once: another transaction was in the way (a deadlock, an overtaken snapshot).
    AtOnce,
    /// Not at once: the statement has already waited for a lock, or was refused to wait for one.
    Later,
}

/// The result of an operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn StdError + 'static))
    }
}

impl Error {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, code: 0, message, fate: Fate::Refused, retry: Retry::No, source: None }
    }

    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self::new(Kind::Configuration, message)
    }

    pub(crate) fn connection(message: impl Into<String>) -> Self {
        Self::new(Kind::Connection, message)
    }

    pub(crate) fn resource(message: impl Into<String>) -> Self {
        Self::new(Kind::Resource, message)
    }

    /// Another transaction changed rows between a statement and the one that follows it; nothing
    /// was written.
    pub(crate) fn overtaken(message: impl Into<String>) -> Self {
        Self { retry: Retry::AtOnce, ..Self::connection(message) }
    }

    pub(crate) const fn with_code(mut self, code: u16) -> Self {
        self.code = code;
        self
    }

    pub(crate) const fn with_fate(mut self, fate: Fate) -> Self {
        self.fate = fate;
        self
    }

    pub(crate) fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Returns whether it is unknown if the statement took effect.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        self.fate != Fate::Refused
    }

    /// Returns whether the statement waited for a lock until its limit, or was refused to wait.
    /// Repeating it at once waits again.
    #[must_use]
    pub fn waited(&self) -> bool {
        self.retry == Retry::Later
    }

    /// Returns whether the statement ran into its own time limit. The server has rolled it back;
    /// one that touches fewer rows may succeed.
    pub(crate) const fn statement_timed_out(&self) -> bool {
        matches!(self.code, code::STATEMENT_TIMEOUT | code::QUERY_TIMEOUT)
    }

    /// Returns whether a Galera node refused the transaction because it is larger than
    /// `wsrep_max_ws_rows` or `wsrep_max_ws_size` allows. The node has rolled it back; a smaller
    /// one may succeed.
    pub(crate) fn exceeds_write_set(&self) -> bool {
        exceeds_write_set(self.code, &self.message)
    }

    /// Returns whether the server refused to write at all, so that also a commit took no effect: it
    /// is read-only, or not the primary.
    pub(crate) const fn refuses_writes(&self) -> bool {
        matches!(
            self.code,
            code::OPTION_PREVENTS_STATEMENT
                | code::CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
                | code::READ_ONLY_MODE
        )
    }

    /// Returns whether the same statement may succeed when it is repeated: after deadlocks, lock
    /// waits that ended, and snapshots that another transaction overtook.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.retry != Retry::No
    }
}

impl From<ArgumentError> for Error {
    fn from(error: ArgumentError) -> Self {
        Self::new(if error.is_type { Kind::Type } else { Kind::Argument }, error.to_string())
    }
}

/// Turns an operating system's error into the kind that it is: without descriptors, threads or
/// memory the process is at fault, and not the server.
pub(crate) fn kind_of_io(error: &std::io::Error) -> Kind {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS | libc::EAGAIN) => {
            Kind::Resource
        }
        _ => Kind::Connection,
    }
}

/// The servers' error numbers that are distinguished, by the names of MySQL and MariaDB.
pub mod code {
    /// Too many connections.
    pub const CON_COUNT: u16 = 1040;
    /// The account has no access to the database.
    pub const DBACCESS_DENIED: u16 = 1044;
    /// Wrong user or password.
    pub const ACCESS_DENIED: u16 = 1045;
    /// No database is selected.
    pub const NO_DB: u16 = 1046;
    /// Unknown command; a Galera node that is not part of the primary component.
    pub const UNKNOWN_COM: u16 = 1047;
    /// Unknown database.
    pub const BAD_DB: u16 = 1049;
    /// Unknown table, in a statement that drops it.
    pub const BAD_TABLE: u16 = 1051;
    /// The server shuts down.
    pub const SERVER_SHUTDOWN: u16 = 1053;
    /// Unknown column.
    pub const BAD_FIELD: u16 = 1054;
    /// Syntax error.
    pub const PARSE: u16 = 1064;
    /// The first of the server's notices of shutdown.
    pub const NORMAL_SHUTDOWN: u16 = 1077;
    /// The last of them.
    pub const FORCING_CLOSE: u16 = 1080;
    /// A record changed since it was read (snapshot isolation).
    pub const CHECKREAD: u16 = 1020;
    /// Any error without a number of its own; a Galera write set over `wsrep_max_ws_size`.
    pub const UNKNOWN: u16 = 1105;
    /// Unknown table.
    pub const NO_SUCH_TABLE: u16 = 1146;
    /// The account may not read or write the table.
    pub const TABLEACCESS_DENIED: u16 = 1142;
    /// The account may not read or write the column.
    pub const COLUMNACCESS_DENIED: u16 = 1143;
    /// The first of the server's network errors: it aborted the connection.
    pub const ABORTING_CONNECTION: u16 = 1152;
    /// A packet larger than `max_allowed_packet`.
    pub const NET_PACKET_TOO_LARGE: u16 = 1153;
    /// The last of the server's network errors: a write was interrupted.
    pub const NET_WRITE_INTERRUPTED: u16 = 1161;
    /// The commit failed.
    pub const ERROR_DURING_COMMIT: u16 = 1180;
    /// The account has too many connections.
    pub const TOO_MANY_USER_CONNECTIONS: u16 = 1203;
    /// Timed out waiting for a lock.
    pub const LOCK_WAIT_TIMEOUT: u16 = 1205;
    /// A deadlock; also a certification conflict of Galera.
    pub const LOCK_DEADLOCK: u16 = 1213;
    /// The account has used up one of its limits.
    pub const USER_LIMIT_REACHED: u16 = 1226;
    /// An option of the server (read-only) forbids the statement.
    pub const OPTION_PREVENTS_STATEMENT: u16 = 1290;
    /// `KILL QUERY`.
    pub const QUERY_INTERRUPTED: u16 = 1317;
    /// `max_prepared_stmt_count`.
    pub const MAX_PREPARED_STMT_COUNT_REACHED: u16 = 1461;
    /// The account may not log in this way (socket authentication).
    pub const ACCESS_DENIED_NO_PASSWORD: u16 = 1698;
    /// The transaction is read-only.
    pub const CANT_EXECUTE_IN_READ_ONLY_TRANSACTION: u16 = 1792;
    /// The server runs in read-only mode.
    pub const READ_ONLY_MODE: u16 = 1836;
    /// `KILL CONNECTION` (MariaDB).
    pub const CONNECTION_KILLED: u16 = 1927;
    /// `max_statement_time` (MariaDB).
    pub const STATEMENT_TIMEOUT: u16 = 1969;
    /// The server has gone away.
    pub const SERVER_GONE: u16 = 2006;
    /// The connection was lost during the statement.
    pub const SERVER_LOST: u16 = 2013;
    /// `max_execution_time` (MySQL).
    pub const QUERY_TIMEOUT: u16 = 3024;
    /// A certification conflict of group replication.
    pub const TRANSACTION_ROLLBACK_DURING_COMMIT: u16 = 3101;
    /// The session was killed (MySQL).
    pub const SESSION_WAS_KILLED: u16 = 3169;
    /// A row that NOWAIT found locked.
    pub const LOCK_NOWAIT: u16 = 3572;
    /// The server disconnected a client that was inactive (MySQL).
    pub const CLIENT_INTERACTION_TIMEOUT: u16 = 4031;
}

/// Returns whether a statement that ended in this error may succeed when it is repeated.
const fn retry(number: u16) -> Retry {
    match number {
        code::LOCK_DEADLOCK | code::CHECKREAD | code::TRANSACTION_ROLLBACK_DURING_COMMIT => {
            Retry::AtOnce
        }
        code::LOCK_WAIT_TIMEOUT | code::LOCK_NOWAIT => Retry::Later,
        _ => Retry::No,
    }
}

/// Returns whether the connection is of no use after this error: too many connections, shutdown,
/// network errors of the server's side, read-only and not-primary servers (the next connection may
/// reach the primary).
const fn ends_connection(number: u16) -> bool {
    matches!(
        number,
        code::CON_COUNT
            | code::UNKNOWN_COM
            | code::SERVER_SHUTDOWN
            | code::NORMAL_SHUTDOWN..=code::FORCING_CLOSE
            | code::ABORTING_CONNECTION
            | code::NET_PACKET_TOO_LARGE
            | 1155..=code::NET_WRITE_INTERRUPTED
            | code::TOO_MANY_USER_CONNECTIONS
            | code::USER_LIMIT_REACHED
            | code::OPTION_PREVENTS_STATEMENT
            | code::CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
            | code::READ_ONLY_MODE
            | code::CONNECTION_KILLED
            | code::SERVER_GONE
            | code::SERVER_LOST
            | code::SESSION_WAS_KILLED
            | code::CLIENT_INTERACTION_TIMEOUT
    )
}

/// Returns what became of a statement: the outcome is unknown when the server shuts down in the
/// middle of it, or failed in the middle of a commit.
const fn fate(number: u16) -> Fate {
    match number {
        code::SERVER_SHUTDOWN
        | code::ERROR_DURING_COMMIT
        | code::NORMAL_SHUTDOWN..=code::FORCING_CLOSE
        | code::ABORTING_CONNECTION..=code::NET_WRITE_INTERRUPTED
        | code::CONNECTION_KILLED
        | code::SERVER_GONE
        | code::SERVER_LOST
        | code::CLIENT_INTERACTION_TIMEOUT => Fate::Lost,
        _ => Fate::Refused,
    }
}

fn exceeds_write_set(number: u16, message: &str) -> bool {
    match number {
        code::ERROR_DURING_COMMIT => message.contains("wsrep_max_ws_rows"),
        code::UNKNOWN => message.contains("writeset size"),
        _ => false,
    }
}

/// Returns the error for a server's error number and text, and whether it ends the connection.
pub(crate) fn server_error(number: u16, message: &str) -> (Error, bool) {
    let ends = ends_connection(number);
    let mut error = match number {
        // Both mean that the time was up; 1969 and 3024 for the statement, 1205 for a lock.
        code::LOCK_WAIT_TIMEOUT => Error::connection(format!(
            "timed out waiting for a lock that another connection holds, on the row or on the table: {message}"
        )),
        code::STATEMENT_TIMEOUT | code::QUERY_TIMEOUT => Error::connection(format!(
            "the statement took longer than queryTimeoutMs allows: {message}"
        )),
        code::QUERY_INTERRUPTED => Error::connection(format!(
            "another connection interrupted the statement (KILL QUERY): {message}; it took no effect, try again"
        )),
        code::BAD_FIELD => Error::configuration(format!(
            "the run table lacks a column: {message}; update the database schema of nr_llm"
        )),
        code::NO_SUCH_TABLE | code::BAD_TABLE => Error::configuration(format!(
            "the table does not exist: {message}; check the option table and dbname, or create it"
        )),
        code::NO_DB => {
            Error::configuration("no database is selected; set dbname in the connection")
        }
        code::BAD_DB => Error::configuration(format!("{message}; check dbname in the connection")),
        code::DBACCESS_DENIED | code::TABLEACCESS_DENIED | code::COLUMNACCESS_DENIED => {
            Error::new(Kind::Query, format!("{message}; the database account lacks a privilege"))
        }
        code::OPTION_PREVENTS_STATEMENT
        | code::CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
        | code::READ_ONLY_MODE => {
            Error::connection(format!("the server is read-only: {message}; connect to the primary"))
        }
        code::UNKNOWN_COM => Error::connection(format!(
            "the cluster node is not ready: {message}; connect to a node of the primary component"
        )),
        code::MAX_PREPARED_STMT_COUNT_REACHED => Error::new(
            Kind::Query,
            format!(
                "{message}; raise max_prepared_stmt_count or find which client leaks statements"
            ),
        ),
        _ if ends => Error::connection(message.to_owned()),
        _ => Error::new(Kind::Query, message.to_owned()),
    };
    error.code = number;
    error.fate = if exceeds_write_set(number, message) { Fate::Refused } else { fate(number) };
    error.retry = retry(number);
    (error, ends)
}
