//! The sessions of this process: one per thread, connection and time limits, shared by all objects
//! of the thread and by the heartbeats of the leases that the thread keeps.
//!
//! A session belongs to the thread that opened it. No thread waits for the call of another, and the
//! end of a request on one thread ([`close_thread`]) leaves the sessions of the others open. A
//! thread that ends without closing its sessions closes them as it ends.
//!
//! A process that keeps a lease and waits for a provider needs one connection: the heartbeat thread
//! sends the heartbeats on the session of the thread that keeps the lease (`SharedSession`). A
//! call and a heartbeat that come together take turns; where one of them takes long, the other
//! opens a connection of its own and closes it afterwards.
//!
//! A session lives as long as an object or a lease of its settings ([`SessionUser`]): with the last
//! one its connection is closed and its runtime freed, so that rotated passwords leave nothing
//! behind (rule 34).

use std::cell::Cell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::fork::{PerProcess, Process};
use super::signals::start_masked;
use super::thread::ThreadNumber;
use crate::config::connection::ConnectionSettings;
use crate::config::options::Timeouts;
use crate::db::Session;
use crate::db::dns::Resolver;
use crate::error::{Error, Fate, Result, code};

/// How long the orderly close of a connection may take. It is one small packet into a socket's
/// buffer; no reply is awaited.
pub(crate) const CLOSING: Duration = Duration::from_millis(50);
/// How long a call waits for a heartbeat that is using the session. A heartbeat takes a
/// millisecond, unless its row is locked or its server does not answer.
const SESSION_WAIT: Duration = Duration::from_millis(50);

/// The values that distinguish sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// The connection.
    pub connection: Arc<ConnectionSettings>,
    /// Its time limits.
    pub timeouts: Timeouts,
}

/// An object that uses the sessions of a key. Dropping the last one of a key ends the sessions of
/// all threads for that key.
#[derive(Debug)]
pub struct SessionUser {
    key: Key,
    process: Process,
}

impl SessionUser {
    /// Registers a user of the sessions for `key`.
    #[must_use]
    pub fn new(key: Key) -> Self {
        let mut users = lock(&registry().users);
        match users.iter_mut().find(|(known, _)| *known == key) {
            Some((_, count)) => *count += 1,
            None => users.push((key.clone(), 1)),
        }
        Self { key, process: Process::this() }
    }
}

impl Deref for SessionUser {
    type Target = Key;

    fn deref(&self) -> &Key {
        &self.key
    }
}

impl Drop for SessionUser {
    fn drop(&mut self) {
        let Some(registry) = CURRENT.get() else {
            return;
        };
        {
            let mut users = lock(&registry.users);
            let place = users.iter().position(|(known, _)| *known == self.key);
            if let Some(place) = place {
                // A forked child has not counted what it inherited.
                if self.process == Process::this()
                    && let Some((_, count)) = users.get_mut(place)
                {
                    *count -= 1;
                    if *count == 0 {
                        users.swap_remove(place);
                    }
                }
                if users.iter().any(|(known, _)| *known == self.key) {
                    return;
                }
            }
        }
        give_up(registry, |session| session.key == self.key);
    }
}

/// A session with the runtime that drives it.
pub(crate) struct DrivenSession {
    pub(crate) runtime: Runtime,
    pub(crate) session: Session,
}

/// A panic of the driver, caused by a reply that it cannot read.
pub(crate) struct Panicked;

impl DrivenSession {
    /// Creates a session that connects when it is first used.
    pub(crate) fn new(connection: &Arc<ConnectionSettings>, timeouts: Timeouts) -> Result<Self> {
        let session = Session::new(Arc::clone(connection), timeouts)
            .with_resolver(Arc::clone(&registry().resolver))
            .alone();
        Ok(Self { runtime: new_runtime()?, session })
    }

