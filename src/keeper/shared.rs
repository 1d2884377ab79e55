//! What the holder of a kept lease and the heartbeat thread share.

use std::sync::Arc;
use std::time::Duration;

use super::control::ThreadControl;
use super::interrupt_signal::InterruptSignal;
use super::status::{EndReason, LeaseStatus};
use super::sync::{
    AtomicBool, AtomicU8, AtomicU64, Condvar, Mutex, MutexGuard, Ordering, PoisonError,
};
use crate::error::{Error, Kind};
use crate::process::fork;
use crate::process::thread::ThreadNumber;

/// How long a release waits for a heartbeat of its lease that is in flight.
const IN_FLIGHT: Duration = Duration::from_millis(100);

/// A kept lease, as its holder and the heartbeat thread share it. Reads are atomic loads.
///
/// A forked child reads `generation` and takes no lock: a thread of the parent may have held it at
/// the moment of the fork.
pub(super) struct SharedLease {
    pub(super) uid: u64,
    pub(super) owner: String,
    /// The fork count of the process that keeps it.
    generation: u32,
    /// The thread whose request keeps it.
    thread: ThreadNumber,
    state: LeaseAtomics,
    /// Raised once, on the thread that notices the loss.
    on_loss: Option<Arc<InterruptSignal>>,
    /// The heartbeat thread.
    pub(super) control: Arc<ThreadControl>,
    progress: Mutex<HeartbeatProgress>,
    heartbeat_ended: Condvar,
}

/// The part of the heartbeat that needs more than an atomic.
#[derive(Default)]
struct HeartbeatProgress {
    last_error: Option<String>,
    /// Whether a heartbeat is in flight.
    in_flight: bool,
}

/// The atomics of a kept lease. Every transition is one of these methods.
pub(super) struct LeaseAtomics {
    /// As [`LeaseStatus::code`].
    status: AtomicU8,
    /// On the lease's clock: the moment at which the last successful heartbeat was sent, plus the
    /// lease.
    deadline: AtomicU64,
    heartbeats: AtomicU64,
    /// On the lease's clock.
    last_step: AtomicU64,
    /// Whether the renewal is paused since no step was made. The next step then notifies the
    /// thread.
    paused: AtomicBool,
    /// As in [`notice`].
    notice: AtomicU8,
}

/// Whether the holder is interrupted when the lease is lost, and how far that has come.
pub(super) mod notice {
    /// It is not.
    pub(in crate::keeper) const OFF: u8 = 0;
    /// It is.
    pub(in crate::keeper) const ARMED: u8 = 1;
    /// The lease is lost, and the holder has to be interrupted at the next safe point.
    pub(in crate::keeper) const DUE: u8 = 2;
}

impl LeaseAtomics {
    /// A lease whose first renewal was sent at `sent`, kept since `now`.
    pub(super) fn new(sent: u64, lease: u64, now: u64, interrupts: bool) -> Self {
        Self {
            status: AtomicU8::new(LeaseStatus::Held.code()),
            deadline: AtomicU64::new(sent.saturating_add(lease)),
            heartbeats: AtomicU64::new(1),
            last_step: AtomicU64::new(now),
            paused: AtomicBool::new(false),
            notice: AtomicU8::new(if interrupts { notice::ARMED } else { notice::OFF }),
        }
    }

    /// The status as it was last written, whatever the time is.
    pub(super) fn status(&self) -> LeaseStatus {
        LeaseStatus::from_code(self.status.load(Ordering::Acquire))
    }

