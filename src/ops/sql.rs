//! What every operation is told: the options of the runtime and the caller's time.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::config::options::{Clock, Options, TableName};
use crate::domain::validate::MAX_U32;

/// The owner's guard: byte by byte, whatever collation and character set the column has (rule 3). One parameter.
pub(crate) const OWNED: &str =
    "CAST(CONVERT(claimed_by USING utf8mb4) AS BINARY) = CAST(? AS BINARY)";

/// A stored request that a worker could run. Tells whether the payload is empty, and never loads it (rule 11).
pub(crate) const HAS_REQUEST: &str = "COALESCE(OCTET_LENGTH(queued_request), 0) > 0";

/// The database's clock in seconds, moved by what follows, kept in the range of the columns.
const DATABASE_CLOCK: &str = "LEAST(4294967295, GREATEST(1, CAST(UNIX_TIMESTAMP() AS SIGNED) + ?))";

/// The options and the caller's time, fixed for one operation.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The options.
    pub options: &'a Options,
    /// The caller's `time()`.
    pub time: i64,
}

impl<'a> Context<'a> {
    /// A context at the time of this machine's clock.
    #[must_use]
    pub fn now(options: &'a Options) -> Self {
        Self { options, time: unix_time() }
    }

    /// The run table.
    #[must_use]
    pub const fn table(&self) -> &'a TableName {
        &self.options.table
    }

    /// The run table as it stands in SQL.
    pub(crate) fn quoted(&self) -> &'a str {
        self.options.table.quoted()
    }

    /// A time in a statement with parameters: one placeholder, for [`Context::at`].
    pub(crate) const fn time_sql(&self) -> &'static str {
        match self.options.clock {
            Clock::Caller => "?",
            Clock::Database => DATABASE_CLOCK,
        }
    }

    /// The parameter of [`Context::time_sql`] for an absolute time of the caller: as it is, or relative to the caller's time,
    /// so that the database's clock decides (rule 23).
    pub(crate) const fn at(&self, absolute: i64) -> i64 {
        match self.options.clock {
            Clock::Caller => absolute,
            Clock::Database => absolute.saturating_sub(self.time),
        }
    }

    /// The parameter of [`Context::time_sql`] for now.
    pub(crate) const fn at_now(&self) -> i64 {
        self.at(self.time)
    }

    /// An absolute time of the caller as SQL without parameters: an integer, or the database's clock moved by one.
    pub(crate) fn time_literal(&self, absolute: i64) -> String {
        let number = format!("({})", self.at(absolute));
        self.time_sql().replace('?', &number)
    }

    /// Does the row hold exactly the lease that was written? Not known beforehand with the database's clock.
    pub(crate) const fn lease_is_exact(&self) -> bool {
        matches!(self.options.clock, Clock::Caller)
    }
}

/// This machine's clock, in unix seconds.
#[must_use]
pub fn unix_time() -> i64 {
    let seconds =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    i64::try_from(seconds).unwrap_or(MAX_U32)
}

/// This machine's clock, in unix milliseconds.
#[must_use]
pub fn unix_time_ms() -> i64 {
    let elapsed =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis());
    i64::try_from(elapsed).unwrap_or(i64::MAX)
}

/// A list of uids as it stands in `IN (…)`: integers. No text from outside is ever formatted into SQL.
pub(crate) fn uid_list(uids: impl IntoIterator<Item = u64>) -> String {
    let mut list = String::new();
    for uid in uids {
        if !list.is_empty() {
            list.push(',');
        }
        list.push_str(&uid.to_string());
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_caller_move_to_the_database_clock() {
        let mut options = Options::default();
        let context = Context { options: &options, time: 1_000 };
        assert_eq!(
            (context.time_sql(), context.at(1_900), context.time_literal(1_900).as_str()),
            ("?", 1_900, "(1900)")
        );
        options.clock = Clock::Database;
        let context = Context { options: &options, time: 1_000 };
        assert_eq!((context.at(1_900), context.at(0), context.at_now()), (900, -1_000, 0));
        assert!(context.time_literal(0).contains("+ (-1000)"));
    }
}
