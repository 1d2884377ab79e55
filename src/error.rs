//! The one error of the crate: what kind, which server error, and a message that says what to do.

use crate::domain::validate::ArgumentError;

/// What kind of error, which decides the class of the exception.
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
    /// The lease is not held (any more).
    LeaseLost,
    /// The run was cancelled.
    RunCancelled,
}

/// An error of the store.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The kind.
    pub kind: Kind,
    /// The server's error number, or 0.
    pub code: u16,
    /// What happened and what to do. Never holds a password.
    pub message: String,
    /// What became of the statement.
    pub fate: Fate,
}

/// What became of the statement that an error belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It took no effect: it was refused, or never sent.
    Refused,
    /// The connection was lost before the reply: the outcome is unknown, and a new connection may tell.
    Lost,
    /// The time was up before the reply: the outcome is unknown.
    TimedOut,
}

/// The result of the store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, code: 0, message: message.into(), fate: Fate::Refused }
    }

    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self::new(Kind::Configuration, message)
    }

    pub(crate) fn connection(message: impl Into<String>) -> Self {
        Self::new(Kind::Connection, message)
    }

    pub(crate) fn with_code(mut self, code: u16) -> Self {
        self.code = code;
        self
    }

    pub(crate) const fn with_fate(mut self, fate: Fate) -> Self {
        self.fate = fate;
        self
    }

    /// Is it unknown whether the statement took effect?
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        self.fate != Fate::Refused
    }

    /// Did the statement wait for a lock in vain, or was refused to wait? Waiting again at once helps nobody.
    pub(crate) const fn waited(&self) -> bool {
        matches!(self.code, 1205 | 3572)
    }

    /// May the same statement succeed when it is tried again? True for deadlocks, lock waits that ended, and snapshots that
    /// another transaction overtook.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        is_transient(self.code)
    }
}

impl From<ArgumentError> for Error {
    fn from(error: ArgumentError) -> Self {
        Self::new(if error.is_type { Kind::Type } else { Kind::Argument }, error.to_string())
    }
}

/// 1205 lock wait timeout, 1213 deadlock (also a certification conflict of Galera), 3101 a certification conflict of group replication, 1020 record
/// changed (snapshot isolation), 3572 a row that NOWAIT found locked.
pub(crate) const fn is_transient(code: u16) -> bool {
    matches!(code, 1205 | 1213 | 1020 | 3101 | 3572)
}

/// Errors after which the connection is of no use: too many connections, shutdown, network errors of the server's side,
/// read-only and not-primary servers (the next connection may reach the primary).
const fn ends_connection(code: u16) -> bool {
    matches!(
        code,
        1040 | 1047
            | 1053
            | 1077
            | 1078
            | 1079
            | 1080
            | 1152
            | 1153
            | 1155
            | 1156
            | 1157
            | 1158
            | 1159
            | 1160
            | 1161
            | 1203
            | 1226
            | 1290
            | 1792
            | 1836
            | 1927
            | 2006
            | 2013
            | 3024
            | 3169
            | 4031
    )
}

/// What a server's error number means for the caller.
pub(crate) fn server_error(code: u16, message: &str) -> (Error, bool) {
    let ends = ends_connection(code);
    let error = match code {
        // Both say that the time was up; 1969 and 3024 for the statement, 1205 for a row lock.
        1205 => Error::connection(format!(
            "timed out waiting for a row lock that another transaction holds: {message}"
        )),
        1969 | 3024 => Error::connection(format!(
            "the statement took longer than queryTimeoutMs allows: {message}"
        )),
        1054 => Error::configuration(format!(
            "the run table lacks a column: {message}; update the database schema of nr_llm"
        )),
        1146 | 1051 => Error::configuration(format!(
            "the table does not exist: {message}; check the option table and dbname, or create it"
        )),
        1046 => Error::configuration("no database is selected; set dbname in the connection"),
        1049 => Error::configuration(format!("{message}; check dbname in the connection")),
        1044 | 1142 | 1143 => {
            Error::new(Kind::Query, format!("{message}; the database account lacks a privilege"))
        }
        1290 | 1792 | 1836 => {
            Error::connection(format!("the server is read-only: {message}; connect to the primary"))
        }
        1047 => Error::connection(format!(
            "the cluster node is not ready: {message}; connect to a node of the primary component"
        )),
        1461 => Error::new(
            Kind::Query,
            format!("{message}; raise max_prepared_stmt_count or find who leaks statements"),
        ),
        _ if ends => Error::connection(message.to_owned()),
        _ => Error::new(Kind::Query, message.to_owned()),
    };
    // The server says goodbye in the middle of something, or failed in the middle of a commit (1180): what became of the statement is not told.
    let fate = if matches!(code, 1053 | 1180 | 1077..=1080 | 1152..=1161 | 1927 | 2006 | 2013 | 4031)
    {
        Fate::Lost
    } else {
        Fate::Refused
    };
    (error.with_code(code).with_fate(fate), ends)
}
