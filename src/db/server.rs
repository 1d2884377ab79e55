//! The capabilities of the server, queried once per connection.

use std::time::Duration;

/// The capabilities that a new session reads from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerCapabilities {
    /// The version as the server reports it.
    pub version: String,
    /// Whether it is MariaDB, and not MySQL.
    pub mariadb: bool,
    /// How rows are locked without waiting.
    pub locking: Locking,
    /// What the binary log holds.
    pub binary_log: BinaryLog,
    /// The isolation level of the session.
    pub isolation: String,
    /// Whether it is a node of a Galera cluster.
    pub cluster: bool,
}

/// What the server writes to its binary log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryLog {
    /// The server keeps no binary log.
    Off,
    /// Statements, or statements where that is safe (`binlog_format` STATEMENT and MIXED).
    Statements,
    /// Rows: all columns of each, or fewer where `binlog_row_image` is not FULL.
    Rows {
        /// Whether every column of a changed row is logged.
        full: bool,
        /// Whether the account may set a smaller image for its session.
        may_shrink: bool,
    },
}

/// How a row that another transaction has locked is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locking {
    /// `SKIP LOCKED`: `MariaDB` 10.6, `MySQL` 8.0.
    SkipLocked,
    /// `NOWAIT`: `MariaDB` 10.3. A chunk that meets a locked row is refused as a whole.
    NoWait,
    /// Neither: the statement waits for the lock for at most `innodb_lock_wait_timeout`.
    Wait,
}

impl Locking {
    /// Returns the clause after `SELECT … FOR UPDATE`.
    #[must_use]
    pub const fn clause(self) -> &'static str {
        match self {
            Self::SkipLocked => " FOR UPDATE SKIP LOCKED",
            Self::NoWait => " FOR UPDATE NOWAIT",
            Self::Wait => " FOR UPDATE",
        }
    }

    /// Returns the way to try after the server has refused the syntax of this one (error 1064).
    #[must_use]
    pub const fn fallback(self) -> Option<Self> {
        match self {
            Self::SkipLocked => Some(Self::NoWait),
            Self::NoWait => Some(Self::Wait),
            Self::Wait => None,
        }
    }
}

/// Whether the account may change how rows are logged, as a condition.
macro_rules! may_shrink_images {
    () => {
        "EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE IN ('SUPER', 'BINLOG ADMIN', \
         'SESSION_VARIABLES_ADMIN', 'SYSTEM_VARIABLES_ADMIN') AND GRANTEE = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), ''''))"
    };
}

/// The query of the variables, and of one that is only shown to accounts that may change how rows
/// are logged. Every server knows it.
macro_rules! show_variables {
    () => {
        concat!(
            "SHOW VARIABLES WHERE Variable_name IN ('version', 'log_bin', 'binlog_format', 'binlog_row_image', \
             'tx_isolation', 'transaction_isolation', 'wsrep_on', 'max_statement_time') OR Variable_name = 'version_comment' AND ",
            may_shrink_images!()
        )
    };
}

impl ServerCapabilities {
    /// The query of the variables that follows the session's settings.
    ///
    /// `MariaDB` is queried for each variable by its name, which takes a tenth of the time of a
    /// list of all. The comment that is executed decides about the kind of server. Where neither
    /// is, or a variable is missing, the server refuses the query.
    pub(super) const QUERY: &str = concat!(
        "/*M!100106 SELECT 'version', @@version UNION ALL SELECT 'log_bin', @@log_bin UNION ALL SELECT 'binlog_format', @@binlog_format \
         UNION ALL SELECT 'binlog_row_image', @@binlog_row_image UNION ALL SELECT 'tx_isolation', @@tx_isolation \
         UNION ALL SELECT 'wsrep_on', @@wsrep_on UNION ALL SELECT 'max_statement_time', @@max_statement_time \
         UNION ALL SELECT 'version_comment', 'shown' FROM DUAL WHERE @@log_bin AND @@binlog_format = 'ROW' AND @@binlog_row_image = 'FULL' AND ",
        may_shrink_images!(),
        " */ /*!50720 ",
        show_variables!(),
        " */"
    );

    /// The query where [`Self::QUERY`] is refused.
    pub(super) const SHOW_VARIABLES: &str = show_variables!();

    /// Reads the reply to the query, as far as the server has these variables. The variables decide
    /// about the kind of server; its name decides only where they do not.
    #[must_use]
    pub fn from_variables(variables: &[(String, String)]) -> Self {
        let get = |name: &str| {
            variables
                .iter()
                .find(|(key, _)| key.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.as_str())
        };
        let version = get("version").unwrap_or_default().to_owned();
        let says_mariadb = version.to_ascii_lowercase().contains("mariadb");
        // MySQL has no such variable.
        let mariadb = says_mariadb || get("max_statement_time").is_some();
        let number = parse_version(&version);
        let locking = if mariadb && !says_mariadb {
            // The version is not MariaDB's own: the server refuses the clause if it does not know
            // it.
            Locking::SkipLocked
        } else if mariadb {
            if number >= (10, 6, 0) {
                Locking::SkipLocked
            } else if number >= (10, 3, 0) {
                Locking::NoWait
            } else {
                Locking::Wait
            }
        } else if number >= (8, 0, 1) {
            Locking::SkipLocked
        } else {
            Locking::Wait
        };
        let is =
            |name: &str, value: &str| get(name).is_some_and(|it| it.eq_ignore_ascii_case(value));
        let log =
            get("log_bin").is_some_and(|value| !value.eq_ignore_ascii_case("off") && value != "0");
        let binary_log = if !log {
            BinaryLog::Off
        } else if is("binlog_format", "statement") || is("binlog_format", "mixed") {
            BinaryLog::Statements
        } else {
            BinaryLog::Rows {
                full: get("binlog_row_image")
                    .is_none_or(|image| image.eq_ignore_ascii_case("full")),
                may_shrink: get("version_comment").is_some(),
            }
        };
        let isolation = get("transaction_isolation")
            .or_else(|| get("tx_isolation"))
            .unwrap_or_default()
            .to_owned();
        let cluster =
            get("wsrep_on").is_some_and(|value| value.eq_ignore_ascii_case("on") || value == "1");
        Self { version, mariadb, locking, binary_log, isolation, cluster }
    }

