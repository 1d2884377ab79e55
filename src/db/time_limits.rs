//! Changes the time limits of an open connection.

use mysql_async::Params;

use super::session::Session;
use super::settings::limit_settings;
use crate::config::options::Timeouts;
use crate::error::Result;

impl Session {
    /// Changes the time limits, also those of an open connection.
    ///
    /// # Errors
    ///
    /// A connection or query error; the connection is discarded then, since its limits are unknown.
    pub(crate) async fn retime(&mut self, timeouts: Timeouts) -> Result<()> {
        self.timeouts = timeouts;
        let Some(live) = self.live.as_mut() else {
            return Ok(());
        };
        let limits = live.server.limits(timeouts.query);
        if live.limits == limits {
            return Ok(());
        }
        // The client's limit is set first: it applies to this statement too.
        live.limits = limits;
        let sql = format!("SET {}", limit_settings(limits));
        match self.execute(&sql, Params::Empty).await {
            Ok(_) => Ok(()),
            Err(error) => {
                self.discard();
                Err(error)
            }
        }
    }

    /// Shortens the waits for row locks to the shortest that the server knows. For reapers on
    /// servers that cannot skip locked rows.
    pub(crate) async fn shorten_lock_waits(&mut self) -> Result<()> {
        self.execute("SET SESSION innodb_lock_wait_timeout = 1", Params::Empty).await.map(drop)
    }

    /// Restores the waits for row locks after [`Session::shorten_lock_waits`].
    pub(crate) async fn restore_lock_waits(&mut self) -> Result<()> {
        let seconds = self.live().await?.limits.lock_wait_s;
        self.execute(&format!("SET SESSION innodb_lock_wait_timeout = {seconds}"), Params::Empty)
            .await
            .map(drop)
    }
}
