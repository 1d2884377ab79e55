//! A plain, blocking connection for the tests: it reads rows, and acts as another worker.

use std::collections::BTreeMap;
use std::future::Future;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, OptsBuilder, Params, Row, Value};
use tokio::runtime::{Builder, Runtime};

use super::PATIENCE;
use super::server::Endpoint;

/// The values of a row as the server sent them in its text protocol; `None` is NULL.
pub type Fields = Vec<Option<Vec<u8>>>;

/// What the server said about a statement that returns no rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    pub affected: u64,
    /// As in `Rows matched: 1  Changed: 0  Warnings: 0`.
    pub info: String,
}

pub struct Client {
    // Declared before the runtime, so that it is dropped first.
    conn: Option<Conn>,
    runtime: Runtime,
}

impl Client {
    /// Connects over the socket where there is one, else over TCP.
    pub fn connect(endpoint: &Endpoint, database: Option<&str>) -> Self {
        Self::try_connect(endpoint, database)
            .unwrap_or_else(|error| panic!("the test's own connection: {error}"))
    }

    pub fn try_connect(endpoint: &Endpoint, database: Option<&str>) -> Result<Self, Error> {
        Self::open(
            options(endpoint, database)
                .socket(endpoint.socket.as_ref().map(|path| path.display().to_string())),
        )
    }

    /// Connects over TCP, for going through a proxy.
    pub fn connect_tcp(endpoint: &Endpoint, database: Option<&str>) -> Result<Self, Error> {
        Self::open(options(endpoint, database))
    }

    /// Connects over TCP with CLIENT_FOUND_ROWS, as some PHP installations do.
    pub fn connect_tcp_found_rows(
        endpoint: &Endpoint,
        database: Option<&str>,
    ) -> Result<Self, Error> {
        Self::open(options(endpoint, database).client_found_rows(true))
    }

    fn open(options: OptsBuilder) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let conn = bounded(&runtime, Conn::new(options))?;
        Ok(Self { conn: Some(conn), runtime })
    }

    fn parts(&mut self) -> (&Runtime, &mut Conn) {
        (&self.runtime, self.conn.as_mut().expect("the connection is open"))
    }

    /// Runs one statement in the text protocol.
    pub fn try_run(&mut self, sql: &str) -> Result<Done, Error> {
        let (runtime, conn) = self.parts();
        bounded(runtime, conn.query_drop(sql))?;
        Ok(Done { affected: conn.affected_rows(), info: conn.info().into_owned() })
    }

    pub fn run(&mut self, sql: &str) -> Done {
        self.try_run(sql).unwrap_or_else(|error| panic!("{error} in: {sql}"))
    }

    /// Runs one prepared statement.
    pub fn try_exec(&mut self, sql: &str, params: impl Into<Params> + Send) -> Result<Done, Error> {
        let (runtime, conn) = self.parts();
        bounded(runtime, conn.exec_drop(sql, params.into()))?;
        Ok(Done { affected: conn.affected_rows(), info: conn.info().into_owned() })
    }

    pub fn exec(&mut self, sql: &str, params: impl Into<Params> + Send) -> Done {
        self.try_exec(sql, params).unwrap_or_else(|error| panic!("{error} in: {sql}"))
    }

    pub fn last_insert_id(&mut self) -> u64 {
        self.conn.as_ref().and_then(Conn::last_insert_id).unwrap_or(0)
    }

    pub fn try_rows(&mut self, sql: &str) -> Result<Vec<Fields>, Error> {
        let (runtime, conn) = self.parts();
        let rows: Vec<Row> = bounded(runtime, conn.query(sql))?;
        Ok(rows.into_iter().map(|row| row.unwrap().into_iter().map(bytes).collect()).collect())
    }

    pub fn rows(&mut self, sql: &str) -> Vec<Fields> {
        self.try_rows(sql).unwrap_or_else(|error| panic!("{error} in: {sql}"))
    }

    /// Every row as a map from the column's name.
    pub fn maps(&mut self, sql: &str) -> Vec<BTreeMap<String, Option<Vec<u8>>>> {
        let (runtime, conn) = self.parts();
        let rows: Vec<Row> =
            bounded(runtime, conn.query(sql)).unwrap_or_else(|error| panic!("{error} in: {sql}"));
        rows.into_iter()
            .map(|row| {
                let names: Vec<String> =
                    row.columns_ref().iter().map(|column| column.name_str().into_owned()).collect();
                names.into_iter().zip(row.unwrap().into_iter().map(bytes)).collect()
            })
            .collect()
    }

    /// The one value of a query, as text.
    pub fn try_text(&mut self, sql: &str) -> Result<String, Error> {
        let rows = self.try_rows(sql)?;
        assert!(rows.len() == 1 && rows[0].len() == 1, "one value of {sql}");
        Ok(String::from_utf8_lossy(rows[0][0].as_deref().expect("a value that is not NULL"))
            .into_owned())
    }

    pub fn text(&mut self, sql: &str) -> String {
        self.try_text(sql).unwrap_or_else(|error| panic!("{error} in: {sql}"))
    }

    /// The one value of a query, as a number.
    pub fn number(&mut self, sql: &str) -> i64 {
        let text = self.text(sql);
        text.parse().unwrap_or_else(|_| panic!("a number from {sql}, not {text:?}"))
    }

    /// The id by which the server knows this connection.
    pub fn id(&mut self) -> u64 {
        u64::from(self.conn.as_ref().expect("the connection is open").id())
    }

    /// A counter of this connection alone (`SHOW SESSION STATUS`). The question itself counts as a
    /// statement.
    pub fn session_status(&mut self, name: &str) -> u64 {
        let rows = self.rows(&format!("SHOW SESSION STATUS LIKE '{name}'"));
        assert_eq!(rows.len(), 1, "the server knows the status variable {name}");
        String::from_utf8(rows[0][1].clone().unwrap()).unwrap().parse().unwrap()
    }

    /// Closes the connection with the quit packet, and waits. Dropping a client closes its socket
    /// without.
    pub fn close(mut self) {
        if let Some(conn) = self.conn.take() {
            let _ = bounded(&self.runtime, conn.disconnect());
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Outside a runtime the driver closes the socket at once, without the quit packet that no
        // task would send.
        drop(self.conn.take());
    }
}

/// True for a refusal by the server with this error number.
pub fn refused_with(error: &Error, code: u16) -> bool {
    matches!(error, Error::Server(server) if server.code == code)
}

fn options(endpoint: &Endpoint, database: Option<&str>) -> OptsBuilder {
    OptsBuilder::default()
        .ip_or_hostname(endpoint.host.clone())
        .tcp_port(endpoint.port)
        .user(Some(endpoint.user.clone()))
        .pass(Some(endpoint.password.clone()))
        .db_name(database.map(str::to_owned))
        .prefer_socket(false)
        .max_allowed_packet(Some(64 << 20))
        .wait_timeout(Some(28_800))
}

fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(bytes),
        other => panic!("the text protocol sends text, not {other:?}"),
    }
}

fn bounded<T>(runtime: &Runtime, work: impl Future<Output = T>) -> T {
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, work).await })
        .expect("the server answers the test's own connection")
}
