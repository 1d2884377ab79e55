//! One session with the server: its settings, its connection, and what is cached about that
//! connection's server and tables.
//!
//! Every statement of the product goes through [`Session::execute`] or [`Session::query`], which
//! bound it in time and decide whether the connection may be used again. A connection whose
//! statement timed out is never used again: its late reply would be read as the reply to the next
//! statement.

use std::sync::Arc;
use std::time::Duration;

use super::connection::Connection;
use super::deadline::StatementDeadline;
use super::dns::{Resolver, plain_thread};
use super::query_cache::QueryCache;
use super::schema::TableSchema;
use super::server::{Limits, Locking, ServerCapabilities};
use super::socket_wait::Socket;
use super::statement_cache::StatementCache;
use crate::config::connection::ConnectionSettings;
use crate::config::options::{TableName, Timeouts};
use crate::error::{Error, Result};

/// A session has at most one connection, opened when it is first needed, and the settings to open
/// it again.
pub struct Session {
    pub(super) settings: Arc<ConnectionSettings>,
    pub(super) timeouts: Timeouts,
    pub(super) resolver: Arc<Resolver>,
    /// Whether its runtime has no other work.
    pub(super) alone: bool,
    /// Whether something else is awaited beside a statement, so that it must not block the thread.
    pub(super) watched: bool,
    /// Whether the driver's TLS has refused the server's certificate, which a relay accepts.
    pub(super) through_relay: bool,
    pub(super) live: Option<Live>,
    /// Counts the connections that were opened.
    pub(super) generation: u64,
}

/// An open connection and what is cached about its server.
pub(super) struct Live {
    pub(super) conn: Connection,
    pub(super) deadline: StatementDeadline,
    /// Where replies are waited for on the socket: that socket.
    pub(super) socket: Option<Socket>,
    pub(super) server: ServerCapabilities,
    pub(super) limits: Limits,
    pub(super) tables: Vec<(TableName, Arc<TableSchema>)>,
    pub(super) queries: QueryCache,
    pub(super) statements: StatementCache,
    /// Pairs of run and message tables that were verified to support one transaction.
    pub(super) outboxes: Vec<(TableName, TableName)>,
    /// Whether a transaction is open.
    pub(super) in_transaction: bool,
    /// Whether its reads wait until the node has applied what other nodes of the cluster have
    /// committed.
    pub(super) awaits_the_cluster: bool,
}

impl Session {
    /// Creates a session that connects when it is first used.
    #[must_use]
    pub fn new(settings: Arc<ConnectionSettings>, timeouts: Timeouts) -> Self {
        Self {
            settings,
            timeouts,
            resolver: Resolver::new(plain_thread),
            alone: false,
            watched: false,
            through_relay: false,
            live: None,
            generation: 0,
        }
    }

    /// Lets the session resolve names through a resolver that it shares with other sessions.
    #[must_use]
    pub fn with_resolver(mut self, resolver: Arc<Resolver>) -> Self {
        self.resolver = resolver;
        self
    }

    /// Declares that the session's runtime has no other work while a statement is in progress, so
    /// that waiting may block the thread.
    #[must_use]
    pub const fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// Sets whether something else is awaited beside the statements that follow. They do not block
    /// the thread then, whatever [`Session::alone`] allows.
    pub(crate) const fn watch(&mut self, watched: bool) {
        self.watched = watched;
    }

    /// Returns the settings.
    #[must_use]
    pub fn settings(&self) -> &ConnectionSettings {
        &self.settings
    }

    /// Returns the time limits.
    #[must_use]
    pub const fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// Returns the number of connections opened so far.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns whether a connection is open.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.live.is_some()
    }

    /// Returns the server's capabilities, and connects if necessary.
    ///
    /// # Errors
    ///
    /// A connection error.
    pub async fn server(&mut self) -> Result<ServerCapabilities> {
        Ok(self.live().await?.server.clone())
    }

    /// Opens the connection if none is open.
    pub(crate) async fn connect(&mut self) -> Result<()> {
        self.live().await.map(drop)
    }

    /// Returns how rows are locked on this server.
    pub(crate) async fn locking(&mut self) -> Result<Locking> {
        Ok(self.live().await?.server.locking)
    }

    /// Falls back to the next way of locking that the server may know. Returns false when there is
    /// none.
    pub(crate) fn degrade_locking(&mut self) -> bool {
        let Some(live) = self.live.as_mut() else {
            return false;
        };
        match live.server.locking.fallback() {
            Some(next) => {
                live.server.locking = next;
                true
            }
            None => false,
        }
    }

    /// Returns the cached schema of a table on the open connection.
    pub(super) fn known_table(&self, table: &TableName) -> Option<Arc<TableSchema>> {
        let live = self.live.as_ref()?;
        live.tables.iter().find(|(name, _)| name == table).map(|(_, schema)| Arc::clone(schema))
    }

    /// Caches the schema of a table for the open connection.
    pub(super) fn remember_table(&mut self, table: &TableName, schema: &Arc<TableSchema>) {
        if let Some(live) = self.live.as_mut() {
            live.tables.push((table.clone(), Arc::clone(schema)));
        }
    }

    /// Discards the cached schema of a table.
    pub(super) fn forget_table(&mut self, table: &TableName) {
        if let Some(live) = self.live.as_mut() {
            live.tables.retain(|(name, _)| name != table);
        }
    }

    /// Discards the cached schemas of all tables after one of them has changed.
    pub(super) fn forget_tables(&mut self) {
        if let Some(live) = self.live.as_mut() {
            live.tables.clear();
            live.queries.clear();
            live.outboxes.clear();
        }
    }

    /// Returns the cached queries of the open connection.
    pub(crate) fn queries(&mut self) -> Option<&mut QueryCache> {
        self.live.as_mut().map(|live| &mut live.queries)
    }

    /// Returns whether this message table was verified, on this connection, to take part in the run
    /// table's transactions.
    pub(crate) fn knows_outbox(&self, runs: &TableName, messages: &TableName) -> bool {
        self.live
            .as_ref()
            .is_some_and(|live| live.outboxes.iter().any(|(a, b)| a == runs && b == messages))
    }

    /// Stores that a message table can take part in the run table's transactions.
    pub(crate) fn remember_outbox(&mut self, runs: &TableName, messages: &TableName) {
        if let Some(live) = self.live.as_mut() {
            live.outboxes.push((runs.clone(), messages.clone()));
        }
    }

    /// Returns whether a transaction is open.
    pub(super) fn in_transaction(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.in_transaction)
    }

    /// Closes the connection at once, without the protocol's quit packet, and also in the middle of
    /// a reply. When this returns, the server has lost the connection, even where forked children
    /// hold copies of its socket. The next statement opens a new one.
    pub fn discard(&mut self) {
        self.live = None;
    }

    /// Closes the connection in an orderly way, which takes at most `limit`.
    pub async fn close(&mut self, limit: Duration) {
        if let Some(live) = self.live.take() {
            live.conn.close(limit).await;
        }
    }

    /// Returns the connection, and opens it if there is none.
    pub(super) async fn live(&mut self) -> Result<&mut Live> {
        if self.live.is_none() {
            // Boxed, like everything that happens once per connection: the future of a heartbeat is
            // moved, and stays small.
            let live = Box::pin(self.open()).await?;
            self.generation += 1;
            self.live = Some(live);
        }
        self.live.as_mut().ok_or_else(|| Error::connection("the connection was closed"))
    }
}
