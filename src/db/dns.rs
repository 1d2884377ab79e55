//! Resolves host names to addresses on separate threads, so that a name server that does not answer
//! delays an attempt to connect by at most its own limit.
//!
//! A lookup cannot be cancelled: its thread ends when the system's resolver returns, which takes
//! half a minute and more where no name server answers. So there is one lookup per name at a time,
//! and callers that request the same name meanwhile wait for it.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot::{self, Receiver, Sender};

use crate::error::{Error, Result};

/// Starts a thread; the process masks the signals of the thread there.
pub type ThreadStart = fn(Box<dyn FnOnce() + Send>) -> io::Result<()>;

/// Starts a plain thread.
///
/// # Errors
///
/// As [`std::thread::Builder::spawn`].
pub fn plain_thread(body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    std::thread::Builder::new().spawn(body).map(drop)
}

/// The result of the system's resolver for a name; its error as text.
type Found = Result<Vec<IpAddr>, String>;

/// The lookups of one process. A forked child must not use its parent's resolver: it needs its own.
pub struct Resolver {
    thread_start: ThreadStart,
    lookup: fn(&str) -> io::Result<Vec<IpAddr>>,
    running: Mutex<Lookups>,
}

/// The lookups in progress.
#[derive(Default)]
struct Lookups {
    all: Vec<Lookup>,
    /// The number of lookups started so far.
    count: u64,
}

/// A lookup in progress, and the callers that wait for it.
struct Lookup {
    number: u64,
    host: String,
    waiting: Vec<Sender<Found>>,
}

/// Removes a lookup from the list, however its thread ends.
struct Running {
    resolver: Arc<Resolver>,
    number: u64,
}

impl Running {
    fn end(&self) -> Vec<Sender<Found>> {
        let mut running = self.resolver.running();
        let place = running.all.iter().position(|lookup| lookup.number == self.number);
        place.map(|place| running.all.swap_remove(place).waiting).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

impl Resolver {
    /// Creates a resolver that starts its threads through `thread_start`, the first one with the
    /// first lookup.
    #[must_use]
    pub fn new(thread_start: ThreadStart) -> Arc<Self> {
        Self::with_lookup(thread_start, |host| {
            Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
        })
    }

    fn with_lookup(
        thread_start: ThreadStart,
        lookup: fn(&str) -> io::Result<Vec<IpAddr>>,
    ) -> Arc<Self> {
        Arc::new(Self { thread_start, lookup, running: Mutex::default() })
    }

    fn running(&self) -> MutexGuard<'_, Lookups> {
        // No code under the lock can panic and leave the list half written.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the addresses of a host after at most `limit`.
    pub(crate) async fn resolve(
        self: &Arc<Self>,
        host: &str,
        limit: Duration,
    ) -> Result<Vec<IpAddr>> {
        let answer = self.ask(host).map_err(|error| {
            Error::resource(format!("cannot start a thread to resolve {host}: {error}"))
        })?;
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(Ok(addresses))) if !addresses.is_empty() => Ok(addresses),
            Ok(Ok(Ok(_))) => Err(Error::connection(format!(
                "host {host} has no address; check host in the connection"
            ))),
            Ok(Ok(Err(error))) => Err(Error::connection(format!(
                "host {host} cannot be resolved: {error}; check host in the connection"
            ))),
            Ok(Err(_)) | Err(_) => Err(Error::connection(format!(
                "host {host} was not resolved within {} ms; check the name server, or use an address",
                limit.as_millis()
            ))),
        }
    }

