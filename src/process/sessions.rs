//! The sessions of this process: one for each distinct connection and its time limits, shared by all objects.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::fork::PerProcess;
use super::signals::start_masked;
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
    key: Key,
    inner: Mutex<Inner>,
}

struct Inner {
    runtime: Runtime,
    session: Session,
}

/// All sessions of one process.
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
    let registry = registry();
    let mut slots = lock(&registry.slots);
    if let Some(slot) = slots.iter().find(|slot| slot.key == *key) {
        return Ok(Arc::clone(slot));
    }
    let runtime = new_runtime()?;
    let session = Session::new(Arc::clone(&key.connection), key.timeouts)
        .with_resolver(Arc::clone(&registry.resolver))
        .alone();
    let slot = Arc::new(Slot { key: key.clone(), inner: Mutex::new(Inner { runtime, session }) });
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
    outcome.unwrap_or_else(|_| {
        session.discard();
        Err(Error::connection(format!(
            "the reply of {} could not be read; the connection was thrown away. Check what answers there",
            key.connection.endpoint
        ))
        .with_fate(Fate::Lost))
    })
}

/// Closes the session for `key`, if it is open.
pub fn close(key: &Key) {
    if let Some(registry) = CURRENT.get() {
        let found = lock(&registry.slots).iter().find(|slot| slot.key == *key).cloned();
        if let Some(slot) = found {
            goodbye(&slot);
        }
    }
}

/// Closes every session of this process, without waiting for the server. In a forked child that has none, nothing happens.
pub fn close_all() {
    if let Some(registry) = CURRENT.get() {
        let slots = std::mem::take(&mut *lock(&registry.slots));
        for slot in slots {
            goodbye(&slot);
        }
    }
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