    /// Runs work that uses the session. A panic in it discards the connection and is returned as an
    /// error.
    pub(crate) fn run<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Session) -> T,
    ) -> Result<T, Panicked> {
        let Self { runtime, session } = self;
        let outcome = catch_unwind(AssertUnwindSafe(|| runtime.block_on(work(session))));
        outcome.map_err(|_| {
            self.session.discard();
            Panicked
        })
    }

    /// Closes the connection, if there is one, in bounded time.
    pub(crate) fn close(&mut self) {
        if self.session.is_open() {
            // A panic has discarded the connection.
            let _ = self.run(async |session| session.close(CLOSING).await);
        }
    }

    fn call<T>(
        &mut self,
        key: &Key,
        operation: impl AsyncFnOnce(&mut Session) -> Result<T>,
    ) -> Result<T> {
        self.session.watch(false);
        if self.session.timeouts() != key.timeouts {
            // The limits may be those of a heartbeat. Where changing them fails the connection is
            // discarded, and the next one has the right limits.
            let retimed = self.run(async |session| session.retime(key.timeouts).await);
            if let Ok(Err(error)) = retimed
                && error.fate == Fate::TimedOut
            {
                return Err(error.with_fate(Fate::Refused));
            }
        }
        self.run(operation).unwrap_or_else(|Panicked| {
            Err(Error::connection(format!(
                "the reply of {} could not be read; the connection was closed. Check which server listens there",
                key.connection.endpoint
            ))
            .with_fate(Fate::Lost))
        })
    }
}

/// The session of one thread for one key. The calls of the thread and the heartbeats of its leases
/// use it in turns, in the order of their requests.
pub(crate) struct SharedSession {
    thread: ThreadNumber,
    key: Key,
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Default)]
struct State {
    /// None before the first use, while it is in use, and after it was closed.
    idle: Option<Box<DrivenSession>>,
    in_use: bool,
    /// The waiting callers, in order.
    waiting: VecDeque<u64>,
    /// The number of the next waiting caller.
    next: u64,
    /// Whether the caller that is using the session must close it.
    closing: bool,
}

impl SharedSession {
    fn new(thread: ThreadNumber, key: &Key) -> Self {
        Self { thread, key: key.clone(), state: Mutex::default(), returned: Condvar::new() }
    }

    fn is(&self, thread: ThreadNumber, key: &Key) -> bool {
        self.thread == thread && self.key == *key
    }

    /// Returns the session for the exclusive use of the caller, as soon as it is free; none when it
    /// is still in use after `limit`.
    pub(crate) fn acquire(&self, limit: Duration) -> Option<InUse<'_>> {
        let mut state = lock(&self.state);
        if state.in_use || !state.waiting.is_empty() {
            let number = state.next;
            state.next += 1;
            state.waiting.push_back(number);
            state = self
                .returned
                .wait_timeout_while(state, limit, |state| {
                    state.in_use || state.waiting.front() != Some(&number)
                })
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            let is_next = !state.in_use && state.waiting.front() == Some(&number);
            state.waiting.retain(|&other| other != number);
            if !is_next {
                self.returned.notify_all();
                return None;
            }
        }
        state.in_use = true;
        Some(InUse { shared: self, driven: state.idle.take() })
    }

    /// Closes the connection without waiting for the server. Where a heartbeat is using the
    /// session, the heartbeat closes it when it has ended.
    fn close(&self) {
        if let Some(mut in_use) = self.acquire(CLOSING) {
            in_use.close();
            return;
        }
        let mut state = lock(&self.state);
        if state.in_use {
            state.closing = true;
        } else if let Some(mut driven) = state.idle.take() {
            drop(state);
            driven.close();
        }
    }
}

impl Drop for SharedSession {
    fn drop(&mut self) {
        // Never in a forked child, which has a registry of its own.
        if let Some(mut driven) = lock(&self.state).idle.take() {
            driven.close();
        }
    }
}

/// The exclusive use of a [`SharedSession`], until it is dropped.
pub(crate) struct InUse<'a> {
    shared: &'a SharedSession,
    driven: Option<Box<DrivenSession>>,
}

