//! TLS that the driver does not do itself.
//!
//! The driver verifies certificates by its own rules and has no place for others. It connects to a
//! relay in this process instead, over a unix socket that turns other processes away. The relay
//! passes on the server's greeting, asks the server for TLS when the driver's credentials arrive,
//! verifies the certificate by the rules of [`super::tls`], and sends the credentials over TLS.
//! From then on it copies bytes. The driver regards a unix socket as safe for a password, which the
//! relay never sends without TLS.
//!
//! The relay is a task on the session's runtime. It progresses while the session waits for the
//! server, and ends with the connection.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, ready};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::socket::OwnSocket;

/// Whether a relay is possible: its unix socket has a name without a file, which Linux alone has.
pub(super) const AVAILABLE: bool = cfg!(target_os = "linux");

/// Time without traffic after which the system asks whether the server is still there.
pub(super) const KEEPALIVE: Duration = Duration::from_secs(60);

type Work = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

/// The relay of one connection. Dropping it closes its sockets at once.
pub(super) struct Relay {
    /// What the driver connects to.
    name: String,
    server: OwnSocket,
    /// Taken, and thereby dropped, by the owner: a task that is aborted drops its work only when
    /// its runtime runs again.
    work: Arc<Mutex<Option<Work>>>,
    task: JoinHandle<io::Result<()>>,
}

impl Relay {
    /// Starts a relay to the server behind `stream`, which presents a certificate for `host`.
    pub(super) fn start(stream: TcpStream, host: &str, tls: ClientConfig) -> io::Result<Self> {
        let host = ServerName::try_from(host.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        stream.set_nodelay(true)?;
        SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))?;
        let server = OwnSocket::of(&stream)?;
        let (listener, name) = listener()?;
        let tls = TlsConnector::from(Arc::new(tls));
        let work: Work = Box::pin(async move {
            let mut driver = accept(listener).await?;
            // A forked child closes its copy.
            let _registered = OwnSocket::of(&driver)?;
            let Some(mut server) = secured(&mut driver, stream, host, &tls).await? else {
                return Ok(());
            };
            authenticate(&mut driver, &mut server).await?;
            copy_bidirectional(&mut driver, &mut server).await.map(drop)
        });
        let work = Arc::new(Mutex::new(Some(work)));
        let shared = Arc::clone(&work);
        let task = tokio::spawn(std::future::poll_fn(move |context| {
            let mut work = lock(&shared);
            let Some(running) = work.as_mut() else {
                return Poll::Ready(Ok(()));
            };
            let done = ready!(running.as_mut().poll(context));
            *work = None;
            Poll::Ready(done)
        }));
        Ok(Self { name, server, work, task })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Waits until the connection has ended on both sides, and returns why it did, if that was an
    /// error.
    pub(super) async fn ended(&mut self) -> Option<io::Error> {
        (&mut self.task).await.ok()?.err()
    }

    /// Returns the error with which the relay has ended.
    pub(super) async fn error(mut self) -> Option<io::Error> {
        if self.task.is_finished() { self.ended().await } else { None }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.server.shut_down();
        *lock(&self.work) = None;
        self.task.abort();
    }
}

fn lock(work: &Mutex<Option<Work>>) -> MutexGuard<'_, Option<Work>> {
    // Work that has panicked is dropped, never polled: its task has ended.
    work.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the unix socket for the driver, under a random name that is not in the file system.
#[cfg(target_os = "linux")]
fn listener() -> io::Result<(UnixListener, String)> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener as Listener};

    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let name = format!("nrllm-runtime-{:032x}", u128::from_ne_bytes(random));
    let listener = Listener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    listener.set_nonblocking(true)?;
    Ok((UnixListener::from_std(listener)?, format!("\0{name}")))
}

#[cfg(not(target_os = "linux"))]
fn listener() -> io::Result<(UnixListener, String)> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Waits for the driver, which is part of this process. Others are turned away.
async fn accept(listener: UnixListener) -> io::Result<UnixStream> {
    loop {
        let (stream, _) = listener.accept().await?;
        let process = stream.peer_cred()?.pid();
        if process.and_then(|process| u32::try_from(process).ok()) == Some(std::process::id()) {
            return Ok(stream);
        }
    }
}

