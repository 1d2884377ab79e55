//! The heartbeat thread: it sends the heartbeats of all kept leases of its process, whatever the
//! process is doing (rules 16 to 20).
//!
//! It is started with the first kept lease and ends with the last. It never calls the host, and all
//! signals are blocked in it. What it shares with the holders of leases is each lease's
//! [`SharedLease`], the session of the thread that keeps the lease, and the inbox here; a forked
//! child touches none of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::control::ThreadControl;
use super::heartbeat::{self, OwnSessions};
use super::options::KeepOptions;
use super::schedule::{Limit, Next, Schedule};
use super::shared::SharedLease;
use crate::config::options::Options;
use crate::error::{Error, Result};
use crate::process::clock::{self, SECOND};
use crate::process::sessions::{Key, SharedSession};

/// The longest sleep. Timers do not count suspend, the deadlines do: after it the thread reads the
/// clock again.
pub(super) const LONGEST_SLEEP: u64 = SECOND;

/// What the holders of leases and the thread share beside the leases.
#[derive(Default)]
pub(super) struct HeartbeatThread {
    pub(super) control: Arc<ThreadControl>,
    inbox: Mutex<Inbox>,
}

#[derive(Default)]
struct Inbox {
    leases: Vec<ManagedLease>,
    /// The thread takes no more leases.
    closed: bool,
    /// Number of leases ever put in.
    count: u64,
}

/// A lease with what its heartbeats need.
pub(super) struct ManagedLease {
    pub(super) shared: Arc<SharedLease>,
    pub(super) schedule: Schedule,
    pub(super) keep: KeepOptions,
    /// The session of the thread that keeps the lease.
    pub(super) session: Arc<SharedSession>,
    pub(super) key: Key,
    pub(super) options: Options,
}

impl HeartbeatThread {
    /// Puts a lease into the inbox, and returns it. Gives `make` back when the thread takes no
    /// more.
    pub(super) fn put<F: FnOnce(Arc<ThreadControl>) -> ManagedLease>(
        &self,
        make: F,
    ) -> Result<Arc<SharedLease>, F> {
        let mut inbox = self.inbox();
        if inbox.closed {
            return Err(make);
        }
        self.control.lease_added();
        let mut lease = make(Arc::clone(&self.control));
        let shared = Arc::clone(&lease.shared);
        lease.schedule = lease.schedule.numbered(inbox.count);
        inbox.count += 1;
        inbox.leases.push(lease);
        drop(inbox);
        self.control.notify();
        Ok(shared)
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        // Nothing that can panic leaves the inbox half written.
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `look` on the leases in the inbox.
    pub(super) fn look_at_new<T>(&self, look: impl FnOnce(&[ManagedLease]) -> T) -> T {
        look(&self.inbox().leases)
    }

    /// The runtime on which the thread sleeps between heartbeats.
    pub(super) fn timer() -> Result<Runtime> {
        Builder::new_current_thread().enable_time().build().map_err(|error| {
            Error::resource(format!("cannot set up the heartbeat thread: {error}"))
        })
    }

    /// The body of the thread.
    pub(super) fn run(&self, timer: Runtime) {
        let _finish = Finish(self);
        self.control.thread_started();
        // A panic is a defect of this crate: the leases expire, and every read returns that.
        let _ = catch_unwind(AssertUnwindSafe(|| self.send_heartbeats(&timer)));
        let _ = catch_unwind(AssertUnwindSafe(move || drop(timer)));
    }

    /// Sends the heartbeat that is due, waits for the next one, until no lease is left.
    fn send_heartbeats(&self, timer: &Runtime) {
        let mut leases: Vec<ManagedLease> = Vec::new();
        let mut own = OwnSessions::default();
        let mut random = fastrand::Rng::new();
        while self.collect(&mut leases) {
            match next(&leases, clock::now()) {
                Work::Heartbeat(index) => {
                    heartbeat::send(self, &mut leases, index, &mut own, random.u64(..));
                }
                Work::WaitUntil(time) => timer.block_on(self.sleep_until(time)),
            }
        }
        own.close_all();
    }

    /// Adds new leases and removes those that have ended. Returns false when no lease is left.
    fn collect(&self, leases: &mut Vec<ManagedLease>) -> bool {
        let now = clock::now();
        leases.retain(|lease| !lease.shared.is_final(now));
        let mut inbox = self.inbox();
        leases.append(&mut inbox.leases);
        if leases.is_empty() || self.control.is_stopped() {
            inbox.closed = true;
            return false;
        }
        true
    }

    /// Sleeps until a moment on the lease's clock, or until the thread is notified.
    pub(super) async fn sleep_until(&self, time: u64) {
        let wait = Duration::from_nanos(time.saturating_sub(clock::now()));
        let _ = tokio::time::timeout(wait, self.control.notified()).await;
    }
}

/// Reports the end of the thread, also after a panic.
struct Finish<'a>(&'a HeartbeatThread);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.inbox().closed = true;
        self.0.control.thread_finished();
    }
}

/// What the thread does next.
enum Work {
    Heartbeat(usize),
    WaitUntil(u64),
}

/// Of the leases whose heartbeat is due, the one that has waited longest; otherwise the moment at
/// which something has to be done.
fn next(leases: &[ManagedLease], now: u64) -> Work {
    let mut longest: Option<(u64, usize)> = None;
    let mut until = now.saturating_add(LONGEST_SLEEP);
    for (index, lease) in leases.iter().enumerate() {
        until = until.min(lease.shared.deadline());
        match lease.next(now) {
            Next::Heartbeat if longest.is_none_or(|(due, _)| lease.schedule.due() < due) => {
                longest = Some((lease.schedule.due(), index));
            }
            Next::Heartbeat | Next::Pause(_) => {}
            Next::Wait(time) => until = until.min(time),
        }
    }
    longest.map_or(Work::WaitUntil(until), |(_, index)| Work::Heartbeat(index))
}

impl ManagedLease {
    /// Returns what is to be done for this lease. A limit that is reached pauses the renewal.
    pub(super) fn next(&self, now: u64) -> Next {
        loop {
            let last_step = self.shared.last_step();
            match self.schedule.next(now, last_step) {
                Next::Pause(limit) if !self.shared.pause(last_step, || self.why_paused(limit)) => {}
                next => return next,
            }
        }
    }

    fn why_paused(&self, limit: Limit) -> String {
        match limit {
            Limit::Stalled => format!(
                "no step() for {} s (maxSilentSeconds): the renewal is paused and the lease expires; a \
                 step() before that resumes it",
                self.keep.max_silent / SECOND
            ),
            Limit::Total => format!(
                "kept for {} s (maxSeconds): the renewal has ended and the lease expires",
                self.keep.max_total / SECOND
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::heartbeat::tests::lease;
    use super::*;

    #[test]
    fn the_thread_sleeps_for_a_second_at_most() {
        // Timers stop while the machine is suspended: a deadline may pass before its timer fires.
        let now = 5 * SECOND;
        let leases = [lease(now, 3_000), lease(now, 900)];
        assert!(
            matches!(next(&leases, now), Work::WaitUntil(time) if time > now && time <= now + SECOND)
        );
    }

    #[test]
    fn a_thread_that_has_ended_takes_no_lease() {
        let thread = HeartbeatThread::default();
        let shared = thread.put(|_| lease(0, 900));
        assert!(shared.is_ok());
        drop(Finish(&thread));
        assert!(thread.put(|_| lease(0, 900)).is_err());
    }
}
