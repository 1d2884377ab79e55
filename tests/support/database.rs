//! A fresh database for one test, with the two tables of `examples/schema.sql` or a variant of
//! them, and what a test does to runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use mysql_async::{Params, Value};

use super::client::Client;
use super::server::{Endpoint, Server, shared};

/// Every column of a run with its value as text; `None` is NULL.
pub type RunRow = BTreeMap<String, Option<Vec<u8>>>;

pub const RUNS: &str = "tx_nrllm_agentrun";
pub const MESSAGES: &str = "sys_messenger_messages";

/// How the run table differs from that of a usual installation.
#[derive(Clone)]
pub struct Shape {
    charset: String,
    collation: String,
    missing: Vec<String>,
    queued_at: bool,
    lease_key: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            charset: "utf8mb4".to_owned(),
            collation: "utf8mb4_unicode_ci".to_owned(),
            missing: Vec::new(),
            queued_at: false,
            lease_key: false,
        }
    }
}

impl Shape {
    /// Another collation; the character set is the first word of its name (`utf8mb4_bin`,
    /// `utf8mb3_general_ci`, `latin1_swedish_ci`).
    pub fn collation(mut self, collation: &str) -> Self {
        self.charset = collation.split('_').next().unwrap().to_owned();
        self.collation = collation.to_owned();
        self
    }

    /// With the column of later nr_llm releases.
    pub fn queued_at(mut self) -> Self {
        self.queued_at = true;
        self
    }

    /// Without a column, as in earlier releases.
    pub fn without(mut self, column: &str) -> Self {
        self.missing.push(column.to_owned());
        self
    }

    /// With the additional key (status, lease_expires).
    pub fn lease_key(mut self) -> Self {
        self.lease_key = true;
        self
    }

