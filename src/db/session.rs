//! One session with the server: connecting, time limits, settings of its own, throwing a connection away, reconnecting.
//!
//! Every statement of the product goes through [`Session::execute`] or [`Session::query`], which bound it in time and decide
//! whether the connection may be used again. A connection whose statement timed out is never used again: its late reply would
//! be taken for the answer to the next statement.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mysql_async::prelude::{Protocol, Queryable};
use mysql_async::{
    ClientIdentity, Conn, DriverError, OptsBuilder, Params, QueryResult, Row, SslOpts, Statement,
    Value,
};

use super::deadline::StatementDeadline;
use super::dns::{Resolver, plain_thread};
use super::query_cache::QueryCache;
use super::schema::TableSchema;
use super::server::{Limits, Locking, ServerCapabilities};
use super::socket_wait::Waiting;
use super::statement_cache::StatementCache;
use crate::config::connection::{ConnectionSettings, Endpoint};
use crate::config::options::{TableName, Timeouts};
use crate::error::{Error, Fate, Result, server_error};

/// One connection at most, opened when it is first needed, with the settings to open it again.
pub struct Session {
    settings: Arc<ConnectionSettings>,
    timeouts: Timeouts,
    resolver: Arc<Resolver>,
    /// Is this all that its runtime does?
    alone: bool,
    live: Option<Live>,
    /// Counts the connections that were opened.
    generation: u64,
}

/// An open connection and what is known about its server.
struct Live {
    conn: Conn,
    alarm: StatementDeadline,
    waiting: Waiting,
    server: ServerCapabilities,
    limits: Limits,
    tables: Vec<(TableName, Arc<TableSchema>)>,
    queries: QueryCache,
    statements: StatementCache,
    /// Pairs of run and message tables that were found fit for one transaction.
    outboxes: Vec<(TableName, TableName)>,
    /// Is a transaction open?
    in_transaction: bool,
    /// Do its reads wait for what other nodes of the cluster have committed?
    awaits_the_cluster: bool,
}

/// The reply to a statement that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// How many rows matched, where the reply's text says so. Never the affected-rows count, which servers and proxies
    /// count in two ways.
    pub matched: Option<u64>,
    /// The first id that an insert was given by the server; 0 where there is none.
    pub insert_id: u64,
}

impl Session {
    /// A session that connects when it is first used.
    #[must_use]
    pub fn new(settings: Arc<ConnectionSettings>, timeouts: Timeouts) -> Self {
        Self {
            settings,
            timeouts,
            resolver: Resolver::new(plain_thread),
            alone: false,
            live: None,
            generation: 0,
        }
    }

    /// Lets the session look names up through a resolver that it shares with others.
    #[must_use]
    pub fn with_resolver(mut self, resolver: Arc<Resolver>) -> Self {
        self.resolver = resolver;
        self
    }

    /// Tells the session that its runtime does nothing else while a statement is under way: it may then block the thread.
    #[must_use]
    pub const fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &ConnectionSettings {
        &self.settings
    }

    /// The time limits.
    #[must_use]
    pub const fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// Changes the time limits, also those of an open connection.
    ///
    /// # Errors
    ///
    /// A connection or query error; the connection is thrown away then, since nobody knows which limits it has.
    pub(crate) async fn retime(&mut self, timeouts: Timeouts) -> Result<()> {
        self.timeouts = timeouts;
        let Some(live) = self.live.as_mut() else {
            return Ok(());
        };
        let limits = live.server.limits(timeouts.query);
        if live.limits == limits {
            return Ok(());
        }
        // The client's limit first: this statement is bounded by it too.
        live.limits = limits;
        let sql = format!("SET {}", limit_settings(&live.server, limits));
        match self.execute(&sql, Params::Empty).await {
            Ok(_) => Ok(()),
            Err(error) => {
                self.discard();
                Err(error)
            }
        }
    }