    /// Joins the lookup of a host that is in progress, or starts one.
    fn ask(self: &Arc<Self>, host: &str) -> io::Result<Receiver<Found>> {
        let (sender, receiver) = oneshot::channel();
        let mut running = self.running();
        if let Some(lookup) = running.all.iter_mut().find(|lookup| lookup.host == host) {
            // Callers that have timed out are removed.
            lookup.waiting.retain(|waiting| !waiting.is_closed());
            lookup.waiting.push(sender);
            return Ok(receiver);
        }
        let number = running.count;
        running.count += 1;
        running.all.push(Lookup { number, host: host.to_owned(), waiting: vec![sender] });
        drop(running);
        // `Running` is also dropped where no thread could be started.
        let this = Running { resolver: Arc::clone(self), number };
        let host = host.to_owned();
        (self.thread_start)(Box::new(move || {
            let found = (this.resolver.lookup)(&host).map_err(|error| error.to_string());
            for waiting in this.end() {
                let _ = waiting.send(found.clone());
            }
        }))?;
        Ok(receiver)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const SHORT: Duration = Duration::from_millis(5);
    const LONG: Duration = Duration::from_secs(60);

    /// A name server that does not answer until it is opened.
    struct SilentServer {
        open: Mutex<bool>,
        opened: Condvar,
    }

    impl SilentServer {
        const fn new() -> Self {
            Self { open: Mutex::new(false), opened: Condvar::new() }
        }

        fn answer(&self) -> io::Result<Vec<IpAddr>> {
            drop(self.opened.wait_while(self.open.lock().unwrap(), |open| !*open).unwrap());
            Ok(vec![IpAddr::from([192, 0, 2, 1])])
        }

        fn open(&self) {
            *self.open.lock().unwrap() = true;
            self.opened.notify_all();
        }
    }

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
    }

    #[test]
    fn silent_name_server_costs_one_thread() {
        static SERVER: SilentServer = SilentServer::new();
        let resolver = Resolver::with_lookup(plain_thread, |_| SERVER.answer());
        block_on(async {
            for _ in 0..50 {
                let error = resolver.resolve("db.example", SHORT).await.unwrap_err();
                assert!(error.message.contains("was not resolved within 5 ms"), "{error}");
            }
            let list = |resolver: &Resolver| {
                resolver.running().all.iter().map(|lookup| lookup.waiting.len()).collect::<Vec<_>>()
            };
            assert_eq!(
                list(&resolver),
                [1],
                "one lookup, and no waiter in its list has given up but the last"
            );
            // Another name starts another lookup.
            assert!(resolver.resolve("db2.example", SHORT).await.is_err());
            assert_eq!(list(&resolver).len(), 2);
            // A waiting caller gets the result of the lookup in progress.
            let answer = resolver.ask("db.example").unwrap();
            SERVER.open();
            assert_eq!(answer.await.unwrap().unwrap(), [IpAddr::from([192, 0, 2, 1])]);
            assert_eq!(resolver.running().count, 2);
            // The next caller starts a new lookup.
            assert!(resolver.resolve("db.example", LONG).await.is_ok());
            assert_eq!(resolver.running().count, 3);
        });
    }

    #[test]
    fn failed_lookup_does_not_block_the_next_one() {
        static STARTS: AtomicUsize = AtomicUsize::new(0);
        let refused_once =
            |body: Box<dyn FnOnce() + Send>| match STARTS.fetch_add(1, Ordering::SeqCst) {
                0 => Err(io::Error::from(io::ErrorKind::WouldBlock)),
                _ => plain_thread(body),
            };
        let resolver = Resolver::with_lookup(refused_once, |host| match host {
            "panic.example" => panic!("on purpose"),
            "unknown.example" => Err(io::Error::other("no such host")),
            _ => Ok(Vec::new()),
        });
        let message = |host: &str| block_on(resolver.resolve(host, LONG)).unwrap_err().message;
        assert!(message("empty.example").contains("cannot start a thread"));
        assert!(message("empty.example").contains("has no address"));
        assert!(message("panic.example").contains("was not resolved"));
        assert!(message("panic.example").contains("was not resolved"));
        assert!(message("unknown.example").contains("no such host"));
        assert_eq!(STARTS.load(Ordering::SeqCst), 5);
        assert!(resolver.running().all.is_empty());
    }
}
