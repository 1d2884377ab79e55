//! What an operation needs to know on one connection, worked out at its first call there: that the table has the columns, and the text of
//! its statement. A heartbeat is then the binding of its values and one round trip.

use std::sync::Arc;

use super::context::Context;
use super::error::Result;
use super::options::{Clock, TableName};
use super::session::Session;
use super::table::TableFacts;

/// The plan of one operation on one table.
pub(super) struct Plan {
    /// What the table has.
    pub(super) facts: Arc<TableFacts>,
    /// The statement.
    pub(super) sql: String,
}

/// The plans of one connection.
#[derive(Default)]
pub(super) struct Plans(Vec<(&'static str, TableName, Clock, Arc<Plan>)>);

impl Plans {
    fn find(&self, operation: &'static str, context: Context<'_>) -> Option<Arc<Plan>> {
        let is = |(name, table, clock, _): &&(&str, TableName, Clock, Arc<Plan>)| {
            *name == operation && *clock == context.options.clock && table == context.table()
        };
        self.0.iter().find(is).map(|(.., plan)| Arc::clone(plan))
    }

    /// Forgets all: a table changed.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Session {
    /// The plan of an operation, made by `make` where this connection has none. `make` checks the columns and writes the statement, which
    /// may depend on the table and the clock, and on nothing else.
    pub(super) async fn plan(
        &mut self,
        operation: &'static str,
        context: Context<'_>,
        make: impl FnOnce(&TableFacts) -> Result<String>,
    ) -> Result<Arc<Plan>> {
        if let Some(plan) = self.plans().and_then(|plans| plans.find(operation, context)) {
            return Ok(plan);
        }
        let facts = self.table(context.table()).await?;
        let sql = make(&facts)?;
        let plan = Arc::new(Plan { facts, sql });
        if let Some(plans) = self.plans() {
            plans.0.push((operation, context.table().clone(), context.options.clock, Arc::clone(&plan)));
        }
        Ok(plan)
    }
}