    pub(super) fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::Acquire)
    }

    pub(super) fn last_step(&self) -> u64 {
        self.last_step.load(Ordering::Acquire)
    }

    /// Ends the lease, unless it has ended. One call succeeds; the others return the status that it
    /// set.
    pub(super) fn end(&self, reason: EndReason) -> Result<(), LeaseStatus> {
        let mut current = self.status.load(Ordering::Acquire);
        loop {
            let status = LeaseStatus::from_code(current);
            if status.is_final() {
                return Err(status);
            }
            match self.status.compare_exchange_weak(
                current,
                LeaseStatus::Ended(reason).code(),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Ok(()),
                Err(found) => current = found,
            }
        }
    }

    /// A heartbeat succeeded: moves the deadline. A lease that has ended stays ended.
    pub(super) fn renewed(&self, deadline: u64) {
        self.heartbeats.fetch_add(1, Ordering::AcqRel);
        // Before the status: a reader of `held` reads its deadline.
        self.deadline.fetch_max(deadline, Ordering::AcqRel);
        self.replace(LeaseStatus::Unknown, LeaseStatus::Held);
    }

    /// A heartbeat failed: the ownership is unknown. A lease that has ended stays ended.
    pub(super) fn failed(&self) {
        self.replace(LeaseStatus::Held, LeaseStatus::Unknown);
    }

    fn replace(&self, before: LeaseStatus, after: LeaseStatus) {
        // Fails where the holder has ended it meanwhile, which stays.
        let _ = self.status.compare_exchange(
            before.code(),
            after.code(),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
    }

    /// Records a step of the holder. Returns whether the renewal was paused, so that the thread has
    /// to be notified.
    pub(super) fn step(&self, now: u64) -> bool {
        self.last_step.store(now, Ordering::Release);
        // After the step, and in one with it: see pause().
        self.paused.swap(false, Ordering::AcqRel)
    }

    /// Pauses the renewal since the last step was made at `last_step`. Returns whether it was
    /// paused before; none when a step was made meanwhile.
    pub(super) fn pause(&self, last_step: u64) -> Option<bool> {
        // The step writes its time and then exchanges `paused`; here it is the other way round. The
        // two exchanges come one after the other: the later one sees what was written before the
        // earlier.
        let before = self.paused.swap(true, Ordering::AcqRel);
        if self.last_step() == last_step {
            return Some(before);
        }
        self.paused.store(false, Ordering::Release);
        None
    }

    /// Marks that the holder has to be interrupted. Returns false where the interrupt is not armed.
    pub(super) fn loss_is_due(&self) -> bool {
        self.notice
            .compare_exchange(notice::ARMED, notice::DUE, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Returns whether an interruption is due.
    pub(super) fn notice_is_due(&self) -> bool {
        self.notice.load(Ordering::Acquire) == notice::DUE
    }

    /// Takes the interruption that is due; once.
    pub(super) fn take_notice(&self) -> bool {
        self.notice
            .compare_exchange(notice::DUE, notice::OFF, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// From here on the holder is not interrupted for this lease.
    pub(super) fn disarm(&self) {
        self.notice.store(notice::OFF, Ordering::Release);
    }
}

impl SharedLease {
    /// A lease of the calling thread, with the state that [`LeaseAtomics::new`] made.
    pub(super) fn new(
        uid: u64,
        owner: &str,
        state: LeaseAtomics,
        on_loss: Option<Arc<InterruptSignal>>,
        control: Arc<ThreadControl>,
    ) -> Self {
        Self {
            uid,
            owner: owner.to_owned(),
            generation: fork::generation(),
            thread: ThreadNumber::this(),
            state,
            on_loss,
            control,
            progress: Mutex::new(HeartbeatProgress::default()),
            heartbeat_ended: Condvar::new(),
        }
    }

    /// Returns whether the process that reads is a fork of the one that keeps the lease.
    pub(super) fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    /// Returns whether the calling thread's request keeps it.
    pub(super) fn is_of_this_thread(&self) -> bool {
        self.thread == ThreadNumber::this()
    }

    fn progress(&self) -> MutexGuard<'_, HeartbeatProgress> {
        // Nothing that can panic happens under this lock.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The status at `now`, which is not later than this call. A reader that notices that the
    /// deadline has passed ends the lease: a process that was stopped and continued never reads a
    /// stale `held`, whether or not the thread has run.
    pub(super) fn status(&self, now: u64) -> LeaseStatus {
        if self.is_inherited() {
            return LeaseStatus::Ended(EndReason::Inherited);
        }
        let status = self.state.status();
        if status.is_final() || now < self.state.deadline() {
            return status;
        }
        self.end(EndReason::Expired)
    }

    /// Returns whether it has ended.
    pub(super) fn is_final(&self, now: u64) -> bool {
        self.status(now).is_final()
    }

    /// Ends the lease, unless it has ended, and interrupts the holder of one that is lost. Returns
    /// the final status.
    pub(super) fn end(&self, reason: EndReason) -> LeaseStatus {
        match self.make_final(reason) {
            Ok(()) => {
                self.announce(reason);
                LeaseStatus::Ended(reason)
            }
            Err(before) => before,
        }
    }

    /// The first half of [`SharedLease::end`]. One call succeeds.
    pub(super) fn make_final(&self, reason: EndReason) -> Result<(), LeaseStatus> {
        self.state.end(reason)?;
        self.control.lease_ended();
        Ok(())
    }

    /// The second half, after the call that succeeded: interrupts the holder, where that is
    /// requested. A release disarms before it ends the lease.
    pub(super) fn announce(&self, reason: EndReason) {
        if reason.is_loss()
            && self.state.loss_is_due()
            && let Some(on_loss) = &self.on_loss
        {
            on_loss.raise();
        }
    }

    /// The deadline, on the lease's clock.
    pub(super) fn deadline(&self) -> u64 {
        self.state.deadline()
    }

    /// When the last step was made, on the lease's clock.
    pub(super) fn last_step(&self) -> u64 {
        self.state.last_step()
    }

    /// Number of successful heartbeats, the first renewal included.
    pub(super) fn heartbeats(&self) -> u64 {
        self.state.heartbeats.load(Ordering::Acquire)
    }

    /// Why the last heartbeat failed, or which limit paused the renewal.
    pub(super) fn last_error(&self) -> Option<String> {
        self.progress().last_error.clone()
    }

    /// Records a step of the holder, and notifies the thread where the renewal was paused. Returns
    /// whether it was.
    pub(super) fn step(&self, now: u64) -> bool {
        let was_paused = self.state.step(now);
        if was_paused {
            self.control.notify();
        }
        was_paused
    }

    /// A heartbeat is about to be sent. Returns false when the lease has ended and it must not be.
    ///
    /// The status is read under the lock that a release takes after it has ended the lease: once
    /// that has returned, no heartbeat is sent.
    pub(super) fn heartbeat_starts(&self, now: u64) -> bool {
        let mut progress = self.progress();
        if self.is_final(now) {
            return false;
        }
        progress.in_flight = true;
        true
    }

    /// The heartbeat in flight has ended, with whatever outcome.
    pub(super) fn heartbeat_ends(&self) {
        self.progress().in_flight = false;
        self.heartbeat_ended.notify_all();
    }

    /// A heartbeat that was sent at `sent` succeeded. It counts only if the deadline has not passed
    /// meanwhile.
    pub(super) fn renewed(&self, now: u64, sent: u64, lease: u64) {
        if !self.is_final(now) {
            self.progress().last_error = None;
            self.state.renewed(sent.saturating_add(lease));
        }
    }

    /// A heartbeat failed: the ownership is unknown (rule 17).
    pub(super) fn failed(&self, now: u64, message: String) {
        self.progress().last_error = Some(message);
        if !self.is_final(now) {
            self.state.failed();
        }
    }

    /// A heartbeat was refused, for the reason that the row shows.
    pub(super) fn refused(&self, reason: EndReason) {
        self.progress().last_error = Some(reason.clause().to_owned());
        self.end(reason);
    }

    /// A limit pauses the renewal. Returns false when a step was made meanwhile.
    pub(super) fn pause(&self, last_step: u64, why: impl FnOnce() -> String) -> bool {
        match self.state.pause(last_step) {
            None => false,
            Some(true) => true,
            Some(false) => {
                self.progress().last_error = Some(why());
                true
            }
        }
    }

    /// Returns the kind of the loss that the holder is to be interrupted with.
    pub(super) fn due_loss(&self, now: u64) -> Option<Kind> {
        if self.is_inherited() || !self.state.notice_is_due() {
            return None;
        }
        match self.status(now) {
            LeaseStatus::Ended(reason) => Some(reason.kind()),
            LeaseStatus::Held | LeaseStatus::Unknown => None,
        }
    }

    /// Returns the loss that the holder is to be interrupted with; once.
    pub(super) fn take_loss(&self, now: u64) -> Option<Error> {
        if self.is_inherited() || !self.state.take_notice() {
            return None;
        }
        match self.status(now) {
            LeaseStatus::Ended(reason) => Some(self.error(reason)),
            LeaseStatus::Held | LeaseStatus::Unknown => None,
        }
    }

    /// Releases the lease for the holder, which is not interrupted any more.
    pub(super) fn disarm_and_release(&self) {
        self.disarm();
        self.end(EndReason::Released);
    }

    /// From here on the holder is not interrupted for this lease.
    pub(super) fn disarm(&self) {
        self.state.disarm();
    }

    /// The error of a lease that ended for a reason.
    pub(super) fn error(&self, reason: EndReason) -> Error {
        let detail = if reason == EndReason::Expired { self.last_error() } else { None };
        reason.error(self.uid, &self.owner, detail.as_deref())
    }

    /// Waits in bounded time for a heartbeat that is in flight.
    pub(super) fn wait_for_heartbeat(&self) {
        let progress = self.progress();
        if progress.in_flight {
            drop(
                self.heartbeat_ended
                    .wait_timeout_while(progress, IN_FLIGHT, |progress| progress.in_flight),
            );
        }
    }
}

/// The state of a shared lease, for the model that explores all states (`model.rs`).
#[cfg(test)]
#[cfg(not(feature = "loom"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Image {
    pub(super) status: LeaseStatus,
    pub(super) deadline: u64,
    pub(super) last_step: u64,
    pub(super) paused: bool,
    pub(super) in_flight: bool,
    /// As in [`notice`].
    pub(super) notice: u8,
}

#[cfg(test)]
#[cfg(not(feature = "loom"))]
impl Image {
    /// Returns whether there is a loss to be thrown.
    pub(super) fn is_due(&self) -> bool {
        self.notice == notice::DUE
    }
}

#[cfg(test)]
#[cfg(not(feature = "loom"))]
impl SharedLease {
    /// The lease with these contents, kept so many forks ago.
    pub(super) fn of(image: Image, forks: u32, on_loss: Option<Arc<InterruptSignal>>) -> Self {
        let state = LeaseAtomics {
            status: AtomicU8::new(image.status.code()),
            deadline: AtomicU64::new(image.deadline),
            heartbeats: AtomicU64::new(1),
            last_step: AtomicU64::new(image.last_step),
            paused: AtomicBool::new(image.paused),
            notice: AtomicU8::new(image.notice),
        };
        let control = Arc::new(ThreadControl::default());
        control.lease_added();
        // Another lease of the thread: a release waits for no end of a thread that does not exist.
        control.lease_added();
        let mut lease = Self::new(7, "worker:a", state, on_loss, control);
        lease.generation = fork::generation().wrapping_sub(forks);
        lease.progress().in_flight = image.in_flight;
        lease
    }

    pub(super) fn image(&self) -> Image {
        Image {
            status: self.state.status(),
            deadline: self.deadline(),
            last_step: self.last_step(),
            paused: self.state.paused.load(Ordering::Relaxed),
            in_flight: self.progress().in_flight,
            notice: self.state.notice.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
#[cfg(not(feature = "loom"))]
mod tests {
    use super::super::lease::Lease;
    use super::*;

    const LEASE: u64 = 3_000;

    fn lease(on_loss: Option<Arc<InterruptSignal>>) -> SharedLease {
        let notice = if on_loss.is_some() { notice::ARMED } else { notice::OFF };
        let image = Image {
            status: LeaseStatus::Held,
            deadline: 1_000 + LEASE,
            last_step: 1_000,
            paused: false,
            in_flight: false,
            notice,
        };
        SharedLease::of(image, 0, on_loss)
    }

    #[test]
    fn deadline_counts_from_sending_the_last_good_heartbeat() {
        let lease = lease(None);
        assert_eq!(lease.status(3_999), LeaseStatus::Held);
        lease.renewed(2_500, 2_000, LEASE);
        assert_eq!((lease.deadline(), lease.status(4_999)), (5_000, LeaseStatus::Held));
        lease.failed(4_999, "no network".to_owned());
        assert_eq!((lease.status(4_999), lease.deadline()), (LeaseStatus::Unknown, 5_000));
        lease.renewed(4_999, 4_000, LEASE);
        assert_eq!((lease.status(6_999), lease.last_error()), (LeaseStatus::Held, None));
        assert_eq!(
            lease.status(7_000),
            LeaseStatus::Ended(EndReason::Expired),
            "at the deadline, not after it"
        );
        assert_eq!(lease.heartbeats(), 3);
    }

    #[test]
    fn a_reply_after_the_deadline_comes_too_late() {
        let lease = lease(None);
        lease.renewed(4_000, 3_999, LEASE);
        assert_eq!(
            lease.status(1_000),
            LeaseStatus::Ended(EndReason::Expired),
            "final, whatever the clock says then"
        );
        assert_eq!(lease.heartbeats(), 1);
    }

    #[test]
    fn a_failure_after_the_deadline_is_a_loss() {
        let lease = lease(None);
        lease.failed(4_000, "no network".to_owned());
        let status = lease.status(4_000);
        assert_eq!((status, status.as_str()), (LeaseStatus::Ended(EndReason::Expired), "lost"));
        let message = lease.error(EndReason::Expired).message;
        assert!(
            message.contains("deadline passed")
                && message.contains("no network")
                && message.contains("run 7"),
            "{message}"
        );
    }

    #[test]
    fn what_is_final_stays() {
        let reasons = [
            (EndReason::Taken, "lost"),
            (EndReason::Requeued, "lost"),
            (EndReason::Gone, "lost"),
            (EndReason::UnknownStatus, "lost"),
            (EndReason::Cancelled, "cancelled"),
            (EndReason::Completed, "stopped"),
            (EndReason::Failed, "stopped"),
            (EndReason::Waiting, "stopped"),
        ];
        for (reason, word) in reasons {
            let lease = lease(None);
            lease.refused(reason);
            for attempt in 0..3 {
                match attempt {
                    0 => lease.renewed(1_001, 1_001, LEASE),
                    1 => lease.failed(1_001, "x".to_owned()),
                    _ => lease.disarm_and_release(),
                }
                assert_eq!(lease.status(9_999).as_str(), word, "{reason:?}");
            }
            assert!(!lease.heartbeat_starts(1_002), "{reason:?}");
        }
    }

    #[test]
    fn a_loss_is_signalled_once_and_never_after_a_release() {
        let signal = Arc::new(InterruptSignal::new());
        let signalled = || signal.take();
        let on_loss = || Some(Arc::clone(&signal));
        let due = |lease: &SharedLease| lease.state.notice.load(Ordering::Relaxed) == notice::DUE;
        let lost = lease(on_loss());
        lost.status(4_000);
        lost.status(4_001);
        assert_eq!((signalled(), due(&lost)), (true, true));
        assert_eq!(lost.take_loss(4_000).unwrap().kind, Kind::LeaseLost);
        assert!(lost.take_loss(4_000).is_none() && !due(&lost));

        let cancelled = lease(on_loss());
        cancelled.refused(EndReason::Cancelled);
        assert_eq!(
            (signalled(), cancelled.take_loss(1_001).unwrap().kind),
            (true, Kind::RunCancelled)
        );

        for reason in [EndReason::Completed, EndReason::Failed, EndReason::Waiting] {
            let ended = lease(on_loss());
            ended.refused(reason);
            assert_eq!((signalled(), due(&ended)), (false, false));
        }

        let released = lease(on_loss());
        released.disarm_and_release();
        released.status(9_999);
        assert_eq!(
            (signalled(), due(&released), released.status(9_999)),
            (false, false, LeaseStatus::Ended(EndReason::Released))
        );

        let released_when_lost = lease(on_loss());
        released_when_lost.refused(EndReason::Taken);
        released_when_lost.disarm_and_release();
        assert_eq!((signalled(), released_when_lost.take_loss(1_001).is_none()), (true, true));
        assert_eq!(released_when_lost.status(1_001), LeaseStatus::Ended(EndReason::Taken));

        let polled = lease(None);
        polled.refused(EndReason::Taken);
        assert_eq!((signalled(), due(&polled)), (false, false));
    }

    #[test]
    fn a_limit_is_named_once_and_a_step_ends_it() {
        let lease = lease(None);
        assert!(lease.pause(1_000, || "no step".to_owned()));
        assert!(lease.pause(1_000, || "again".to_owned()));
        assert_eq!(lease.last_error().as_deref(), Some("no step"));
        lease.step(1_500);
        assert!(!lease.pause(1_000, || "late".to_owned()), "a step was made meanwhile");
        assert_eq!(lease.status(3_999), LeaseStatus::Held);
    }

    #[test]
    fn a_forked_child_reads_stopped_and_touches_no_lock() {
        let shared = lease(None);
        let image = Image { in_flight: true, ..shared.image() };
        let shared = Arc::new(SharedLease::of(image, 1, None));
        let held = shared.progress.lock().unwrap();
        let lease = Lease::new(Arc::clone(&shared));
        assert_eq!(
            (lease.state(), lease.is_held(), lease.remaining_ms(), lease.beats()),
            ("stopped", false, 0, 1)
        );
        assert!(lease.step().unwrap_err().message.contains("forked"));
        assert!(lease.last_error().unwrap().contains("forked"));
        lease.release();
        drop(lease);
        assert_eq!(shared.state.status(), LeaseStatus::Held);
        drop(held);
    }

    #[test]
    fn release_waits_for_a_heartbeat_in_bounded_time() {
        let lease = Arc::new(lease(None));
        assert!(lease.heartbeat_starts(1_001));
        let thread = std::thread::spawn({
            let lease = Arc::clone(&lease);
            move || lease.heartbeat_ends()
        });
        lease.disarm_and_release();
        lease.wait_for_heartbeat();
        thread.join().unwrap();
        assert!(!lease.progress().in_flight && !lease.heartbeat_starts(1_002));
        lease.progress().in_flight = true;
        lease.wait_for_heartbeat();
    }
}