    /// How many connections were opened so far.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Is there a connection?
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.live.is_some()
    }

    /// The server's facts; connects if need be.
    ///
    /// # Errors
    ///
    /// A connection error.
    pub async fn server(&mut self) -> Result<ServerCapabilities> {
        Ok(self.live().await?.server.clone())
    }

    /// How rows are locked on this server.
    pub(crate) async fn locking(&mut self) -> Result<Locking> {
        Ok(self.live().await?.server.locking)
    }

    /// The server did not understand the clause: use the next best on this connection. False when there is none.
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

    /// What the table can do, asked once a connection and again after the errors 1054 and 1146.
    ///
    /// # Errors
    ///
    /// A connection error, or a configuration error when the table does not exist.
    pub async fn table(&mut self, table: &TableName) -> Result<Arc<TableSchema>> {
        if let Some(facts) = self.known_table(table) {
            return Ok(facts);
        }
        let facts = Arc::new(Box::pin(TableSchema::read(self, table)).await?);
        if let Some(live) = self.live.as_mut() {
            live.tables.push((table.clone(), Arc::clone(&facts)));
        }
        Ok(facts)
    }

    fn known_table(&self, table: &TableName) -> Option<Arc<TableSchema>> {
        let live = self.live.as_ref()?;
        live.tables.iter().find(|(name, _)| name == table).map(|(_, facts)| Arc::clone(facts))
    }

    /// The queries of the open connection.
    pub(crate) fn queries(&mut self) -> Option<&mut QueryCache> {
        self.live.as_mut().map(|live| &mut live.queries)
    }

    /// Was this message table found fit for the run table's transactions, on this connection?
    pub(crate) fn knows_outbox(&self, runs: &TableName, messages: &TableName) -> bool {
        self.live
            .as_ref()
            .is_some_and(|live| live.outboxes.iter().any(|(a, b)| a == runs && b == messages))
    }

    /// Remembers that it was.
    pub(crate) fn remember_outbox(&mut self, runs: &TableName, messages: &TableName) {
        if let Some(live) = self.live.as_mut() {
            live.outboxes.push((runs.clone(), messages.clone()));
        }
    }

    /// Runs a statement that returns no rows. Outside a transaction, one that meets a deadlock is tried again (rule 9).
    ///
    /// # Errors
    ///
    /// A connection or query error.
    pub async fn execute(&mut self, sql: &str, params: Params) -> Result<Reply> {
        self.execute_with(sql, || params.clone()).await
    }

    /// As [`Session::execute`], with parameters that are made anew for every attempt instead of copied for a second one that hardly ever
    /// comes.
    pub(crate) async fn execute_with(
        &mut self,
        sql: &str,
        params: impl Fn() -> Params,
    ) -> Result<Reply> {
        let mut attempt = 1;
        loop {
            match self.execute_once(sql, params()).await {
                Err(error) if self.may_repeat(&error, attempt) => pause(attempt).await,
                outcome => return outcome,
            }
            attempt += 1;
        }
    }

    async fn execute_once(&mut self, sql: &str, params: Params) -> Result<Reply> {
        let Live { conn, alarm, waiting, statements, limits, .. } = self.live().await?;
        let socket = waiting.socket(size(sql, &params));
        let work = async {
            // Prepared first, so that between `before` and the reply there is one OK packet: that of this execution.
            match params {
                Params::Empty => {
                    let before = address(text_of_reply(conn));
                    conn.query_drop(sql).await?;
                    Ok(before)
                }
                params => {
                    let statement = prepared(conn, statements, sql).await?;
                    let before = address(text_of_reply(conn));
                    conn.exec_iter(statement, params).await?.drop_result().await?;
                    Ok(before)
                }
            }
        };
        let done = {
            // In its place: a future that is moved is copied.
            let work = pin!(work);
            alarm.bounded(limits.client, socket, work).await
        };
        match outcome(done) {
            Ok(before) => {
                let text = text_of_reply(conn);
                // The driver passes over an OK packet that it cannot read, and still shows the one before. A new text lies
                // elsewhere in memory, since the driver makes it before it drops the old one.
                if text.is_some() && address(text) == before {
                    return Err(self.failed(unreadable()));
                }
                Ok(Reply {
                    matched: text.and_then(first_integer),
                    insert_id: conn.last_insert_id().unwrap_or(0),
                })
            }
            Err(failure) => Err(self.failed(failure)),
        }
    }

    /// Runs a statement and collects its rows. Outside a transaction, one that meets a deadlock is tried again (rule 9).
    ///
    /// # Errors
    ///
    /// A connection or query error.
    pub async fn query(&mut self, sql: &str, params: Params) -> Result<Vec<Row>> {
        let mut attempt = 1;
        loop {
            match self.query_once(sql, params.clone()).await {
                Err(error) if self.may_repeat(&error, attempt) => pause(attempt).await,
                outcome => return outcome,
            }
            attempt += 1;
        }
    }

    /// Was the statement refused for a reason that is gone when it is tried again? Not inside a transaction, which the server
    /// has rolled back, and not after a lock wait: that has taken its time.
    fn may_repeat(&self, error: &Error, attempt: u32) -> bool {
        let in_transaction = self.live.as_ref().is_some_and(|live| live.in_transaction);
        error.is_transient() && !error.waited() && !in_transaction && attempt < ATTEMPTS
    }

    async fn query_once(&mut self, sql: &str, params: Params) -> Result<Vec<Row>> {
        let Live { conn, alarm, waiting, statements, limits, .. } = self.live().await?;
        let socket = waiting.socket(size(sql, &params));
        let work = async {
            match params {
                Params::Empty => rows_of(conn.query_iter(sql).await?).await,
                params => {
                    let statement = prepared(conn, statements, sql).await?;
                    rows_of(conn.exec_iter(statement, params).await?).await
                }
            }
        };
        let done = {
            // In its place: a future that is moved is copied.
            let work = pin!(work);
            alarm.bounded(limits.client, socket, work).await
        };
        match outcome(done) {
            Ok(Some(rows)) => Ok(rows),
            // Without this, no rows would be read as "there is no such run".
            Ok(None) => Err(self.failed(unreadable())),
            Err(failure) => Err(self.failed(failure)),
        }
    }

    /// On a cluster, lets this connection's reads wait from now on until its node has applied what the others had committed before. Without,
    /// a row that is read back on another node than the lost one may not show yet what that one has committed.
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

    /// Opens the transaction in which rows and messages are read back: in one, so that whatever stands between sends no plain read to a replica.
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

    /// Rolls the open transaction back, if there is one; a connection on which that fails is thrown away.
    pub(crate) async fn rollback(&mut self) {
        let open = self.live.as_ref().is_some_and(|live| live.in_transaction);
        if !open {
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

    /// Lets row locks be waited for as shortly as the server can. For reapers on servers that cannot pass over locked rows.
    pub(crate) async fn shorten_lock_waits(&mut self) -> Result<()> {
        self.execute("SET SESSION innodb_lock_wait_timeout = 1", Params::Empty).await.map(drop)
    }

    /// Takes [`Session::shorten_lock_waits`] back.
    pub(crate) async fn restore_lock_waits(&mut self) -> Result<()> {
        let seconds = self.live().await?.limits.lock_wait_s;
        self.execute(&format!("SET SESSION innodb_lock_wait_timeout = {seconds}"), Params::Empty)
            .await
            .map(drop)
    }

    /// Throws the connection away; the next statement opens a new one.
    pub fn discard(&mut self) {
        self.live = None;
    }

    /// Takes leave of the server, waiting at most `limit`.
    pub async fn close(&mut self, limit: Duration) {
        if let Some(live) = self.live.take() {
            let _ = tokio::time::timeout(limit, live.conn.disconnect()).await;
        }
    }

    /// A connection, opened if there is none.
    async fn live(&mut self) -> Result<&mut Live> {
        if self.live.is_none() {
            // Boxed, as is what else happens once a connection: the future of a heartbeat is moved about, and stays small.
            let live = Box::pin(self.open()).await?;
            self.generation += 1;
            self.live = Some(live);
        }
        self.live.as_mut().ok_or_else(|| Error::connection("the connection was closed"))
    }

    async fn open(&self) -> Result<Live> {
        let started = Instant::now();
        let opts = self.connect_options().await?;
        let rest =
            self.timeouts.connect.saturating_sub(started.elapsed()).max(Duration::from_millis(1));
        let endpoint = &self.settings.endpoint;
        let outcome = bounded(rest, async {
            let mut conn = Conn::new(opts).await?;
            let variables: Vec<(String, String)> = conn
                .query(
                    "SHOW VARIABLES WHERE Variable_name IN ('version', 'log_bin', 'binlog_format', 'tx_isolation', \
                     'transaction_isolation', 'wsrep_on')",
                )
                .await?;
            let server = ServerCapabilities::from_variables(&variables);
            let limits = server.limits(self.timeouts.query);
            conn.query_drop(session_settings(&server, limits)).await?;
            Ok(Live {
                conn,
                alarm: StatementDeadline::new(),
                waiting: Waiting::new(matches!(self.settings.endpoint, Endpoint::Socket(_)), self.alone),
                server,
                limits,
                tables: Vec::new(),
                queries: QueryCache::default(),
                statements: StatementCache::default(),
                outboxes: Vec::new(),
                in_transaction: false,
                awaits_the_cluster: false,
            })
        })
        .await;
        outcome.map_err(|failure| match failure {
            Failure::TimedOut => Error::connection(format!(
                "cannot connect to {endpoint} within {} ms; check that the server runs and answers, or raise connectTimeoutMs",
                self.timeouts.connect.as_millis()
            )),
            Failure::Driver(error) => connect_error(endpoint, &error),
        })
    }

    async fn connect_options(&self) -> Result<OptsBuilder> {
        let settings = &self.settings;
        let mut opts = OptsBuilder::default()
            .user(Some(settings.user.as_str()))
            .pass(Some(settings.password()))
            .db_name(Some(settings.dbname.as_str()).filter(|name| !name.is_empty()))
            .prefer_socket(false)
            .tcp_nodelay(true)
            .tcp_keepalive(Some(Duration::from_secs(60)))
            // Asked for otherwise at every connect; statements and rows here are small.
            .max_allowed_packet(Some(16 * 1024 * 1024))
            .wait_timeout(Some(28_800))
            // They are kept in `StatementCache`.
            .stmt_cache_size(0);
        match &settings.endpoint {
            Endpoint::Socket(path) => {
                let path = path.to_str().ok_or_else(|| {
                    Error::configuration("connection setting unix_socket must be UTF-8")
                })?;
                opts = opts.socket(Some(path));
            }
            Endpoint::Tcp { host, port } => {
                let addresses = match settings.endpoint.literal_address() {
                    Some(address) => vec![address],
                    None => self.resolver.resolve(host, self.timeouts.connect).await?,
                };
                opts = opts
                    .ip_or_hostname(host.as_str())
                    .tcp_port(*port)
                    .resolved_ips(Some(addresses));
            }
        }
        if let Some(tls) = &settings.tls {
            let mut ssl =
                SslOpts::default().with_danger_accept_invalid_certs(tls.accept_any_certificate);
            if let Some(ca) = &tls.ca {
                ssl = ssl
                    .with_root_certs(vec![read_file("CA", ca)?.into()])
                    .with_disable_built_in_roots(true);
            } else if let Ok(bundle) = std::fs::read("/etc/ssl/certs/ca-certificates.crt") {
                ssl = ssl.with_root_certs(vec![bundle.into()]);
            }
            if let Some((cert, key)) = &tls.identity {
                let identity = ClientIdentity::new(
                    read_file("client certificate", cert)?.into(),
                    read_file("client key", key)?.into(),
                );
                ssl = ssl.with_client_identity(Some(identity));
            }
            opts = opts.ssl_opts(Some(ssl));
        }
        Ok(opts)
    }

    /// Turns a failure into an error and decides about the connection.
    fn failed(&mut self, failure: Failure) -> Error {
        match failure {
            Failure::TimedOut => {
                self.discard();
                Error::connection(format!(
                    "no reply from {} within {} ms; the connection was thrown away. Check the load of the server, or raise queryTimeoutMs",
                    self.settings.endpoint,
                    self.timeouts.query.as_millis()
                ))
                .with_fate(Fate::TimedOut)
            }
            Failure::Driver(mysql_async::Error::Server(error)) => {
                let (mapped, ends) = server_error(error.code, &error.message);
                if ends {
                    self.discard();
                } else if matches!(error.code, 1054 | 1146) {
                    // A table changed under the session: ask again what it has.
                    if let Some(live) = self.live.as_mut() {
                        live.tables.clear();
                        live.queries.clear();
                        live.outboxes.clear();
                    }
                }
                mapped
            }
            Failure::Driver(error) => {
                self.discard();
                Error::connection(format!(
                    "lost the connection to {}: {error}",
                    self.settings.endpoint
                ))
                .with_fate(Fate::Lost)
            }
        }
    }
}

/// How often a statement or transaction is tried that meets deadlocks.
pub(crate) const ATTEMPTS: u32 = 5;

/// Waits a random time before the next attempt, longer from attempt to attempt: up to 20 ms, then up to 40 ms, and so on.
pub(crate) async fn pause(attempt: u32) {
    let random = getrandom::u32().unwrap_or(0x8000_0000);
    let spread = 10_000_u64 << attempt.min(6);
    let micros = 500 + u64::from(random) * spread / 4_294_967_296;
    tokio::time::sleep(Duration::from_micros(micros)).await;
}

/// Why a bounded piece of work failed.
enum Failure {
    TimedOut,
    Driver(mysql_async::Error),
}

/// What the driver does not notice: the reply is none to the statement that was sent.
fn unreadable() -> Failure {
    Failure::Driver(mysql_async::Error::Driver(DriverError::UnexpectedPacket {
        payload: Vec::new(),
    }))
}

/// About how many bytes a statement is on the wire.
fn size(sql: &str, params: &Params) -> usize {
    let values = match params {
        Params::Positional(values) => values.as_slice(),
        _ => &[],
    };
    let bytes = |value: &Value| if let Value::Bytes(bytes) = value { bytes.len() + 16 } else { 16 };
    values.iter().fold(sql.len() + 64, |sum, value| sum + bytes(value))
}

/// The text of the last OK packet that the driver has read, if it has one.
fn text_of_reply(conn: &Conn) -> Option<&[u8]> {
    conn.last_ok_packet().and_then(|ok| ok.info_ref()).filter(|text| !text.is_empty())
}

/// Where a text lies in memory; 0 for none.
fn address(text: Option<&[u8]>) -> usize {
    text.map_or(0, |text| text.as_ptr().addr())
}

/// The prepared statement of a text, prepared if it is not kept.
async fn prepared(
    conn: &mut Conn,
    statements: &mut StatementCache,
    sql: &str,
) -> mysql_async::Result<Statement> {
    if let Some(statement) = statements.find(sql) {
        return Ok(statement);
    }
    let statement = conn.prep(sql).await?;
    if let Some(oldest) = statements.keep(sql, statement.clone()) {
        conn.close(oldest).await?;
    }
    Ok(statement)
}

/// The rows of a result; `None` when the reply is no result at all.
async fn rows_of<P: Protocol>(
    result: QueryResult<'_, '_, P>,
) -> mysql_async::Result<Option<Vec<Row>>> {
    if result.columns_ref().is_empty() {
        result.drop_result().await?;
        return Ok(None);
    }
    result.collect_and_drop().await.map(Some)
}

async fn bounded<T>(
    limit: Duration,
    work: impl Future<Output = mysql_async::Result<T>>,
) -> Result<T, Failure> {
    outcome(tokio::time::timeout(limit, work).await.ok())
}

/// What became of work whose time was bounded; `None`: the time was up.
fn outcome<T>(ended: Option<mysql_async::Result<T>>) -> Result<T, Failure> {
    match ended {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(Failure::Driver(error)),
        None => Err(Failure::TimedOut),
    }
}

/// The session's own settings, in one statement: those of the site (`initCommands`, the server's defaults) do not reach it.
fn session_settings(server: &ServerCapabilities, limits: Limits) -> String {
    format!(
        "SET NAMES utf8mb4, autocommit = 1, sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', {} = '{}', {}",
        server.isolation_variable,
        server.isolation(),
        limit_settings(server, limits),
    )
}

/// The server's own time limits, as assignments.
fn limit_settings(server: &ServerCapabilities, limits: Limits) -> String {
    let statement_limit = if server.mariadb {
        let ms = limits.statement.as_millis();
        format!("max_statement_time = {}.{:03}", ms / 1_000, ms % 1_000)
    } else {
        // Bounds SELECT only: there is nothing for the other statements but the limits of their locks.
        format!("max_execution_time = {}", limits.statement.as_millis())
    };
    format!(
        "innodb_lock_wait_timeout = {lock}, lock_wait_timeout = {lock}, {statement_limit}",
        lock = limits.lock_wait_s
    )
}

fn connect_error(endpoint: &Endpoint, error: &mysql_async::Error) -> Error {
    match error {
        mysql_async::Error::Server(server) => {
            let code = server.code;
            if code == 1049 {
                return server_error(code, &server.message).0;
            }
            let remedy = match code {
                1045 | 1698 | 1044 => {
                    "; check user and password in the connection, and the account's privileges"
                }
                1040 | 1203 | 1226 => "; the server has no connection left",
                _ => "",
            };
            Error::connection(format!(
                "{endpoint} refused the connection: {}{remedy}",
                server.message
            ))
            .with_code(code)
        }
        other => Error::connection(format!("cannot connect to {endpoint}: {other}")),
    }
}

fn read_file(what: &str, path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        Error::configuration(format!(
            "the TLS {what} file {} cannot be read: {error}",
            path.display()
        ))
    })
}