    /// Maximum number of runs that are locked and written at once.
    #[must_use]
    pub const fn chunk_size(&self) -> usize {
        500
    }

    /// Returns the limits of a session on this server, for a statement that the client waits
    /// `query` for.
    #[must_use]
    pub fn limits(&self, query: Duration) -> Limits {
        Limits::of(query, self.mariadb)
    }
}

impl Limits {
    /// Returns the server's own limits for a statement that the client waits `query` for, and how
    /// long the client waits in the end. Where the server bounds every statement, the client waits
    /// no longer than that.
    #[must_use]
    pub fn of(query: Duration, every_statement: bool) -> Self {
        let query_ms = u64::try_from(query.as_millis()).unwrap_or(u64::MAX).max(1);
        // The server times out first, earlier by a tenth of the limit and at most a second.
        let margin_ms = (query_ms / 10).clamp(1, 1_000);
        let statement_ms = query_ms.saturating_sub(margin_ms).max(1);
        // A lock wait is bounded in whole seconds, one at least.
        let lock_wait_s = (statement_ms / 1_000).max(1);
        let server_ms =
            if every_statement { statement_ms } else { statement_ms.max(lock_wait_s * 1_000) };
        let client_ms = query_ms.max(server_ms + margin_ms.max(400));
        Self {
            statement: Duration::from_millis(statement_ms),
            lock_wait_s,
            client: Duration::from_millis(client_ms),
        }
    }
}

/// Time limits of a session, the server's before the client's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// `max_statement_time` (`MariaDB`), `max_execution_time` (`MySQL`, SELECT only).
    pub statement: Duration,
    /// `innodb_lock_wait_timeout` and `lock_wait_timeout`, in seconds.
    pub lock_wait_s: u64,
    /// How long the client waits for the reply.
    pub client: Duration,
}

/// Returns the first three numbers of a version, without the prefix `5.5.5-` that `MariaDB` adds
/// for old clients.
fn parse_version(version: &str) -> (u32, u32, u32) {
    let version = version.strip_prefix("5.5.5-").unwrap_or(version);
    let mut numbers =
        version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next(), next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capabilities(pairs: &[(&str, &str)]) -> ServerCapabilities {
        let pairs: Vec<_> =
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        ServerCapabilities::from_variables(&pairs)
    }

    #[test]
    fn what_each_server_can_do() {
        let table = [
            ("10.11.6-MariaDB-0+deb12u1", true, Locking::SkipLocked),
            ("5.5.5-10.6.12-MariaDB", true, Locking::SkipLocked),
            ("10.5.23-MariaDB-log", true, Locking::NoWait),
            ("10.2.44-MariaDB", true, Locking::Wait),
            ("9.7.0", false, Locking::SkipLocked),
            ("8.0.36-0ubuntu0.22.04.1", false, Locking::SkipLocked),
            ("5.7.44-log", false, Locking::Wait),
            ("", false, Locking::Wait),
        ];
        for (version, mariadb, locking) in table {
            let server = capabilities(&[("version", version)]);
            assert_eq!((server.mariadb, server.locking), (mariadb, locking), "{version}");
        }
    }

    #[test]
    fn what_is_logged_decides_about_isolation_and_row_image() {
        let log = |pairs: &[(&str, &str)]| capabilities(pairs).binary_log;
        let rows = |full, may_shrink| BinaryLog::Rows { full, may_shrink };
        let on = ("log_bin", "ON");
        assert_eq!(log(&[("log_bin", "OFF"), ("binlog_format", "STATEMENT")]), BinaryLog::Off);
        assert_eq!(log(&[on, ("binlog_format", "STATEMENT")]), BinaryLog::Statements);
        assert_eq!(log(&[on, ("binlog_format", "MIXED")]), BinaryLog::Statements);
        assert_eq!(log(&[on, ("binlog_format", "ROW")]), rows(true, false));
        assert_eq!(log(&[on]), rows(true, false), "a server that knows rows alone");
        let minimal = ("binlog_row_image", "MINIMAL");
        assert_eq!(log(&[on, minimal, ("version_comment", "x")]), rows(false, true));
    }

    #[test]
    fn a_mariadb_is_known_by_what_it_has() {
        let hidden = capabilities(&[("version", "8.4.3"), ("max_statement_time", "4.5")]);
        assert_eq!((hidden.mariadb, hidden.locking), (true, Locking::SkipLocked));
    }

    #[test]
    fn the_server_gives_up_before_the_client() {
        for version in ["10.11.6-MariaDB", "9.7.0"] {
            let server = capabilities(&[("version", version)]);
            for ms in [1, 10, 100, 500, 1_000, 1_500, 5_000, 60_000, 3_600_000] {
                let limits = server.limits(Duration::from_millis(ms));
                assert!(limits.statement < limits.client, "{version} {ms}: {limits:?}");
                assert!(limits.client >= Duration::from_millis(ms));
                if !server.mariadb {
                    assert!(
                        Duration::from_secs(limits.lock_wait_s) < limits.client,
                        "{version} {ms}: {limits:?}"
                    );
                }
            }
        }
    }
}
