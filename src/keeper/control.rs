//! The requests of lease holders to the heartbeat thread, and its reports about its own state.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::process::thread;

/// How long the end of the thread is awaited. It needs that long only where the machine is
/// overloaded: the thread does not wait for the server.
const THREAD_END: Duration = Duration::from_millis(200);

/// The control of one heartbeat thread. Its leases share it, so that a lease calls nothing above
/// it.
#[derive(Debug, Default)]
pub(super) struct ThreadControl {
    /// Notifies the thread, also while a heartbeat is in flight.
    changed: Notify,
    stop: AtomicBool,
    /// The leases handed to the thread that have not ended.
    live: AtomicUsize,
    /// The system's id of the thread, 0 before it runs.
    tid: AtomicI32,
    finished: Mutex<bool>,
    has_finished: Condvar,
}

impl ThreadControl {
    /// Notifies the thread that a lease was added or released, or has made progress.
    pub(super) fn notify(&self) {
        self.changed.notify_one();
    }

    /// Waits for [`ThreadControl::notify`].
    pub(super) async fn notified(&self) {
        self.changed.notified().await;
    }

    /// Requests the end of the thread.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.notify();
    }

    /// Returns whether the thread is to end.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Counts a lease that was handed to the thread.
    pub(super) fn lease_added(&self) {
        self.live.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts a lease that has ended; once per lease.
    pub(super) fn lease_ended(&self) {
        self.live.fetch_sub(1, Ordering::AcqRel);
    }

    /// Notifies the thread that a holder has released its lease. Where it was the last lease, the
    /// thread ends, and its end is awaited in bounded time.
    pub(super) fn lease_released(&self) {
        self.notify();
        self.wait_while(|| self.live.load(Ordering::Acquire) == 0);
    }

    /// Waits for the end of the thread in bounded time; returns whether it has ended.
    pub(super) fn wait_until_finished(&self) -> bool {
        self.wait_while(|| true)
    }

    /// Waits for the end of the thread while a condition holds, in bounded time.
    fn wait_while(&self, condition: impl Fn() -> bool) -> bool {
        let finished =
            self.has_finished.wait_timeout_while(self.finished(), THREAD_END, |finished| {
                !*finished && condition()
            });
        let has_finished = *finished.unwrap_or_else(PoisonError::into_inner).0;
        if has_finished {
            thread::wait_until_gone(self.tid.load(Ordering::Acquire));
        }
        has_finished
    }

    fn finished(&self) -> MutexGuard<'_, bool> {
        // Nothing that can panic happens under this lock.
        self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called by the thread when it begins.
    pub(super) fn thread_started(&self) {
        self.tid.store(thread::system_id(), Ordering::Release);
    }

    /// Called by the thread at its very end, however that comes.
    pub(super) fn thread_finished(&self) {
        *self.finished() = true;
        self.has_finished.notify_all();
    }
}
