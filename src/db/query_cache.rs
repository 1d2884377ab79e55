//! What an operation needs to know on one connection, worked out at its first call there: that the table has the columns, and the text of
//! its statement. A heartbeat is then the binding of its values and one round trip.

use std::sync::Arc;

use super::schema::TableSchema;
use super::session::Session;
use crate::config::options::{Clock, TableName};
use crate::error::Result;
use crate::ops::sql::Context;

/// The plan of one operation on one table.
pub(crate) struct CachedQuery {
    /// What the table has.
    pub(crate) facts: Arc<TableSchema>,
    /// The statement.
    pub(crate) sql: String,
}

/// The queries of one connection.
#[derive(Default)]
pub(crate) struct QueryCache(Vec<(&'static str, TableName, Clock, Arc<CachedQuery>)>);

impl QueryCache {
    fn find(&self, operation: &'static str, context: Context<'_>) -> Option<Arc<CachedQuery>> {
        let is = |(name, table, clock, _): &&(&str, TableName, Clock, Arc<CachedQuery>)| {
            *name == operation && *clock == context.options.clock && table == context.table()
        };
        self.0.iter().find(is).map(|(.., plan)| Arc::clone(plan))
    }

    /// Forgets all: a table changed.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Session {
    /// The plan of an operation, made by `make` where this connection has none. `make` checks the columns and writes the statement, which
    /// may depend on the table and the clock, and on nothing else.
    pub(crate) async fn plan(
        &mut self,
        operation: &'static str,
        context: Context<'_>,
        make: impl FnOnce(&TableSchema) -> Result<String>,
    ) -> Result<Arc<CachedQuery>> {
        if let Some(plan) = self.queries().and_then(|queries| queries.find(operation, context)) {
            return Ok(plan);
        }
        let facts = self.table(context.table()).await?;
        let sql = make(&facts)?;
        let plan = Arc::new(CachedQuery { facts, sql });
        if let Some(queries) = self.queries() {
            queries.0.push((
                operation,
                context.table().clone(),
                context.options.clock,
                Arc::clone(&plan),
            ));
        }
        Ok(plan)
    }
}
