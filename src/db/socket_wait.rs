//! Waits for a reply on the socket itself.
//!
//! The runtime watches a unix socket for reading and for writing at once. Such a socket reports
//! that it can be written to whenever the server has read something, so a caller that sleeps in the
//! runtime is notified twice per statement: first without a reply, while the server has just begun,
//! and then for the reply. That costs a short statement a quarter of its time (measured). A caller
//! that has no other work may therefore wait for readability alone, by poll(2), and let the runtime
//! read afterwards.
//!
//! Statements that might not fit into the socket's buffer wait in the runtime.

use std::os::fd::RawFd;
use std::time::Duration;

/// The socket of a connection, valid as long as the connection is open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Socket {
    fd: RawFd,
    /// A statement of this many bytes fits into the socket's buffer as a whole, so that it is
    /// written without waiting.
    capacity: usize,
}

impl Socket {
    /// Returns the unix socket with this descriptor.
    pub(crate) fn new(fd: RawFd) -> Option<Self> {
        Some(Self { fd, capacity: capacity(fd)? })
    }

    /// Returns the socket to wait on for the reply to a statement of about `size` bytes.
    pub(crate) const fn for_statement(self, size: usize) -> Option<Self> {
        if size <= self.capacity { Some(self) } else { None }
    }

    /// Waits for at most `limit` until the socket is readable or the peer has closed it. Returns
    /// false after the limit or a signal.
    pub(crate) fn wait(self, limit: Duration) -> bool {
        let mut wanted = libc::pollfd { fd: self.fd, events: libc::POLLIN, revents: 0 };
        let ms = libc::c_int::try_from(limit.as_millis()).unwrap_or(libc::c_int::MAX);
        // SAFETY: one entry, which outlives the call.
        unsafe { libc::poll(&raw mut wanted, 1, ms) > 0 }
    }
}

/// Returns how many bytes are written to a socket without waiting: a quarter of its buffer, part of
/// which the kernel uses for its own records.
fn capacity(fd: RawFd) -> Option<usize> {
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
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixListener;
    use std::pin::pin;

    use super::super::deadline::StatementDeadline;
    use super::*;

    fn run<T>(test: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
    }

    #[test]
    fn a_reply_and_a_lost_peer_end_the_wait() {
        let path = std::env::temp_dir().join(format!("nrllm-direct-end-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        run(async {
            let ours = tokio::net::UnixStream::connect(&path).await.unwrap();
            let socket = Socket::new(ours.as_raw_fd()).unwrap();
            assert!(!socket.wait(Duration::from_millis(1)), "nothing to read");
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
        let socket = Socket { fd: ours.as_raw_fd(), capacity: 1_024 };
        run(async {
            let mut deadline = StatementDeadline::new();
            let limit = Duration::from_millis(20);
            let started = std::time::Instant::now();
            assert_eq!(deadline.bounded(limit, Some(socket), pin!(pending::<()>())).await, None);
            let took = started.elapsed();
            assert!(took >= limit && took < Duration::from_secs(10), "{took:?}");
        });
    }

    #[test]
    fn busy_work_sends_its_request_before_it_pauses() {
        let (ours, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
        let socket = Socket { fd: ours.as_raw_fd(), capacity: 1_024 };
        run(async {
            // The runtime makes a task pause after a number of steps. Mistaken for waiting, the
            // pause would last until the limit.
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
    fn a_statement_that_does_not_fit_waits_in_the_runtime() {
        let socket = Socket { fd: 0, capacity: 100 };
        assert!(socket.for_statement(100).is_some());
        assert!(socket.for_statement(101).is_none());
    }
}
