//! What an operation needs to know on one connection, worked out at its first call there: that the table has the columns, and the text of
//! its statement. A heartbeat is then the binding of its values and one round trip.

use std::sync::Arc;

use super::schema::TableSchema;
use crate::config::options::{Clock, TableName};

/// The statement of one operation on one table.
pub(crate) struct CachedQuery {
    /// What the table has.
    pub(crate) facts: Arc<TableSchema>,
    /// The statement.
    pub(crate) sql: String,
}

/// The queries of one connection, by operation, table and clock.
#[derive(Default)]
pub(crate) struct QueryCache(Vec<(&'static str, TableName, Clock, Arc<CachedQuery>)>);

impl QueryCache {
    /// Returns the query of an operation.
    pub(crate) fn find(
        &self,
        operation: &'static str,
        table: &TableName,
        clock: Clock,
    ) -> Option<Arc<CachedQuery>> {
        self.0
            .iter()
            .find(|(name, of, by, _)| *name == operation && *by == clock && of == table)
            .map(|(.., query)| Arc::clone(query))
    }

    /// Keeps the query of an operation.
    pub(crate) fn keep(
        &mut self,
        operation: &'static str,
        table: &TableName,
        clock: Clock,
        query: &Arc<CachedQuery>,
    ) {
        self.0.push((operation, table.clone(), clock, Arc::clone(query)));
    }

    /// Forgets all queries: a table changed.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
