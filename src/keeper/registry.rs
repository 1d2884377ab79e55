//! The kept leases of one process, and its heartbeat thread.
//!
//! The threads of the host use the registry; the heartbeat thread never locks it, so a caller may
//! wait for that thread while it holds the lock. A forked child has a registry of its own.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use super::control::ThreadControl;
use super::interrupt_signal::InterruptSignal;
use super::lease::Lease;
use super::options::KeepOptions;
use super::schedule::Schedule;
use super::shared::{LeaseAtomics, SharedLease};
use super::status::EndReason;
use super::thread::{HeartbeatThread, ManagedLease};
use crate::config::options::Options;
use crate::db::Session;
use crate::domain::holder::Holder;
use crate::error::{Error, Kind, Result};
use crate::ops::heartbeat::{End, HeartbeatResult, send_heartbeat};
use crate::process::clock;
use crate::process::fork::{self, PerProcess};
use crate::process::sessions::{self, Key};
use crate::process::signals::spawn_masked;

#[derive(Default)]
struct Registry {
    /// Those that their holders have not dropped, and some that they have.
    leases: Vec<Weak<SharedLease>>,
    thread: Option<RunningThread>,
}

struct RunningThread {
    shared: Arc<HeartbeatThread>,
    handle: JoinHandle<()>,
}

static CURRENT: PerProcess<Mutex<Registry>> = PerProcess::new();

fn registry() -> MutexGuard<'static, Registry> {
    let Ok(registry) = CURRENT.get_or_make(|_| Ok::<_, Infallible>(Mutex::default()));
    lock(registry)
}

fn existing() -> Option<MutexGuard<'static, Registry>> {
    CURRENT.get().map(lock)
}

fn lock(mutex: &Mutex<Registry>) -> MutexGuard<'_, Registry> {
    // Nothing that can panic leaves the registry half written.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Renews a lease on the calling thread's session, and keeps it from then on for the request of the
/// calling thread. `on_loss` is raised once when the lease is lost or cancelled, on any thread.
///
/// # Errors
///
/// A lost lease or a cancelled run when the owner does not hold it; a connection or query error; a
/// resource error when the heartbeat thread cannot be started.
pub fn keep(
    key: &Key,
    options: &Options,
    uid: u64,
    owner: &str,
    keep: KeepOptions,
    on_loss: Option<Arc<InterruptSignal>>,
) -> Result<Lease> {
    fork::watch()?;
    let mut sent = 0;
    let first = sessions::call(key, async |session: &mut Session| {
        let sending = || {
            sent = clock::now();
            true
        };
        let holder = Holder { run_uid: uid, owner };
        send_heartbeat(session, options, holder, keep.lease_seconds, End::Exact, sending).await
    })?;
    if let HeartbeatResult::NotOwner(state) = first {
        let reason = EndReason::of(state).unwrap_or(EndReason::Taken);
        return Err(reason.error(uid, owner, None));
    }
    let state = LeaseAtomics::new(sent, keep.lease(), clock::now(), on_loss.is_some());
    let make = |control: Arc<ThreadControl>| {
        let shared = Arc::new(SharedLease::new(uid, owner, state, on_loss, control));
        ManagedLease {
            shared,
            schedule: Schedule::new(&keep, sent),
            keep,
            session: sessions::shared(key),
            key: key.clone(),
            options: options.clone(),
        }
    };
    let shared = registry().hand_over(make)?;
    Ok(Lease::new(shared))
}

/// Releases every lease that the calling thread keeps, in bounded time and without waiting for the
/// server: at the end of a request. The leases of other threads stay renewed; the heartbeat thread
/// ends when none is left. In a forked child that keeps none, this has no effect.
pub fn end_thread() {
    end(SharedLease::is_of_this_thread);
}

/// Releases every lease of this process, whichever thread keeps it, and ends the heartbeat thread:
/// at the end of the process. In a forked child that keeps none, this has no effect.
pub fn end_all() {
    end(|_| true);
}

fn end(ends: impl Fn(&SharedLease) -> bool) {
    let Some(mut registry) = existing() else {
        return;
    };
    registry.leases.retain(|lease| match lease.upgrade() {
        Some(lease) if ends(&lease) => {
            lease.disarm_and_release();
            false
        }
        lease => lease.is_some(),
    });
    let now = clock::now();
    if registry.leases.iter().filter_map(Weak::upgrade).all(|lease| lease.is_final(now)) {
        registry.end_thread();
    } else if let Some(thread) = &registry.thread {
        thread.shared.control.notify();
    }
}

/// Returns a loss of the calling thread's leases that is to be thrown, after its `on_loss` was
/// raised. Each is returned once, and none after its lease was released.
pub fn take_loss() -> Option<Error> {
    take_loss_if(|_| true)
}

/// As [`take_loss`], for a loss of a kind that `may` be thrown now. The others stay due.
pub fn take_loss_if(may: impl Fn(Kind) -> bool) -> Option<Error> {
    let registry = existing()?;
    let now = clock::now();
    registry
        .leases
        .iter()
        .filter_map(Weak::upgrade)
        .filter(|lease| lease.is_of_this_thread() && lease.due_loss(now).is_some_and(&may))
        .find_map(|lease| lease.take_loss(now))
}

impl Registry {
    /// Gives a lease to the thread, and starts one if there is none. `make` makes the lease for the
    /// thread that takes it.
    fn hand_over(
        &mut self,
        make: impl FnOnce(Arc<ThreadControl>) -> ManagedLease,
    ) -> Result<Arc<SharedLease>> {
        self.leases.retain(|lease| lease.strong_count() > 0);
        let make = match &self.thread {
            Some(thread) => match thread.shared.put(make) {
                Ok(lease) => {
                    self.leases.push(Arc::downgrade(&lease));
                    return Ok(lease);
                }
                Err(make) => make,
            },
            None => make,
        };
        // A thread that is there takes no more leases.
        self.end_thread();
        let shared = Arc::new(HeartbeatThread::default());
        let timer = HeartbeatThread::timer()?;
        let Ok(lease) = shared.put(make) else {
            return Err(Error::resource("the heartbeat thread takes no lease"));
        };
        let spawned = spawn_masked("nrllm-heartbeat", {
            let shared = Arc::clone(&shared);
            move || shared.run(timer)
        });
        match spawned {
            Ok(handle) => {
                self.thread = Some(RunningThread { shared, handle });
                self.leases.push(Arc::downgrade(&lease));
                Ok(lease)
            }
            Err(error) => Err(Error::resource(format!(
                "cannot start the heartbeat thread: {error}; check the limits of processes and memory"
            ))
            .with_source(error)),
        }
    }

    /// Ends the thread, in bounded time. One that has not ended by then uses no lease any more, and
    /// ends by itself.
    fn end_thread(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.shared.control.stop();
            if thread.shared.control.wait_until_finished() {
                let _ = thread.handle.join();
            }
        }
    }
}