/// The first integer of the reply's text: the number of matched rows. The words around it are localised.
fn first_integer(info: &[u8]) -> Option<u64> {
    let start = info.iter().position(u8::is_ascii_digit)?;
    let digits = info.get(start..)?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    digits.get(..end)?.iter().try_fold(0_u64, |number, digit| {
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

/// Runs an operation that may be repeated: once more, on a new connection, when the connection is lost.
///
/// A time-out is not repeated: the time is up.
pub(crate) async fn idempotent<T>(
    session: &mut Session,
    mut operation: impl AsyncFnMut(&mut Session) -> Result<T>,
) -> Result<T> {
    match operation(session).await {
        Err(error) if error.fate == Fate::Lost => operation(session).await,
        outcome => outcome,
    }
}

/// Builds positional parameters.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        mysql_async::Params::Positional(vec![$(mysql_async::Value::from($value)),*])
    };
}
pub(crate) use params;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matched_rows_are_the_first_integer_in_any_language() {
        assert_eq!(first_integer(b"Rows matched: 1  Changed: 0  Warnings: 0"), Some(1));
        assert_eq!(
            first_integer(
                "Datens\u{e4}tze gefunden: 12  ge\u{e4}ndert: 3  Warnungen: 0".as_bytes()
            ),
            Some(12)
        );
        assert_eq!(first_integer(b""), None);
        assert_eq!(first_integer(b"no digits"), None);
        assert_eq!(first_integer(b"99999999999999999999999"), None);
    }
}