impl InUse<'_> {
    /// Returns the session, and creates it if there is none.
    ///
    /// # Errors
    ///
    /// The process has no descriptor left for the event loop.
    pub(crate) fn driven(&mut self) -> Result<&mut DrivenSession> {
        match &mut self.driven {
            Some(driven) => Ok(driven),
            none => {
                let key = &self.shared.key;
                Ok(none.insert(Box::new(DrivenSession::new(&key.connection, key.timeouts)?)))
            }
        }
    }

    fn close(&mut self) {
        if let Some(mut driven) = self.driven.take() {
            driven.close();
        }
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        if state.closing {
            state.closing = false;
            drop(state);
            self.close();
            state = lock(&self.shared.state);
        }
        state.idle = self.driven.take();
        state.in_use = false;
        if !state.waiting.is_empty() {
            self.shared.returned.notify_all();
        }
    }
}

/// The sessions of all threads of one process.
struct Registry {
    resolver: Arc<Resolver>,
    sessions: Mutex<Vec<Entry>>,
    /// The number of objects of each key.
    users: Mutex<Vec<(Key, usize)>>,
}

/// A session of the registry. Once it was closed, only the leases that use it keep it; the next
/// call of its thread takes it again.
struct Entry {
    session: Weak<SharedSession>,
    kept: Option<Arc<SharedSession>>,
}

/// Never freed: dropping the parent's sessions in a child would deregister their sockets from an
/// epoll set that both processes share, and closing would end the parent's connections.
static CURRENT: PerProcess<Registry> = PerProcess::new();

fn registry() -> &'static Registry {
    let make = || Registry {
        resolver: Resolver::new(start_masked),
        sessions: Mutex::default(),
        users: Mutex::default(),
    };
    let Ok(registry) = CURRENT.get_or_make(|_| Ok::<_, Infallible>(make()));
    registry
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under these locks can panic: the value is consistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the session of the calling thread for `key`.
pub(crate) fn shared(key: &Key) -> Arc<SharedSession> {
    let thread = ThreadNumber::this();
    let mut sessions = lock(&registry().sessions);
    for entry in sessions.iter_mut() {
        if let Some(session) = entry.session.upgrade().filter(|session| session.is(thread, key)) {
            entry.kept = Some(Arc::clone(&session));
            return session;
        }
    }
    let session = Arc::new(SharedSession::new(thread, key));
    sessions.retain(|entry| entry.session.strong_count() > 0);
    sessions.push(Entry { session: Arc::downgrade(&session), kept: Some(Arc::clone(&session)) });
    session
}

/// Creates a runtime without its own thread.
fn new_runtime() -> Result<Runtime> {
    Builder::new_current_thread().enable_io().enable_time().max_blocking_threads(1).build().map_err(
        |error| {
            Error::resource(format!(
                "cannot set up the event loop: {error}; check the limit of open files"
            ))
        },
    )
}

/// Runs one operation on the calling thread's session for `key`, connecting if necessary.
///
/// A panic of the driver discards the connection and is returned as an error.
///
/// # Errors
///
/// The operation's error.
pub fn call<T>(key: &Key, operation: impl AsyncFnOnce(&mut Session) -> Result<T>) -> Result<T> {
    let shared = shared(key);
    let outcome = match shared.acquire(SESSION_WAIT) {
        Some(mut in_use) => in_use.driven().and_then(|driven| driven.call(key, operation)),
        None => call_beside_a_heartbeat(&shared, operation),
    };
    close_at_the_end_of_the_thread();
    outcome
}

/// Runs one operation on a separate connection while a heartbeat is using the session and still
/// waits. Where the server grants no second connection, the operation waits for the heartbeat.
fn call_beside_a_heartbeat<T>(
    shared: &SharedSession,
    operation: impl AsyncFnOnce(&mut Session) -> Result<T>,
) -> Result<T> {
    let key = &shared.key;
    let mut own = DrivenSession::new(&key.connection, key.timeouts)?;
    let connected = own.run(async |session| session.server().await.map(drop));
    if let Ok(Err(error)) = connected {
        let is_full = matches!(
            error.code,
            code::CON_COUNT | code::TOO_MANY_USER_CONNECTIONS | code::USER_LIMIT_REACHED
        );
        return match is_full.then(|| shared.acquire(key.timeouts.query)).flatten() {
            Some(mut in_use) => in_use.driven()?.call(key, operation),
            None => Err(error),
        };
    }
    let outcome = own.call(key, operation);
    own.close();
    outcome
}

