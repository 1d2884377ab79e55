//! What the server can do, asked once a connection.

use std::time::Duration;

/// What was learnt about the server when the session was set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerCapabilities {
    /// The version as the server tells it.
    pub version: String,
    /// Is it MariaDB (or MySQL)?
    pub mariadb: bool,
    /// How rows are locked without waiting.
    pub locking: Locking,
    /// Is READ COMMITTED refused (error 1665), since the binary log holds statements?
    pub statement_binlog: bool,
    /// The name of the variable that holds the isolation level.
    pub isolation_variable: &'static str,
    /// Is it a node of a Galera cluster?
    pub cluster: bool,
}

/// How a row that another transaction holds is passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locking {
    /// `SKIP LOCKED`: `MariaDB` 10.6, `MySQL` 8.0.
    SkipLocked,
    /// `NOWAIT`: `MariaDB` 10.3. A chunk that meets a locked row is refused as a whole.
    NoWait,
    /// Neither: the lock is waited for, at most `innodb_lock_wait_timeout`.
    Wait,
}

impl Locking {
    /// The clause behind `SELECT … FOR UPDATE`.
    #[must_use]
    pub const fn clause(self) -> &'static str {
        match self {
            Self::SkipLocked => " FOR UPDATE SKIP LOCKED",
            Self::NoWait => " FOR UPDATE NOWAIT",
            Self::Wait => " FOR UPDATE",
        }
    }

    /// What to try after the server did not understand this one (error 1064).
    #[must_use]
    pub const fn fallback(self) -> Option<Self> {
        match self {
            Self::SkipLocked => Some(Self::NoWait),
            Self::NoWait => Some(Self::Wait),
            Self::Wait => None,
        }
    }
}

impl ServerCapabilities {
    /// Reads the facts from the variables `version`, `log_bin`, `binlog_format`, `tx_isolation`, `transaction_isolation`, `wsrep_on`, as far as
    /// the server has them.
    #[must_use]
    pub fn from_variables(variables: &[(String, String)]) -> Self {
        let get = |name: &str| {
            variables
                .iter()
                .find(|(key, _)| key.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.as_str())
        };
        let version = get("version").unwrap_or_default().to_owned();
        let mariadb = version.to_ascii_lowercase().contains("mariadb");
        let number = parse_version(&version);
        let locking = if mariadb {
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
        let statement_binlog = get("log_bin")
            .is_some_and(|value| !value.eq_ignore_ascii_case("off") && value != "0")
            && get("binlog_format").is_some_and(|value| value.eq_ignore_ascii_case("statement"));
        let isolation_variable = if get("transaction_isolation").is_some() {
            "transaction_isolation"
        } else {
            "tx_isolation"
        };
        let cluster =
            get("wsrep_on").is_some_and(|value| value.eq_ignore_ascii_case("on") || value == "1");
        Self { version, mariadb, locking, statement_binlog, isolation_variable, cluster }
    }

    /// The isolation level that the session uses.
    #[must_use]
    pub const fn isolation(&self) -> &'static str {
        if self.statement_binlog { "REPEATABLE-READ" } else { "READ-COMMITTED" }
    }

    /// How many runs are locked and written at once: few where gaps are locked too.
    #[must_use]
    pub const fn chunk_size(&self) -> usize {
        if self.statement_binlog { 50 } else { 500 }
    }

    /// The server's own limits for a statement that the client waits `query` for, and how long the client waits in the end.
    #[must_use]
    pub fn limits(&self, query: Duration) -> Limits {
        let query_ms = u64::try_from(query.as_millis()).unwrap_or(u64::MAX).max(1);
        // The server gives up first: a tenth earlier, a second at most.
        let margin_ms = (query_ms / 10).clamp(1, 1_000);
        let statement_ms = query_ms.saturating_sub(margin_ms).max(1);
        // A lock wait is bounded in whole seconds, one at least.
        let lock_wait_s = (statement_ms / 1_000).max(1);
        let server_ms =
            if self.mariadb { statement_ms } else { statement_ms.max(lock_wait_s * 1_000) };
        let client_ms = query_ms.max(server_ms + margin_ms.max(400));
        Limits {
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

/// The first three numbers of a version; the prefix `5.5.5-` of a `MariaDB` that speaks to old clients is passed over.
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

    fn facts(pairs: &[(&str, &str)]) -> ServerCapabilities {
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
            let facts = facts(&[("version", version)]);
            assert_eq!((facts.mariadb, facts.locking), (mariadb, locking), "{version}");
        }
    }

    #[test]
    fn read_committed_only_where_the_binary_log_allows_it() {
        assert!(facts(&[("log_bin", "ON"), ("binlog_format", "STATEMENT")]).statement_binlog);
        assert!(!facts(&[("log_bin", "OFF"), ("binlog_format", "STATEMENT")]).statement_binlog);
        assert!(!facts(&[("log_bin", "ON"), ("binlog_format", "MIXED")]).statement_binlog);
        assert!(!facts(&[("log_bin", "ON")]).statement_binlog);
    }

    #[test]
    fn the_server_gives_up_before_the_client() {
        for version in ["10.11.6-MariaDB", "9.7.0"] {
            let facts = facts(&[("version", version)]);
            for ms in [1, 10, 100, 500, 1_000, 1_500, 5_000, 60_000, 3_600_000] {
                let limits = facts.limits(Duration::from_millis(ms));
                assert!(limits.statement < limits.client, "{version} {ms}: {limits:?}");
                assert!(limits.client >= Duration::from_millis(ms));
                if !facts.mariadb {
                    assert!(
                        Duration::from_secs(limits.lock_wait_s) < limits.client,
                        "{version} {ms}: {limits:?}"
                    );
                }
            }
        }
    }
}
