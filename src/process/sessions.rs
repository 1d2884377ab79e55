//! The sessions of this process: one per thread, connection and time limits, shared by all objects of
//! the thread.
//!
//! A session belongs to the thread that opened it. No thread waits for the call of another, and the end
//! of a request on one thread ([`close_thread`]) leaves the sessions of the others open. A thread that
//! ends without closing its sessions closes them as it ends.

use std::cell::Cell;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::fork::PerProcess;
use super::signals::start_masked;
use super::thread::ThreadNumber;
use crate::config::connection::ConnectionSettings;
use crate::config::options::Timeouts;
use crate::db::Session;
use crate::db::dns::Resolver;
use crate::error::{Error, Fate, Result};

/// How long an orderly goodbye may take. It is one small packet into a socket's buffer: no reply is waited for.
pub(crate) const GOODBYE: Duration = Duration::from_millis(50);

/// What distinguishes sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// The connection.
    pub connection: Arc<ConnectionSettings>,
    /// Its time limits.
    pub timeouts: Timeouts,
}

/// A session with the runtime that drives it. Both are used under the lock alone, by one thread at a time.
struct Slot {
    thread: ThreadNumber,
    key: Key,
    inner: Mutex<Inner>,
}

impl Slot {
    fn is(&self, thread: ThreadNumber, key: &Key) -> bool {
        self.thread == thread && self.key == *key
    }
}

struct Inner {
    runtime: Runtime,
    session: Session,
}

/// The sessions of all threads of one process.
struct Registry {
    resolver: Arc<Resolver>,
    slots: Mutex<Vec<Arc<Slot>>>,
}

/// Never freed: dropping the parent's in a child would deregister its socket from an epoll set that both processes share, and closing
/// would say goodbye in the parent's name.
static CURRENT: PerProcess<Registry> = PerProcess::new();

fn registry() -> &'static Registry {
    let make = || Registry { resolver: Resolver::new(start_masked), slots: Mutex::new(Vec::new()) };
    let Ok(registry) = CURRENT.get_or_make(|_| Ok::<_, Infallible>(make()));
    registry
}

/// The resolver of this process, for a session that is not one of its registry's. No lock is taken.
pub(crate) fn resolver() -> Arc<Resolver> {
    Arc::clone(&registry().resolver)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic inside was caught and its session discarded: the value is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn slot(key: &Key) -> Result<Arc<Slot>> {
    let (registry, thread) = (registry(), ThreadNumber::this());
    let mut slots = lock(&registry.slots);
    if let Some(slot) = slots.iter().find(|slot| slot.is(thread, key)) {
        return Ok(Arc::clone(slot));
    }
    let runtime = new_runtime()?;
    let session = Session::new(Arc::clone(&key.connection), key.timeouts)
        .with_resolver(Arc::clone(&registry.resolver))
        .alone();
    let inner = Mutex::new(Inner { runtime, session });
    let slot = Arc::new(Slot { thread, key: key.clone(), inner });
    slots.push(Arc::clone(&slot));
    Ok(slot)
}

/// A runtime that has no thread of its own.
pub(crate) fn new_runtime() -> Result<Runtime> {
    Builder::new_current_thread().enable_io().enable_time().max_blocking_threads(1).build().map_err(
        |error| {
            Error::resource(format!(
                "cannot set up the event loop: {error}; check the limit of open files"
            ))
        },
    )
}

/// Runs one operation on the session for `key`, connecting if need be.
///
/// A panic below (a driver that trips over a reply it cannot read) costs the connection and is an error, not a crash.
///
/// # Errors
///
/// The operation's error.
pub fn call<T>(key: &Key, operation: impl AsyncFnOnce(&mut Session) -> Result<T>) -> Result<T> {
    let slot = slot(key)?;
    let mut inner = lock(&slot.inner);
    let Inner { runtime, session } = &mut *inner;
    let outcome = catch_unwind(AssertUnwindSafe(|| runtime.block_on(operation(session))));
    close_at_the_end_of_the_thread();
    outcome.unwrap_or_else(|_| {
        session.discard();
        Err(Error::connection(format!(
            "the reply of {} could not be read; the connection was thrown away. Check what answers there",
            key.connection.endpoint
        ))
        .with_fate(Fate::Lost))
    })
}

/// Closes the calling thread's session for `key`, if it is open.
pub fn close(key: &Key) {
    if let Some(registry) = CURRENT.get() {
        let thread = ThreadNumber::this();
        let found = lock(&registry.slots).iter().find(|slot| slot.is(thread, key)).cloned();
        if let Some(slot) = found {
            goodbye(&slot);
        }
    }
}

/// Closes the sessions of the calling thread without waiting for the server: at the end of a request.
/// In a forked child that has none, nothing happens.
pub fn close_thread() {
    let thread = ThreadNumber::this();
    for slot in take(|slot| slot.thread == thread) {
        goodbye(&slot);
    }
}

/// Closes the sessions of all threads of this process without waiting for the server: at the end of the
/// process. A call that another thread is in is waited for. In a forked child that has none, nothing
/// happens.
pub fn close_all() {
    for slot in take(|_| true) {
        goodbye(&slot);
    }
}

/// Takes the sessions that match out of the registry of this process.
fn take(matches: impl Fn(&Slot) -> bool) -> Vec<Arc<Slot>> {
    let Some(registry) = CURRENT.get() else {
        return Vec::new();
    };
    let mut slots = lock(&registry.slots);
    let (taken, kept) = std::mem::take(&mut *slots).into_iter().partition(|slot| matches(slot));
    *slots = kept;
    taken
}

fn goodbye(slot: &Slot) {
    let mut inner = lock(&slot.inner);
    let Inner { runtime, session } = &mut *inner;
    if session.is_open() {
        let said = catch_unwind(AssertUnwindSafe(|| runtime.block_on(session.close(GOODBYE))));
        if said.is_err() {
            session.discard();
        }
    }
}

/// Makes sure that the calling thread closes its sessions when it ends.
///
/// Called after a session was used, not before: thread-local values are destroyed in the reverse order
/// of their creation, and closing needs those of the runtime.
fn close_at_the_end_of_the_thread() {
    struct EndOfThread(Cell<bool>);

    impl Drop for EndOfThread {
        fn drop(&mut self) {
            if self.0.get() {
                let _ = catch_unwind(close_thread);
            }
        }
    }

    thread_local! {
        static END: EndOfThread = const { EndOfThread(Cell::new(false)) };
    }
    let _ = END.try_with(|end| end.0.set(true));
}