/// Closes the calling thread's session for `key`, if it is open.
pub fn close(key: &Key) {
    let thread = ThreadNumber::this();
    close_those(|session| session.is(thread, key));
}

/// Closes the sessions of the calling thread without waiting for the server: at the end of a
/// request. In a forked child that has none, this has no effect.
pub fn close_thread() {
    let thread = ThreadNumber::this();
    close_those(|session| session.thread == thread);
}

/// Closes the sessions of all threads of this process without waiting for the server: at the end of
/// the process. One that another thread is using is closed by that thread. In a forked child that
/// has none, this has no effect.
pub fn close_all() {
    close_those(|_| true);
}

/// Closes the sessions that match, and releases their descriptors. The heartbeats of a lease that
/// uses one of these sessions open a new connection, which is closed with the last such lease.
fn close_those(matches: impl Fn(&SharedSession) -> bool) {
    let Some(registry) = CURRENT.get() else {
        return;
    };
    for session in give_up(registry, matches) {
        session.close();
    }
}

/// Removes the sessions that match from the registry, and returns them. Sessions that no lease uses
/// end when the returned value is dropped.
fn give_up(
    registry: &Registry,
    matches: impl Fn(&SharedSession) -> bool,
) -> Vec<Arc<SharedSession>> {
    let mut given_up = Vec::new();
    for entry in lock(&registry.sessions).iter_mut() {
        if let Some(session) = entry.session.upgrade().filter(|session| matches(session)) {
            entry.kept = None;
            given_up.push(session);
        }
    }
    given_up
}

/// Makes sure that the calling thread closes its sessions when it ends.
///
/// Called after a session was used, not before: thread-local values are destroyed in the reverse
/// order of their creation, and closing needs the thread-local values of the runtime.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::connection::Defaults;
    use crate::config::value::{Input, Key as Name};

    fn session() -> Arc<SharedSession> {
        let driver = (Name::Str(b"driver".to_vec()), Input::Bytes(b"mysqli".to_vec()));
        let settings =
            ConnectionSettings::parse(&Input::Map(vec![driver]), &Defaults::default()).unwrap();
        let key = Key { connection: Arc::new(settings), timeouts: Timeouts::default() };
        Arc::new(SharedSession::new(ThreadNumber::this(), &key))
    }

    #[test]
    fn a_session_is_used_by_one_at_a_time_in_the_order_of_requests() {
        let session = session();
        let first = session.acquire(Duration::ZERO).unwrap();
        assert!(session.acquire(Duration::from_millis(1)).is_none(), "in use");
        let order = Arc::new(Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for number in 0..3 {
                let (session, order) = (&session, Arc::clone(&order));
                scope.spawn(move || {
                    let in_use = session.acquire(Duration::from_secs(60)).unwrap();
                    lock(&order).push(number);
                    drop(in_use);
                });
                while lock(&session.state).waiting.len() < number + 1 {
                    std::thread::yield_now();
                }
            }
            drop(first);
        });
        assert_eq!(*lock(&order), [0, 1, 2]);
        assert!(session.acquire(Duration::ZERO).is_some(), "free again");
    }

    #[test]
    fn a_caller_that_gives_up_waiting_does_not_block_the_next() {
        let session = session();
        let first = session.acquire(Duration::ZERO).unwrap();
        std::thread::scope(|scope| {
            let short = scope.spawn(|| session.acquire(Duration::from_millis(20)).is_some());
            let long = scope.spawn(|| session.acquire(Duration::from_secs(60)).is_some());
            assert!(!short.join().unwrap());
            drop(first);
            assert!(long.join().unwrap());
        });
    }

    #[test]
    fn a_session_in_use_is_closed_by_its_user() {
        let session = session();
        let mut in_use = session.acquire(Duration::ZERO).unwrap();
        in_use.driven().unwrap();
        session.close();
        assert!(lock(&session.state).closing);
        drop(in_use);
        let state = lock(&session.state);
        assert!(!state.closing && !state.in_use && state.idle.is_none());
    }
}
