//! The text of the statement of a hot operation, built at its first call on a connection. A
//! heartbeat is then the binding of its values and one round trip.

use std::sync::Arc;

use crate::config::options::{Clock, TableName};

/// The queries of one connection, by operation, table and clock.
#[derive(Default)]
pub(crate) struct QueryCache(Vec<(&'static str, TableName, Clock, Arc<str>)>);

impl QueryCache {
    /// Returns the query of an operation.
    pub(crate) fn find(
        &self,
        operation: &'static str,
        table: &TableName,
        clock: Clock,
    ) -> Option<Arc<str>> {
        self.0
            .iter()
            .find(|(name, of, by, _)| *name == operation && *by == clock && of == table)
            .map(|(.., query)| Arc::clone(query))
    }

    /// Stores the query of an operation.
    pub(crate) fn keep(
        &mut self,
        operation: &'static str,
        table: &TableName,
        clock: Clock,
        query: &Arc<str>,
    ) {
        self.0.push((operation, table.clone(), clock, Arc::clone(query)));
    }

    /// Discards all queries after a table has changed.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
