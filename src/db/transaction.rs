//! Transactions of a session.

use mysql_async::Params;

use super::session::Session;
use crate::error::Result;

impl Session {
    /// On a cluster, makes this connection's reads wait from now on until its node has applied what
    /// the other nodes had committed before. Otherwise a row that is read back on another node than
    /// the lost one may not show yet what the lost node has committed.
    pub(crate) async fn await_the_cluster(&mut self) -> Result<()> {
        let live = self.live().await?;
        if live.server.cluster && !live.awaits_the_cluster {
            self.execute("SET SESSION wsrep_sync_wait = 1", Params::Empty).await?;
            if let Some(live) = self.live.as_mut() {
                live.awaits_the_cluster = true;
            }
        }
        Ok(())
    }

    /// Opens the transaction in which rows and messages are read back. Inside a transaction, a
    /// proxy sends no plain read to a replica.
    pub(crate) async fn begin_reading_back(&mut self) -> Result<()> {
        self.await_the_cluster().await?;
        self.begin().await
    }

    /// Opens a transaction.
    pub(crate) async fn begin(&mut self) -> Result<()> {
        self.execute("START TRANSACTION", Params::Empty).await?;
        if let Some(live) = self.live.as_mut() {
            live.in_transaction = true;
        }
        Ok(())
    }

    /// Commits the open transaction.
    pub(crate) async fn commit(&mut self) -> Result<()> {
        let outcome = self.execute("COMMIT", Params::Empty).await;
        if let (Ok(_), Some(live)) = (&outcome, self.live.as_mut()) {
            live.in_transaction = false;
        }
        outcome.map(drop)
    }

    /// Rolls the open transaction back, if there is one. A connection on which the rollback fails
    /// is discarded.
    pub(crate) async fn rollback(&mut self) {
        if !self.in_transaction() {
            return;
        }
        if self.execute("ROLLBACK", Params::Empty).await.is_ok() {
            if let Some(live) = self.live.as_mut() {
                live.in_transaction = false;
            }
        } else {
            self.discard();
        }
    }
}
