//! Waiting for a reply on the socket itself.
//!
//! The runtime watches a unix socket for reading and for writing at once. Such a socket tells that it can be written to whenever the
//! server has read something, so a caller that sleeps in the runtime is woken by every statement twice: first for nothing, while the
//! server has just begun, and then for the reply. That costs a short statement a quarter of its time (measured). A caller that has
//! nothing else to do may therefore wait for readability alone, by poll(2), and let the runtime look afterwards.
//!
//! The driver does not tell its socket. The kernel does: it lists what a runtime's epoll instance watches, and a runtime that serves
//! one session watches one connection. Where that cannot be found out, or is not plain, statements wait in the runtime.

use std::os::fd::RawFd;
use std::time::Duration;

/// From which statement of a connection on the socket is looked for: what a short request does is over before that pays.
const WORTHWHILE: u8 = 8;

/// How a connection waits for its replies.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Waiting {
    /// In the runtime.
    InRuntime,
    /// In the runtime still, for so many statements.
    Later(u8),
    /// On the socket.
    OnSocket(Socket),
}

/// The socket of a connection, as long as that is open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Socket {
    fd: RawFd,
    /// A statement of this many bytes fits into the socket's buffer as a whole: nothing of it has to wait for being written.
    room: usize,
}

impl Waiting {
    /// For a new connection over a unix socket whose caller does nothing else meanwhile.
    pub(crate) const fn new(over_socket: bool, alone: bool) -> Self {
        if over_socket && alone { Self::Later(WORTHWHILE) } else { Self::InRuntime }
    }

    /// The socket to wait on for the reply to a statement of about `size` bytes. Called with the connection's runtime running.
    pub(crate) fn socket(&mut self, size: usize) -> Option<Socket> {
        if let Self::Later(statements) = self {
            *statements = statements.saturating_sub(1);
            if *statements > 0 {
                return None;
            }
            *self = found().map_or(Self::InRuntime, Self::OnSocket);
        }
        match self {
            Self::OnSocket(socket) if size <= socket.room => Some(*socket),
            _ => None,
        }
    }
}

impl Socket {
    /// Waits until there is something to read (or the peer is gone), for `limit` at most. False: not yet, or a signal came.
    pub(crate) fn wait(self, limit: Duration) -> bool {
        let mut wanted = libc::pollfd { fd: self.fd, events: libc::POLLIN, revents: 0 };
        let ms = libc::c_int::try_from(limit.as_millis()).unwrap_or(libc::c_int::MAX);
        // SAFETY: one entry, which outlives the call.
        unsafe { libc::poll(&raw mut wanted, 1, ms) > 0 }
    }
}

/// The unix socket with a peer that this runtime watches, where there is exactly one.
#[cfg(target_os = "linux")]
fn found() -> Option<Socket> {
    use std::os::fd::AsRawFd;

    // Watched by this runtime: tells its epoll instance from others of this process.
    let marker = tokio::net::UnixDatagram::unbound().ok()?;
    let mark = (marker.as_raw_fd(), inode(marker.as_raw_fd())?);
    for entry in std::fs::read_dir("/proc/self/fd").ok()?.flatten() {
        if std::fs::read_link(entry.path())
            .is_ok_and(|link| link.as_os_str() == "anon_inode:[eventpoll]")
        {
            let info = std::fs::read_to_string(
                std::path::Path::new("/proc/self/fdinfo").join(entry.file_name()),
            )
            .ok()?;
            let watched: Vec<_> = info.lines().filter_map(watched).collect();
            if watched.contains(&mark) {
                let mut ours = watched.into_iter().filter(|&(fd, number)| {
                    (fd, number) != mark && inode(fd) == Some(number) && has_peer(fd)
                });
                return match (ours.next(), ours.next()) {
                    (Some((fd, _)), None) => Some(Socket { fd, room: room(fd)? }),
                    _ => None,
                };
            }
        }
    }
    None
}

#[cfg(not(target_os = "linux"))]
fn found() -> Option<Socket> {
    None
}

/// A line of what the kernel tells about an epoll instance: `tfd: 11 events: 8000201d data: 55d0 pos:0 ino:9 sdev:7`. The descriptor and the
/// inode, which shows whether the descriptor has been closed and given to something else.
#[cfg(target_os = "linux")]
fn watched(line: &str) -> Option<(RawFd, u64)> {
    let mut words = line.split_ascii_whitespace();
    if words.next()? != "tfd:" {
        return None;
    }
    let fd = words.next()?.parse().ok()?;
    let number = words.find_map(|word| word.strip_prefix("ino:"))?;
    Some((fd, u64::from_str_radix(number, 16).ok()?))
}

#[cfg(target_os = "linux")]
fn inode(fd: RawFd) -> Option<u64> {
    // SAFETY: plain data, filled by the call before it is read.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        (libc::fstat(fd, &raw mut status) == 0).then_some(status.st_ino)
    }
}

/// Is it a unix socket connected to one that has a name? Pairs, which runtimes use among themselves, have none.
#[cfg(target_os = "linux")]
fn has_peer(fd: RawFd) -> bool {
    // SAFETY: plain data, and its true length.
    unsafe {
        let mut name: libc::sockaddr_un = std::mem::zeroed();
        let mut length = libc::socklen_t::try_from(size_of::<libc::sockaddr_un>()).unwrap_or(0);
        libc::getpeername(fd, (&raw mut name).cast(), &raw mut length) == 0
            && i32::from(name.sun_family) == libc::AF_UNIX
            && length as usize > size_of::<libc::sa_family_t>()
    }
}

