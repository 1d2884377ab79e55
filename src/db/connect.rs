//! Opens a connection: the driver's options, the queries about the server, and the session's own
//! settings.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{OptsBuilder, Row, SslOpts};
use tokio::net::TcpStream;

use super::connection::{Connection, PANICKED};
use super::deadline::StatementDeadline;
use super::execute::{Failure, bounded, words};
use super::query_cache::QueryCache;
use super::server::{BinaryLog, Limits, ServerCapabilities};
use super::session::{Live, Session};
use super::settings::{ROW_IMAGE, session_settings};
use super::socket_wait::Socket;
use super::statement_cache::StatementCache;
use super::tls::{self, TlsFiles};
use super::tls_relay::{AVAILABLE, KEEPALIVE, Relay};
use crate::config::connection::Endpoint;
use crate::error::{Error, Kind, Result, code, kind_of_io, server_error};

/// The longest password that a key of 2048 bits can encrypt, with its padding and the NUL at the
/// end.
const LONGEST_RSA: usize = 213;

impl Session {
    pub(super) async fn open(&mut self) -> Result<Live> {
        let started = Instant::now();
        let addresses = self.addresses().await?;
        let tls = self.settings.tls.as_ref().map(TlsFiles::read).transpose()?;
        let opts = self.connect_options(&addresses, tls.as_ref())?;
        let rest =
            self.timeouts.connect.saturating_sub(started.elapsed()).max(Duration::from_millis(1));
        let endpoint = &self.settings.endpoint;
        let through_relay = &mut self.through_relay;
        let outcome = bounded(rest, async {
            let mut conn = opened(endpoint, &addresses, tls.as_ref(), through_relay, opts).await?;
            let variables = set_up(&mut conn, Limits::of(self.timeouts.query, true)).await?;
            if is_in_transaction(&conn) {
                // `init_connect` has opened it.
                conn.query_drop("ROLLBACK").await?;
            }
            let server = ServerCapabilities::from_variables(&variables);
            if matches!(server.binary_log, BinaryLog::Rows { full: true, may_shrink: true }) {
                match conn.query_drop(ROW_IMAGE).await {
                    // Without it the statements cost more and have the same effect.
                    Ok(()) | Err(mysql_async::Error::Server(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            let limits = server.limits(self.timeouts.query);
            let over_socket = matches!(self.settings.endpoint, Endpoint::Socket(_));
            let socket = conn.descriptor().filter(|_| over_socket && self.alone);
            Ok(Live {
                conn,
                deadline: StatementDeadline::new(),
                socket: socket.and_then(Socket::new),
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
            Failure::Driver(mysql_async::Error::Other(why))
                if why.to_string() == PANICKED && self.password_is_too_long() =>
            {
                Error::configuration(format!(
                    "a password of more than {LONGEST_RSA} bytes cannot be sent to {endpoint} without TLS; use TLS, the unix socket, or a \
                     shorter password"
                ))
            }
            Failure::Driver(error) => connect_error(endpoint, error),
        })
    }

    /// Returns whether the password is longer than the server's RSA key can encrypt. The password
    /// is sent encrypted by that key over TCP without TLS, where the server has not cached it yet.
    fn password_is_too_long(&self) -> bool {
        matches!(self.settings.endpoint, Endpoint::Tcp { .. })
            && self.settings.tls.is_none()
            && self.settings.password().len() > LONGEST_RSA
    }

    /// Returns the server's addresses; none for a unix socket.
    async fn addresses(&self) -> Result<Vec<SocketAddr>> {
        let Endpoint::Tcp { host, port } = &self.settings.endpoint else {
            return Ok(Vec::new());
        };
        let addresses = match self.settings.endpoint.literal_address() {
            Some(address) => vec![address],
            None => self.resolver.resolve(host, self.timeouts.connect).await?,
        };
        Ok(addresses.into_iter().map(|address| SocketAddr::new(address, *port)).collect())
    }

    fn connect_options(
        &self,
        addresses: &[SocketAddr],
        tls: Option<&TlsFiles>,
    ) -> Result<OptsBuilder> {
        let settings = &self.settings;
        let mut opts = OptsBuilder::default()
            .user(Some(settings.user.as_str()))
            .pass(Some(settings.password()))
            .db_name(Some(settings.dbname.as_str()).filter(|name| !name.is_empty()))
            .prefer_socket(false)
            .tcp_nodelay(true)
            .tcp_keepalive(Some(KEEPALIVE))
            // Without it the driver queries the server at every connect; statements and rows are
            // small here.
            .max_allowed_packet(Some(16 * 1024 * 1024))
            .wait_timeout(Some(28_800))
            // `StatementCache` keeps them.
            .stmt_cache_size(0);
        match &settings.endpoint {
            Endpoint::Socket(path) => {
                let path = path.to_str().ok_or_else(|| {
                    Error::configuration("connection setting unix_socket must be UTF-8")
                })?;
                opts = opts.socket(Some(path));
            }
            Endpoint::Tcp { host, port } => {
                opts = opts
                    .ip_or_hostname(host.as_str())
                    .tcp_port(*port)
                    .resolved_ips(Some(addresses.iter().map(SocketAddr::ip).collect::<Vec<_>>()));
            }
        }
        Ok(opts.ssl_opts(tls.map(TlsFiles::driver_options)))
    }
}

/// Opens the connection: with the driver's TLS, or through a relay where that has refused a
/// certificate which the settings allow.
async fn opened(
    endpoint: &Endpoint,
    addresses: &[SocketAddr],
    tls: Option<&TlsFiles>,
    through_relay: &mut bool,
    opts: OptsBuilder,
) -> mysql_async::Result<Connection> {
    let (Endpoint::Tcp { host, .. }, Some(tls)) = (endpoint, tls) else {
        return Connection::open(opts).await;
    };
    if !*through_relay {
        match Connection::open(opts.clone()).await {
            Err(error) if AVAILABLE && tls.may_allow(&error) => {}
            outcome => return outcome,
        }
    }
    let stream = TcpStream::connect(addresses).await?;
    let relay = Relay::start(stream, host, tls.configuration()?)?;
    let conn = Connection::open_through(relay, opts.ssl_opts(None::<SslOpts>)).await?;
    *through_relay = true;
    Ok(conn)
}

/// Sends the session's settings, and the query of the server's variables in the same packet. The
/// settings come first: the server's defaults could change the reply to the query.
async fn set_up(
    conn: &mut Connection,
    limits: Limits,
) -> mysql_async::Result<Vec<(String, String)>> {
    let settings = session_settings(limits);
    let mut replies = conn.query_iter(format!("{settings}; {}", ServerCapabilities::QUERY)).await?;
    // The reply to the settings has no rows. What follows it may be an error already.
    let variables = match replies.collect::<Row>().await {
        Ok(_) => replies.collect_and_drop().await,
        Err(error) => Err(error),
    };
    match variables {
        Ok(variables) if !variables.is_empty() => Ok(variables),
        Ok(_) | Err(mysql_async::Error::Server(_)) => {
            conn.query(ServerCapabilities::SHOW_VARIABLES).await
        }
        Err(error) => Err(error),
    }
}

/// Returns whether the last reply says that a transaction is open.
fn is_in_transaction(conn: &Connection) -> bool {
    conn.last_ok_packet().is_some_and(|ok| {
        ok.status_flags().contains(mysql_async::consts::StatusFlags::SERVER_STATUS_IN_TRANS)
    })
}

fn connect_error(endpoint: &Endpoint, error: mysql_async::Error) -> Error {
    match error {
        mysql_async::Error::Server(ref server) => {
            let number = server.code;
            if number == code::BAD_DB {
                return server_error(number, &server.message).0;
            }
            let remedy = match number {
                code::ACCESS_DENIED | code::ACCESS_DENIED_NO_PASSWORD | code::DBACCESS_DENIED => {
                    "; check user and password in the connection, and the account's privileges"
                }
                code::CON_COUNT | code::TOO_MANY_USER_CONNECTIONS | code::USER_LIMIT_REACHED => {
                    "; the server has no connection left"
                }
                _ => "",
            };
            Error::connection(format!(
                "{endpoint} refused the connection: {}{remedy}",
                server.message
            ))
            .with_code(number)
        }
        mysql_async::Error::Io(mysql_async::IoError::Io(ref io)) => Error::new(
            kind_of_io(io),
            format!("cannot connect to {endpoint}: {io}{}", remedy_of_io(io)),
        )
        .with_source(error),
        other => {
            let words = words(&other);
            let remedy = tls::remedy(&words);
            Error::connection(format!("cannot connect to {endpoint}: {words}{remedy}"))
                .with_source(other)
        }
    }
}

/// Returns the remedy for an operating system's error.
fn remedy_of_io(error: &std::io::Error) -> &'static str {
    match kind_of_io(error) {
        Kind::Resource => "; raise the process's limit of open files, or find what keeps them open",
        // The TLS library reports its errors as those of the socket.
        _ => tls::remedy(&error.to_string()),
    }
}
