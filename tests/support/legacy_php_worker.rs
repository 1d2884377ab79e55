//! A worker like nr_llm's PHP code: it sends the protocol's statements for one run at a time over a
//! plain connection, and decides by the affected-rows count where PHP does.

use mysql_async::Error;

use super::client::{Client, Done};
use super::database::{Database, RUNS};

pub struct LegacyPhpWorker {
    pub client: Client,
}

impl LegacyPhpWorker {
    pub fn of(database: &Database) -> Self {
        Self { client: database.connect() }
    }

    pub fn claim(&mut self, uid: i64, owner: &str, lease: i64, now: i64) -> Result<Done, Error> {
        let sql = format!(
            "UPDATE {RUNS} SET status = 'running', claimed_by = ?, lease_expires = ?, started_at = ?, tstamp = ? \
             WHERE uid = ? AND status = 'queued'"
        );
        self.client.try_exec(&sql, (owner, lease, now, now, uid))
    }

    pub fn renew(&mut self, uid: i64, owner: &str, lease: i64, now: i64) -> Result<Done, Error> {
        let sql = format!(
            "UPDATE {RUNS} SET lease_expires = ?, tstamp = ? WHERE uid = ? AND status = 'running' AND claimed_by = ?"
        );
        self.client.try_exec(&sql, (lease, now, uid, owner))
    }

    /// The stale runs, oldest lease first, with their payloads: as PHP lists them.
    pub fn stale(&mut self, now: i64, limit: usize) -> Result<Vec<i64>, Error> {
        let sql = format!(
            "SELECT uid, queued_request FROM {RUNS} WHERE status = 'running' AND lease_expires > 0 AND lease_expires < {now} \
             ORDER BY lease_expires LIMIT {limit}"
        );
        let rows = self.client.try_rows(&sql)?;
        Ok(rows
            .into_iter()
            .map(|row| String::from_utf8_lossy(row[0].as_deref().unwrap()).parse().unwrap())
            .collect())
    }

    pub fn requeue_stale(&mut self, uid: i64, now: i64) -> Result<Done, Error> {
        let sql = format!(
            "UPDATE {RUNS} SET status = 'queued', requeue_count = requeue_count + 1, claimed_by = '', lease_expires = 0, \
             pending_effect = '', tstamp = ? WHERE uid = ? AND status = 'running' AND lease_expires > 0 AND lease_expires < ?"
        );
        self.client.try_exec(&sql, (now, uid, now))
    }

    pub fn complete(&mut self, uid: i64, owner: &str, now: i64) -> Result<Done, Error> {
        let sql = format!(
            "UPDATE {RUNS} SET status = 'completed', suspended_state = '', queued_request = '', claimed_by = '', lease_expires = 0, \
             finished_at = ?, tstamp = ? WHERE uid = ? AND status = 'running' AND claimed_by = ?"
        );
        self.client.try_exec(&sql, (now, now, uid, owner))
    }

    /// Holds the row's lock until [`LegacyPhpWorker::unlock`].
    pub fn lock_row(&mut self, uid: i64) {
        self.client.run("START TRANSACTION");
        let rows = self.client.rows(&format!(
            "SELECT uid FROM {RUNS} FORCE INDEX (PRIMARY) WHERE uid = {uid} FOR UPDATE"
        ));
        assert_eq!(rows.len(), 1, "run {uid} exists");
    }

    pub fn lock_rows(&mut self, uids: &[i64]) {
        self.client.run("START TRANSACTION");
        for uid in uids {
            self.client.rows(&format!(
                "SELECT uid FROM {RUNS} FORCE INDEX (PRIMARY) WHERE uid = {uid} FOR UPDATE"
            ));
        }
    }

    pub fn unlock(&mut self) {
        self.client.run("ROLLBACK");
    }
}
