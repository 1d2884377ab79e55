//! The prepared statements of one connection, kept by their text.
//!
//! The driver keeps statements too, but reads every text for named parameters before it looks one
//! up, which costs as much as the execution itself. Its own cache is therefore switched off, and a
//! statement that leaves this cache is closed here.

use mysql_async::Statement;

/// The server limits prepared statements for all its clients together; a worker's loop needs a few.
const MOST: usize = 8;

/// Cached statements, the most recently used first.
#[derive(Default)]
pub(crate) struct StatementCache {
    kept: Vec<(Box<str>, Statement)>,
}

impl StatementCache {
    /// Returns the statement of this text.
    pub(crate) fn find(&mut self, sql: &str) -> Option<Statement> {
        let index = self.kept.iter().position(|(text, _)| **text == *sql)?;
        // In a worker's loop the statement is usually the first one already.
        if index > 0
            && let Some(until) = self.kept.get_mut(..=index)
        {
            until.rotate_right(1);
        }
        self.kept.first().map(|(_, statement)| statement.clone())
    }

    /// Caches a statement that was just prepared. Returns the statement that it replaces, which the
    /// caller closes.
    #[must_use = "the server keeps a statement until it is closed"]
    pub(crate) fn keep(&mut self, sql: &str, statement: Statement) -> Option<Statement> {
        self.kept.insert(0, (Box::from(sql), statement));
        if self.kept.len() > MOST { self.kept.pop().map(|(_, statement)| statement) } else { None }
    }
}
