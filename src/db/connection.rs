//! The driver's connection, which is closed when it is dropped: before the call that drops it
//! returns, and in every process.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::pin::Pin;
use std::sync::Once;
use std::task::Poll;
use std::time::Duration;

use mysql_async::{Conn, IoError, OptsBuilder};
use tokio::runtime::{Builder, Handle};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::socket::{self, OwnSocket};
use super::tls_relay::Relay;

/// Maximum time for the driver's own clean-up after an attempt to connect that the server has
/// refused.
const CLEAN_UP: Duration = Duration::from_millis(50);

/// An open connection. Dropping it closes the connection at once, also in the middle of a reply.
pub(super) struct Connection {
    /// Dropped in `drop()`, or taken in `close()`.
    driver: ManuallyDrop<Driver>,
    socket: Option<OwnSocket>,
    process: u32,
}

/// The driver's connection, and the relay behind it where there is one. The relay is dropped first.
struct Driver {
    relay: Option<Relay>,
    conn: Conn,
}

impl Connection {
    /// Opens a connection. An attempt that fails, or is dropped before its end, leaves no socket
    /// open.
    pub(super) async fn open(options: OptsBuilder) -> mysql_async::Result<Self> {
        let mut attempt = Attempt { work: ManuallyDrop::new(Conn::new(options)), succeeded: false };
        match catch_panic(&mut *attempt.work).await.unwrap_or_else(|Panicked| Err(panicked())) {
            Ok(conn) => {
                attempt.succeeded = true;
                Ok(Self {
                    driver: ManuallyDrop::new(Driver { relay: None, conn }),
                    socket: OwnSocket::of_new_connection(),
                    process: std::process::id(),
                })
            }
            Err(error) => {
                drop(attempt);
                clean_up().await;
                Err(error)
            }
        }
    }

    /// Opens a connection through a relay, whose error counts where the driver was only cut off.
    pub(super) async fn open_through(
        relay: Relay,
        options: OptsBuilder,
    ) -> mysql_async::Result<Self> {
        match Self::open(options.socket(Some(relay.name()))).await {
            Ok(mut opened) => {
                opened.driver.relay = Some(relay);
                Ok(opened)
            }
            Err(mysql_async::Error::Io(cut_off)) => {
                Err(mysql_async::Error::Io(relay.error().await.map_or(cut_off, IoError::Io)))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the number of its socket's descriptor, where the system provides it.
    pub(super) fn descriptor(&self) -> Option<std::os::fd::RawFd> {
        self.socket.as_ref().map(OwnSocket::fd)
    }

    /// Closes the connection with the protocol's quit packet, which takes at most `limit`.
    pub(super) async fn close(mut self, limit: Duration) {
        if !self.is_ours() {
            return;
        }
        let copy = self.socket.as_ref().and_then(OwnSocket::duplicate);
        self.socket = None;
        // SAFETY: `driver` is initialised, and `self` is forgotten before it could be dropped or
        // used again.
        let Driver { mut relay, conn } = unsafe { ManuallyDrop::take(&mut self.driver) };
        std::mem::forget(self);
        let closed = async {
            let _ = conn.disconnect().await;
            if let Some(relay) = &mut relay {
                relay.ended().await;
            }
        };
        let _ = timeout(limit, closed).await;
        drop(relay);
        if let Some(copy) = copy {
            socket::end(&copy);
        }
    }

    /// Returns whether this process has opened the connection. A forked child leaves an inherited
    /// connection unchanged: dropping the parent's connection would deregister it from an epoll
    /// instance that both share.
    fn is_ours(&self) -> bool {
        self.process == std::process::id() && self.socket.as_ref().is_none_or(OwnSocket::is_ours)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.is_ours() {
            return;
        }
        if let Some(socket) = self.socket.take() {
            socket.shut_down();
        }
        // SAFETY: `driver` is initialised, and not used again.
        without_spawning(|| unsafe { ManuallyDrop::drop(&mut self.driver) });
    }
}

impl Deref for Connection {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.driver.conn
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.driver.conn
    }
}

/// The driver panicked.
struct Panicked;

/// Runs work of the driver and returns a panic in it as an error.
async fn catch_panic<T>(mut work: impl Future<Output = T> + Unpin) -> Result<T, Panicked> {
    poll_fn(|context| {
        let polled = without_printing(|| Pin::new(&mut work).poll(context));
        polled.map_or(Poll::Ready(Err(Panicked)), |poll| poll.map(Ok))
    })
    .await
}

thread_local! {
    /// Whether this thread reports a panic as an error, so that nothing is printed about it.
    static REPORTED: Cell<bool> = const { Cell::new(false) };
}

/// Runs work of the driver, and catches a panic without printing it.
fn without_printing<T>(work: impl FnOnce() -> T) -> std::thread::Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |panic| {
            if !REPORTED.get() {
                print(panic);
            }
        }));
    });
    REPORTED.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    REPORTED.set(false);
    outcome
}

/// Returns the error for a panic of the driver.
fn panicked() -> mysql_async::Error {
    mysql_async::Error::Other(PANICKED.into())
}

/// The message for a panic of the driver while it connected, over a reply that it cannot read or a
/// password that it cannot encrypt.
pub(super) const PANICKED: &str = "the driver cannot read what answers there";

/// An attempt to connect. Dropped before its end, it leaves no socket open.
struct Attempt<T> {
    work: ManuallyDrop<T>,
    succeeded: bool,
}

impl<T> Drop for Attempt<T> {
    fn drop(&mut self) {
        if !self.succeeded && Handle::try_current().is_ok() {
            socket::shut_down_unregistered();
        }
        // SAFETY: initialised when it was made, and not used again.
        without_spawning(|| unsafe { ManuallyDrop::drop(&mut self.work) });
    }
}

/// Drops a connection where the driver cannot defer its clean-up. In a runtime the driver spawns a
/// task that may never run, or wait without limit for the rest of a reply; on a runtime that has
/// ended, a spawned task is dropped at once, and the socket with it.
fn without_spawning<T>(drop: impl FnOnce() -> T) -> T {
    let Ok(ended) = Builder::new_current_thread().build() else {
        return drop();
    };
    let handle = ended.handle().clone();
    ended.shutdown_background();
    let _entered = handle.enter();
    drop()
}

/// Waits for the driver's own clean-up: where an attempt to connect fails, the driver drops the
/// connection itself.
async fn clean_up() {
    let tasks = Handle::current().metrics();
    let done = async {
        while tasks.num_alive_tasks() > 0 {
            yield_now().await;
        }
    };
    if timeout(CLEAN_UP, done).await.is_err() {
        socket::shut_down_unregistered();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_a_drop_spawns_has_ended_when_the_drop_returns() {
        struct Spawns(Option<tokio::net::TcpStream>);
        impl Drop for Spawns {
            fn drop(&mut self) {
                let stream = self.0.take();
                Handle::current().spawn(async move {
                    std::future::pending::<()>().await;
                    drop(stream);
                });
            }
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let stream = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await;
            let spawns = Spawns(Some(stream.unwrap()));
            let mut peer = listener.accept().unwrap().0;
            without_spawning(|| drop(spawns));
            assert_eq!(peer.read(&mut [0]).unwrap(), 0);
            assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
        });
    }
}