/// How much is written to a socket without waiting: a quarter of its buffer, of which the kernel's own records take a part.
#[cfg(target_os = "linux")]
fn room(fd: RawFd) -> Option<usize> {
    let mut bytes: libc::c_int = 0;
    let mut length = libc::socklen_t::try_from(size_of::<libc::c_int>()).ok()?;
    // SAFETY: an int, and its length.
    let code = unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_SNDBUF,
            (&raw mut bytes).cast(),
            &raw mut length,
        )
    };
    if code == 0 { usize::try_from(bytes / 4).ok() } else { None }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::future::pending;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixListener;
    use std::pin::pin;

    use super::super::deadline::StatementDeadline;
    use super::*;

    fn run<T>(test: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
    }

    #[test]
    fn what_the_kernel_tells() {
        assert_eq!(
            watched("tfd:       11 events: 8000201d data:     55d0f1 pos:0 ino:9f sdev:7"),
            Some((11, 0x9f))
        );
        assert_eq!(watched("pos:\t0"), None);
        assert_eq!(
            watched("tfd:        5 events:       19 data:                5"),
            None,
            "an old kernel tells no inode"
        );
    }

    #[test]
    fn own_connection_is_found_among_others() {
        let path = std::env::temp_dir().join(format!("nrllm-direct-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        // Somebody else's, in no runtime and in another one.
        let foreign = std::os::unix::net::UnixStream::connect(&path).unwrap();
        let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let elsewhere = other.block_on(tokio::net::UnixStream::connect(&path)).unwrap();
        run(async {
            assert!(found().is_none(), "no connection yet");
            let ours = tokio::net::UnixStream::connect(&path).await.unwrap();
            let socket = found().unwrap();
            assert_eq!(socket.fd, ours.as_raw_fd());
            assert!(socket.room >= 1_024);

            let mut peers: Vec<_> = (0..3).map(|_| listener.accept().unwrap().0).collect();
            let mut server = peers.pop().unwrap();
            assert!(!socket.wait(Duration::from_millis(1)), "nothing to read");
            // Readable for the server, and thereby writable for us: that is not waited for.
            ours.try_write(b"?").unwrap();
            assert_eq!(server.read(&mut [0]).unwrap(), 1);
            assert!(!socket.wait(Duration::from_millis(1)), "still nothing to read");

            let second = tokio::net::UnixStream::connect(&path).await.unwrap();
            assert!(found().is_none(), "two connections: which is meant?");
            drop(second);
            assert_eq!(found().map(|socket| socket.fd), Some(ours.as_raw_fd()));
        });
        drop((foreign, elsewhere));
        let _ = std::fs::remove_file(&path);
    }

    #[test]
    fn a_reply_and_a_lost_peer_end_the_wait() {
        let path = std::env::temp_dir().join(format!("nrllm-direct-end-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        run(async {
            let _ours = tokio::net::UnixStream::connect(&path).await.unwrap();
            let socket = found().unwrap();
            let mut peer = listener.accept().unwrap().0;
            peer.write_all(b"!").unwrap();
            assert!(socket.wait(Duration::from_secs(60)));
            drop(peer);
            assert!(socket.wait(Duration::from_secs(60)));
        });
        let _ = std::fs::remove_file(&path);
    }

    #[test]
    fn a_peer_that_is_silent_costs_the_limit_and_no_more() {
        let (ours, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
        let socket = Socket { fd: ours.as_raw_fd(), room: 1_024 };
        run(async {
            let mut alarm = StatementDeadline::new();
            let limit = Duration::from_millis(20);
            let started = std::time::Instant::now();
            assert_eq!(alarm.bounded(limit, Some(socket), pin!(pending::<()>())).await, None);
            let took = started.elapsed();
            assert!(took >= limit && took < Duration::from_secs(10), "{took:?}");
        });
    }

    #[test]
    fn busy_work_sends_its_request_before_it_pauses() {
        let (ours, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
        let socket = Socket { fd: ours.as_raw_fd(), room: 1_024 };
        run(async {
            // The runtime makes a task pause after so many steps. Taken for waiting, the pause would last until the limit.
            let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
            (0..1_000).for_each(|step| sender.send(step).unwrap());
            let work = async {
                for step in 0..1_000 {
                    assert_eq!(receiver.recv().await, Some(step));
                }
            };
            let (limit, started) = (Duration::from_secs(5), std::time::Instant::now());
            assert_eq!(
                StatementDeadline::new().bounded(limit, Some(socket), pin!(work)).await,
                Some(())
            );
            assert!(started.elapsed() < limit);
        });
    }

    #[test]
    fn socket_is_used_where_a_statement_fits() {
        assert!(Waiting::new(true, false).socket(1).is_none());
        assert!(Waiting::new(false, true).socket(1).is_none());
        let mut waiting = Waiting::OnSocket(Socket { fd: 0, room: 100 });
        assert!(waiting.socket(100).is_some());
        assert!(waiting.socket(101).is_none());
        run(async {
            // No connection in this runtime: none is found, and that is that.
            let mut waiting = Waiting::new(true, true);
            for _ in 0..=WORTHWHILE {
                assert!(waiting.socket(1).is_none());
            }
            assert!(matches!(waiting, Waiting::InRuntime));
        });
    }
}
