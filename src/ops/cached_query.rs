//! The statement of a hot operation, worked out once per connection.

use std::sync::Arc;

use super::sql::Context;
use crate::db::Session;
use crate::db::query_cache::CachedQuery;
use crate::db::schema::TableSchema;
use crate::error::Result;

impl Session {
    /// Returns the query of an operation, made by `make` where this connection has none. `make` checks the columns and writes the statement,
    /// which may depend on the table and the clock, and on nothing else.
    pub(crate) async fn plan(
        &mut self,
        operation: &'static str,
        context: Context<'_>,
        make: impl FnOnce(&TableSchema) -> Result<String>,
    ) -> Result<Arc<CachedQuery>> {
        let (table, clock) = (context.table(), context.options.clock);
        let known = self.queries().and_then(|queries| queries.find(operation, table, clock));
        if let Some(query) = known {
            return Ok(query);
        }
        let facts = self.table(table).await?;
        let sql = make(&facts)?;
        let query = Arc::new(CachedQuery { facts, sql });
        if let Some(queries) = self.queries() {
            queries.keep(operation, table, clock, &query);
        }
        Ok(query)
    }
}