    fn statements(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut found = Vec::new();
        let schema = include_str!("../../examples/schema.sql");
        for line in schema.lines().filter(|line| !line.starts_with("--")) {
            let name = line.trim_start().split(' ').next().unwrap_or_default();
            if line.starts_with("    ") && self.missing.iter().any(|missing| missing == name) {
                found.push(name.to_owned());
                continue;
            }
            if name == "queued_at" && !self.queued_at {
                continue;
            }
            lines.push(line.to_owned());
            if name == "KEY" && line.contains("status_lookup") && self.lease_key {
                lines.push("    KEY nrllm_runtime_lease (status, lease_expires),".to_owned());
            }
        }
        assert_eq!(
            found.len(),
            self.missing.len(),
            "every column to leave out exists: {:?}",
            self.missing
        );
        let sql = lines.join("\n");
        // The first table is that of the runs.
        let sql = sql.replacen(
            "CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci",
            &format!("CHARSET={} COLLATE={}", self.charset, self.collation),
            1,
        );
        sql.split(';')
            .map(str::trim)
            .filter(|statement| !statement.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

/// A database of its own, dropped with this value.
pub struct Database {
    endpoint: Endpoint,
    name: String,
    client: Client,
}

impl Database {
    /// With the usual table, on the shared server.
    pub fn new() -> Self {
        Self::on(shared(), &Shape::default())
    }

    pub fn with(shape: &Shape) -> Self {
        Self::on(shared(), shape)
    }

    pub fn on(server: &Server, shape: &Shape) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("nrllm_test_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut client = server.client();
        client.run(
            "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 1",
        );
        client.run(&format!(
            "CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"
        ));
        client.run(&format!("USE {name}"));
        for statement in shape.statements() {
            client.run(&statement);
        }
        Self { endpoint: server.endpoint().clone(), name, client }
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The test's own connection, with this database as its default.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// One more connection, to act as another worker at the same time.
    pub fn connect(&self) -> Client {
        Client::connect(&self.endpoint, Some(&self.name))
    }

    /// Writes a run and returns its uid.
    pub fn insert(&mut self, run: &Run) -> i64 {
        let names: Vec<&str> = run.columns.keys().map(String::as_str).collect();
        let marks = vec!["?"; names.len()].join(", ");
        let sql = format!("INSERT INTO {RUNS} ({}) VALUES ({marks})", names.join(", "));
        self.client.exec(&sql, Params::Positional(run.columns.values().cloned().collect()));
        i64::try_from(self.client.last_insert_id()).unwrap()
    }

    /// Writes many runs in few statements, and returns their uids in order.
    pub fn insert_all(&mut self, runs: &[Run]) -> Vec<i64> {
        self.client.run("START TRANSACTION");
        let uids = runs.iter().map(|run| self.insert(run)).collect();
        self.client.run("COMMIT");
        uids
    }

    /// Every column of a run.
    pub fn row(&mut self, uid: i64) -> RunRow {
        self.find(uid).unwrap_or_else(|| panic!("run {uid} exists"))
    }

    pub fn find(&mut self, uid: i64) -> Option<RunRow> {
        self.client.maps(&format!("SELECT * FROM {RUNS} WHERE uid = {uid}")).pop()
    }

    /// Every run with every column, by uid.
    pub fn all(&mut self) -> Vec<RunRow> {
        self.client.maps(&format!("SELECT * FROM {RUNS} ORDER BY uid"))
    }

    /// One column of a run, as text.
    pub fn get(&mut self, uid: i64, column: &str) -> String {
        self.client.text(&format!("SELECT `{column}` FROM {RUNS} WHERE uid = {uid}"))
    }

    pub fn set(&mut self, uid: i64, column: &str, value: impl Into<Value>) {
        let params = Params::Positional(vec![value.into(), uid.into()]);
        self.client.exec(&format!("UPDATE {RUNS} SET `{column}` = ? WHERE uid = ?"), params);
    }

    /// The messages of the outbox, oldest first.
    pub fn messages(&mut self) -> Vec<RunRow> {
        self.client.maps(&format!("SELECT * FROM {MESSAGES} ORDER BY id"))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // The server may have been killed by the test; its folder goes with it then.
        let _ = self.client.try_run(&format!("DROP DATABASE {}", self.name));
    }
}

/// A row with some columns replaced: what a test expects of an operation. `changes` names every
/// column that may differ.
pub fn changed(before: &RunRow, changes: &[(&str, &str)]) -> RunRow {
    let mut after = before.clone();
    for (column, value) in changes {
        assert!(after.contains_key(*column), "the run has a column {column}");
        after.insert((*column).to_owned(), Some(value.as_bytes().to_vec()));
    }
    after
}

/// Compares every column and names those that differ.
#[track_caller]
pub fn assert_row(actual: &RunRow, expected: &RunRow, why: &str) {
    let show = |value: Option<&Option<Vec<u8>>>| match value {
        None => "no such column".to_owned(),
        Some(None) => "NULL".to_owned(),
        Some(Some(bytes)) => format!("{:?}", String::from_utf8_lossy(bytes)),
    };
    let mut names: Vec<&String> = actual.keys().chain(expected.keys()).collect();
    names.sort();
    names.dedup();
    let wrong: Vec<String> = names
        .into_iter()
        .filter(|name| actual.get(*name) != expected.get(*name))
        .map(|name| {
            format!("  {name} is {}, expected {}", show(actual.get(name)), show(expected.get(name)))
        })
        .collect();
    assert!(wrong.is_empty(), "{why}:\n{}", wrong.join("\n"));
}

/// A run to insert. Columns that are not set get the table's defaults, those every real run has get
/// plausible values.
#[derive(Clone)]
pub struct Run {
    columns: BTreeMap<String, Value>,
}

impl Run {
    fn new(status: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self { columns: BTreeMap::new() }
            .set("pid", 7)
            .set("uuid", format!("{number:08x}-cafe-4000-8000-{number:012x}"))
            .set("status", status)
            .set("configuration_uid", 3)
            .set("configuration_identifier", "assistant")
            .set("be_user", 5)
            .set("iterations", 4)
            .set("truncated", 1)
            .set("total_prompt_tokens", 1_000)
            .set("total_completion_tokens", 200)
            .set("total_tokens", 1_200)
            .set("estimated_cost", "0.012345")
            .set("suspended_state", "nrv1:suspended")
            .set("queued_request", "nrv1:request")
            .set("tstamp", 1_000)
            .set("crdate", 900)
    }

    /// Waiting in the queue with a stored request, never claimed.
    pub fn queued() -> Self {
        Self::new("queued")
    }

    /// Held by an owner until then.
    pub fn running(owner: &str, lease_expires: i64) -> Self {
        Self::new("running")
            .set("claimed_by", owner)
            .set("lease_expires", lease_expires)
            .set("started_at", 950)
    }

    /// In any other status, without an owner.
    pub fn in_status(status: &str) -> Self {
        Self::new(status)
    }

    pub fn uuid(self, uuid: &str) -> Self {
        self.set("uuid", uuid)
    }

    pub fn request(self, payload: &str) -> Self {
        self.set("queued_request", payload)
    }

    /// Without a stored request, so that no worker could execute it again.
    pub fn without_request(self) -> Self {
        self.set("queued_request", Value::NULL)
    }

    pub fn requeued(self, times: u64) -> Self {
        self.set("requeue_count", times)
    }

    pub fn write_fence(self, effect: &str) -> Self {
        self.set("pending_effect", effect)
    }

    pub fn crdate(self, at: i64) -> Self {
        self.set("crdate", at)
    }

    pub fn tstamp(self, at: i64) -> Self {
        self.set("tstamp", at)
    }

    pub fn owner(self, owner: &str) -> Self {
        self.set("claimed_by", owner)
    }

    pub fn set(mut self, column: &str, value: impl Into<Value>) -> Self {
        self.columns.insert(column.to_owned(), value.into());
        self
    }

    /// Leaves a column to the table's default; needed where a [`Shape`] lacks it.
    pub fn unset(mut self, column: &str) -> Self {
        self.columns.remove(column);
        self
    }
}
