//! The clock by which times are written and compared: the caller's, or the database's (rule 23).

use std::time::{SystemTime, UNIX_EPOCH};

use mysql_async::Value;

use super::fragment::{Sql, bind, number, sql};
use crate::config::options::{Clock, Options, TableName};
use crate::domain::validate::MAX_U32;

/// The database's clock in seconds, moved by a placeholder or a number and kept in the range of the
/// columns.
macro_rules! database_clock {
    ($moved_by:literal) => {
        concat!(
            "LEAST(4294967295, GREATEST(1, CAST(UNIX_TIMESTAMP() AS SIGNED) + ",
            $moved_by,
            "))"
        )
    };
}

/// The options and the caller's time, fixed for one operation.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The options.
    pub options: &'a Options,
    /// The caller's `time()`, in unix seconds.
    pub time: i64,
}

impl<'a> Context<'a> {
    /// Returns a context at the time of this machine's clock.
    #[must_use]
    pub fn now(options: &'a Options) -> Self {
        Self { options, time: unix_time() }
    }

    /// The run table.
    #[must_use]
    pub const fn table(&self) -> &'a TableName {
        &self.options.table
    }

    /// A time in SQL: one placeholder, whose value is made by [`Context::at`].
    pub(in crate::ops) const fn placeholder(&self) -> &'static str {
        match self.options.clock {
            Clock::Caller => "?",
            Clock::Database => database_clock!("?"),
        }
    }

    /// The value of [`Context::placeholder`] for an absolute time of the caller: the time itself,
    /// or its distance to the caller's time, so that the database's clock decides.
    pub(in crate::ops) const fn at(&self, absolute: i64) -> i64 {
        match self.options.clock {
            Clock::Caller => absolute,
            Clock::Database => absolute.saturating_sub(self.time),
        }
    }

    /// An absolute time of the caller as a bound value.
    pub(in crate::ops) fn bound(&self, absolute: i64) -> Sql {
        Sql::with(self.placeholder(), [Value::from(self.at(absolute))])
    }

    /// Now, as a bound value.
    pub(in crate::ops) fn bound_now(&self) -> Sql {
        self.bound(self.time)
    }

    /// An absolute time of the caller by whichever clock is ahead, the caller's or the database's.
    /// What this bounds is not moved by one of them that is behind.
    pub(in crate::ops) fn bound_by_the_later_clock(&self, absolute: i64) -> Sql {
        let distance = absolute.saturating_sub(self.time);
        sql!("GREATEST({},UNIX_TIMESTAMP()+{})", bind(absolute), bind(distance))
    }

    /// An absolute time of the caller as text: an integer, or the database's clock moved by one.
    pub(in crate::ops) fn literal(&self, absolute: i64) -> Sql {
        let at = number(self.at(absolute));
        match self.options.clock {
            Clock::Caller => sql!("({})", at),
            Clock::Database => Sql::fill(database_clock!("({})"), &[at]),
        }
    }

    /// Now, as text.
    pub(in crate::ops) fn literal_now(&self) -> Sql {
        self.literal(self.time)
    }

    /// Returns whether the row holds exactly the lease that was written. Under the database's clock
    /// it is not known beforehand.
    pub(in crate::ops) const fn lease_is_exact(&self) -> bool {
        matches!(self.options.clock, Clock::Caller)
    }
}

/// Returns this machine's clock, in unix seconds.
#[must_use]
pub fn unix_time() -> i64 {
    let seconds =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    i64::try_from(seconds).unwrap_or(MAX_U32)
}

/// Returns this machine's clock, in unix milliseconds.
#[must_use]
pub fn unix_time_ms() -> i64 {
    let elapsed =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis());
    i64::try_from(elapsed).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_absolute_or_relative_to_the_caller() {
        let mut options = Options::default();
        let context = Context { options: &options, time: 1_000 };
        assert_eq!(context.bound(1_900), Sql::with("?", [Value::from(1_900)]));
        assert_eq!(context.literal(1_900).text(), "(1900)");
        options.clock = Clock::Database;
        let context = Context { options: &options, time: 1_000 };
        assert_eq!((context.at(1_900), context.at(0), context.at(1_000)), (900, -1_000, 0));
        assert!(context.literal(0).text().contains("+ (-1000)"));
        assert!(context.bound_now().text().contains("+ ?"));
    }
}