/// A packet of the protocol as it is sent: the length in three bytes, the number, the payload.
struct Packet(Vec<u8>);

impl Packet {
    const HEADER: usize = 4;
    /// No packet of an authentication is longer.
    const LONGEST: usize = 1 << 17;

    async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let mut header = [0; Self::HEADER];
        stream.read_exact(&mut header).await?;
        let [a, b, c, _] = header;
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        if length > Self::LONGEST {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a packet of the authentication is too long",
            ));
        }
        let mut packet = header.to_vec();
        packet.resize(Self::HEADER + length, 0);
        stream.read_exact(packet.get_mut(Self::HEADER..).unwrap_or_default()).await?;
        Ok(Self(packet))
    }

    fn payload(&self) -> &[u8] {
        self.0.get(Self::HEADER..).unwrap_or_default()
    }

    /// Changes the number: the server counts the request for TLS, which the driver does not know
    /// of.
    fn renumbered(mut self, by: i8) -> Self {
        if let Some(number) = self.0.get_mut(3) {
            *number = number.wrapping_add_signed(by);
        }
        self
    }

    async fn write(&self, stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        stream.write_all(&self.0).await?;
        stream.flush().await
    }
}

/// First bytes of a server's packets.
const OK: u8 = 0x00;
const MORE: u8 = 0x01;
const ERROR: u8 = 0xff;
/// The password was accepted; the OK follows without another packet of the client.
const FAST: u8 = 0x03;
/// The capability TLS, in the second byte of the capabilities.
const TLS: u8 = 0x08;

/// Passes on the greeting, and sends the driver's credentials over TLS. Returns `None` where the
/// server refuses the connection in place of greeting.
async fn secured(
    driver: &mut UnixStream,
    mut server: TcpStream,
    host: ServerName<'static>,
    tls: &TlsConnector,
) -> io::Result<Option<TlsStream<TcpStream>>> {
    let greeting = Packet::read(&mut server).await?;
    let refused = greeting.payload().first() == Some(&ERROR);
    if !refused && !offers_tls(greeting.payload()) {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "the server does not support TLS; set ssl-cert and ssl-key on the server",
        ));
    }
    greeting.write(driver).await?;
    if refused {
        return Ok(None);
    }
    let (request, credentials) = ask_for_tls(Packet::read(driver).await?)?;
    request.write(&mut server).await?;
    let mut server = tls.connect(host, server).await?;
    credentials.write(&mut server).await?;
    Ok(Some(server))
}

/// Returns whether the server's greeting offers TLS.
fn offers_tls(greeting: &[u8]) -> bool {
    /// The connection's number, the first part of the salt, a filler.
    const BETWEEN: usize = 4 + 8 + 1;
    let end_of_version = greeting.iter().skip(1).position(|byte| *byte == 0).map(|end| end + 2);
    let capabilities = end_of_version.and_then(|version| greeting.get(version + BETWEEN + 1));
    capabilities.is_some_and(|capabilities| capabilities & TLS != 0)
}

/// Returns the request for TLS, which is the beginning of the credentials, and the credentials to
/// send over TLS.
fn ask_for_tls(mut credentials: Packet) -> io::Result<(Packet, Packet)> {
    /// The capabilities, the maximum size of packets, the character set, a filler.
    const REQUEST: u8 = 4 + 4 + 1 + 23;
    if let Some(capabilities) = credentials.0.get_mut(Packet::HEADER + 1) {
        *capabilities |= TLS;
    }
    let number = credentials.0.get(3).copied().unwrap_or_default();
    let beginning = credentials.payload().get(..usize::from(REQUEST)).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, "the driver's credentials are too short")
    })?;
    let request = Packet([&[REQUEST, 0, 0, number], beginning].concat());
    Ok((request, credentials.renumbered(1)))
}

/// Passes packets on in turns, until the server accepts or refuses the credentials.
async fn authenticate(
    driver: &mut (impl AsyncRead + AsyncWrite + Unpin),
    server: &mut (impl AsyncRead + AsyncWrite + Unpin),
) -> io::Result<()> {
    loop {
        let reply = Packet::read(server).await?.renumbered(-1);
        reply.write(driver).await?;
        match *reply.payload() {
            [OK | ERROR, ..] => return Ok(()),
            [MORE, FAST] => {}
            _ => Packet::read(driver).await?.renumbered(1).write(server).await?,
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use tokio::io::duplex;

    use super::*;
    use crate::config::connection::Tls;
    use crate::db::tls::TlsFiles;

    fn run<T>(test: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
    }

    fn packet(number: u8, payload: &[u8]) -> Packet {
        let length = u8::try_from(payload.len()).unwrap();
        Packet([&[length, 0, 0, number], payload].concat())
    }

    fn greeting(capabilities: u16) -> Packet {
        let [low, high] = capabilities.to_le_bytes();
        let rest = [0x21, 2, 0, 0x08, 0, 21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let fields = [b"\x0a8.0.36\0", &[7, 0, 0, 0][..], b"abcdefgh\0", &[low, high], &rest];
        packet(0, &[&fields.concat()[..], b"ijklmnopqrst\0mysql_native_password\0"].concat())
    }

    /// A server that sends its greeting and then anything but TLS. Returns its port, and what it
    /// has received.
    fn server_without_tls(
        capabilities: u16,
        answer: &'static [u8],
    ) -> (std::net::SocketAddr, thread::JoinHandle<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received = thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            stream.write_all(&greeting(capabilities).0).unwrap();
            let mut received = vec![0; 4_096];
            let size = stream.read(&mut received).unwrap_or(0);
            received.truncate(size);
            let _ = stream.write_all(answer);
            let _ = stream.read_to_end(&mut received);
            received
        });
        (address, received)
    }

    async fn connect(
        address: std::net::SocketAddr,
    ) -> (mysql_async::Result<mysql_async::Conn>, Relay) {
        let settings = Tls { accept_any_certificate: true, ..Tls::default() };
        let tls = TlsFiles::read(&settings).unwrap().configuration().unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        let relay = Relay::start(stream, "127.0.0.1", tls).unwrap();
        let options = mysql_async::OptsBuilder::default()
            .user(Some("the-user"))
            .pass(Some("the-password"))
            .prefer_socket(false)
            .socket(Some(relay.name()));
        (mysql_async::Conn::new(options).await, relay)
    }

    #[test]
    fn credentials_are_never_sent_without_tls() {
        const TLS_OFFERED: u16 = 0xffff;
        const NO_TLS: u16 = 0xf7ff;
        // An OK, as if the server had been content without TLS; an error; garbage.
        let answers: [&[u8]; 3] = [
            b"\x07\0\0\x02\0\0\0\x02\0\0\0",
            b"\x05\0\0\x02\xff\x15\x04no",
            b"\x16\x03\x03\xff\xff",
        ];
        for (capabilities, answer) in
            answers.into_iter().map(|answer| (TLS_OFFERED, answer)).chain([(NO_TLS, &b""[..])])
        {
            let (address, received) = server_without_tls(capabilities, answer);
            run(async {
                let (outcome, relay) = connect(address).await;
                assert!(outcome.is_err());
                let error = relay.error().await.unwrap();
                let expected = if capabilities == NO_TLS { "does not support TLS" } else { "" };
                assert!(error.to_string().contains(expected), "{error}");
            });
            let received = received.join().unwrap();
            if capabilities == NO_TLS {
                assert_eq!(received, b"");
            } else {
                assert_eq!(received[..4], [32, 0, 0, 1], "the request for TLS");
                assert_eq!(received[5] & TLS, TLS);
                assert_eq!(received[36], 0x16, "followed by the handshake");
            }
            let found = |text: &[u8]| received.windows(text.len()).any(|part| part == text);
            assert!(!found(b"the-user") && !found(b"the-password"));
        }
    }

    #[test]
    fn an_error_in_place_of_the_greeting_is_passed_on() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            stream.write_all(&packet(0, b"\xff\x10\x04Too many connections").0).unwrap();
        });
        run(async {
            let (outcome, relay) = connect(address).await;
            let Err(mysql_async::Error::Server(error)) = outcome else {
                panic!("{outcome:?}");
            };
            assert_eq!(error.code, 1040);
            assert!(relay.error().await.is_none());
        });
        server.join().unwrap();
    }

    #[test]
    fn numbers_are_counted_for_each_side_until_the_server_decides() {
        run(async {
            let (mut driver, mut driver_end) = duplex(1_024);
            let (mut server, mut server_end) = duplex(1_024);
            let relay = tokio::spawn(async move {
                let outcome = authenticate(&mut driver_end, &mut server_end).await;
                (outcome, driver_end, server_end)
            });
            // Another plugin, the full exchange, the fast one.
            let steps: [(&[u8], Option<&[u8]>); 4] = [
                (b"\xfecaching_sha2_password\0salt", Some(b"hash")),
                (b"\x01\x04", Some(b"password\0")),
                (b"\x01\x03", None),
                (b"\x00\0\0\x02\0\0\0", None),
            ];
            let mut number = 3;
            for (reply, answer) in steps {
                packet(number, reply).write(&mut server).await.unwrap();
                let passed = Packet::read(&mut driver).await.unwrap();
                assert_eq!((passed.0[3], passed.payload()), (number - 1, reply));
                number += 1;
                if let Some(answer) = answer {
                    packet(number - 1, answer).write(&mut driver).await.unwrap();
                    let passed = Packet::read(&mut server).await.unwrap();
                    assert_eq!((passed.0[3], passed.payload()), (number, answer));
                    number += 1;
                }
            }
            assert!(relay.await.unwrap().0.is_ok());
        });
    }

    #[test]
    fn another_process_is_turned_away() {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::net::{SocketAddr, UnixStream as Stream};

        run(async {
            let (listener, name) = listener().unwrap();
            let address = SocketAddr::from_abstract_name(name.trim_start_matches('\0')).unwrap();
            // SAFETY: the child connects, waits for the end of the connection, and ends.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let read = Stream::connect_addr(&address).and_then(|mut peer| peer.read(&mut [0]));
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(if matches!(read, Ok(0)) { 0 } else { 1 }) };
            }
            let mut status = -1;
            let accepting = tokio::spawn(accept(listener));
            // It is before ours in the queue.
            while wait_for(child, &mut status) == 0 {
                assert!(!accepting.is_finished(), "the other process was accepted");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(status, 0, "the other process has read the end of its connection");
            let ours = UnixStream::connect(&name).await.unwrap();
            drop((ours, accepting.await.unwrap().unwrap()));
        });

        fn wait_for(child: libc::pid_t, status: &mut libc::c_int) -> libc::pid_t {
            // SAFETY: the child of this test; an int.
            unsafe { libc::waitpid(child, status, libc::WNOHANG) }
        }
    }

    #[test]
    fn a_dropped_relay_closes_its_sockets_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        run(async {
            let settings = Tls { accept_any_certificate: true, ..Tls::default() };
            let tls = TlsFiles::read(&settings).unwrap().configuration().unwrap();
            let stream = TcpStream::connect(address).await.unwrap();
            let relay = Relay::start(stream, "127.0.0.1", tls).unwrap();
            let mut peer = listener.accept().unwrap().0;
            let mut driver = UnixStream::connect(relay.name()).await.unwrap();
            let copy = relay.server.duplicate().unwrap();
            peer.write_all(&greeting(0xffff).0).unwrap();
            driver.readable().await.unwrap();
            drop(relay);
            // The copy, as a forked child has one, does not keep the connection open.
            peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            assert_eq!(peer.read(&mut [0]).unwrap(), 0);
            let mut rest = Vec::new();
            driver.read_to_end(&mut rest).await.unwrap();
            drop(copy);
        });
    }
}
