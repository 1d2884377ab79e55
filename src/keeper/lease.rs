//! A kept lease: what its holder reads, and what the keeper's thread writes. All reads are atomic loads and a look at the clock.

use std::sync::Arc;
use std::time::Duration;

use super::interrupt_signal::InterruptSignal;
use super::sync::{
    AtomicBool, AtomicU8, AtomicU64, Condvar, Mutex, MutexGuard, Ordering, PoisonError,
};
use super::thread as keeper;
use crate::domain::lease_state::LeaseState;
use crate::error::{Error, Kind, Result};
use crate::process::clock::{self, MILLISECOND};
use crate::process::fork;
use crate::process::thread::ThreadNumber;

/// How long [`Lease::release`] waits for a beat that is on its way.
const LANDING: Duration = Duration::from_millis(100);

/// How a lease stands, and why. All but the first two are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum LeaseStatus {
    /// The last beat succeeded.
    Held,
    /// The last beat failed.
    Unknown,
    /// The deadline passed before a beat succeeded.
    Expired,
    /// Another owner has the run.
    Taken,
    /// The run is back on the queue.
    Requeued,
    /// There is no such run any more.
    Gone,
    /// The run has a status that this release does not know.
    Elsewhere,
    /// The run was cancelled.
    Cancelled,
    /// The run was completed by its owner.
    Completed,
    /// The run failed.
    Failed,
    /// The run waits for a person.
    Waiting,
    /// Released by its holder, or with the request.
    Released,
    /// The process that reads is a fork of the one that keeps it.
    Inherited,
}

impl LeaseStatus {
    const ALL: [Self; 13] = [
        Self::Held,
        Self::Unknown,
        Self::Expired,
        Self::Taken,
        Self::Requeued,
        Self::Gone,
        Self::Elsewhere,
        Self::Cancelled,
        Self::Completed,
        Self::Failed,
        Self::Waiting,
        Self::Released,
        Self::Inherited,
    ];

    fn from_code(code: u8) -> Self {
        Self::ALL.get(usize::from(code)).copied().unwrap_or(Self::Elsewhere)
    }

    /// What a beat that was refused says about the lease.
    pub(super) const fn of(state: LeaseState) -> Self {
        match state {
            // A beat never ends so: see `ops::heartbeat`.
            LeaseState::Held => Self::Unknown,
            LeaseState::Taken => Self::Taken,
            LeaseState::Requeued => Self::Requeued,
            LeaseState::Gone => Self::Gone,
            LeaseState::Other => Self::Elsewhere,
            LeaseState::Cancelled => Self::Cancelled,
            LeaseState::Completed => Self::Completed,
            LeaseState::Failed => Self::Failed,
            LeaseState::Waiting => Self::Waiting,
        }
    }

    pub(super) const fn is_final(self) -> bool {
        !matches!(self, Self::Held | Self::Unknown)
    }

    /// Does the holder have to be told? Lost and cancelled are news to it, what it did itself is not.
    const fn is_loss(self) -> bool {
        matches!(
            self,
            Self::Expired
                | Self::Taken
                | Self::Requeued
                | Self::Gone
                | Self::Elsewhere
                | Self::Cancelled
        )
    }

    /// The word of the interface.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Unknown => "unknown",
            Self::Expired | Self::Taken | Self::Requeued | Self::Gone | Self::Elsewhere => "lost",
            Self::Cancelled => "cancelled",
            Self::Completed | Self::Failed | Self::Waiting | Self::Released | Self::Inherited => {
                "stopped"
            }
        }
    }

    /// Why, as the end of a sentence.
    const fn why(self) -> &'static str {
        match self {
            Self::Held => "it is held",
            Self::Unknown => "its last beat failed",
            Self::Expired => "its deadline passed before a beat succeeded",
            Self::Taken => "another owner, or none, has the run",
            Self::Requeued => "the run is back on the queue",
            Self::Gone => "there is no such run any more",
            Self::Elsewhere => "the run is not running, and its status is unknown to this release",
            Self::Cancelled => "the run was cancelled",
            Self::Completed => "the run is completed",
            Self::Failed => "the run has failed",
            Self::Waiting => "the run waits for a person",
            Self::Released => "it was released",
            Self::Inherited => "it belongs to the process that this one was forked from",
        }
    }
}

/// The error of a lease that does not stand well.
pub(super) fn error(standing: LeaseStatus, uid: u64, owner: &str, detail: Option<&str>) -> Error {
    let detail = detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
    let owner = owner.escape_debug();
    match standing {
        LeaseStatus::Cancelled => Error::new(
            Kind::RunCancelled,
            format!("run {uid} was cancelled; '{owner}' does not hold it any more"),
        ),
        _ if standing.as_str() == "stopped" => Error::new(
            Kind::LeaseLost,
            format!(
                "the lease of '{owner}' on run {uid} is not kept any more: {}{detail}",
                standing.why()
            ),
        ),
        _ => Error::new(
            Kind::LeaseLost,
            format!("the lease of '{owner}' on run {uid} is lost: {}{detail}", standing.why()),
        ),
    }
}

/// Whether the holder is interrupted at a loss, and how far that is.
mod notice {
    /// The holder asks for itself.
    pub(super) const OFF: u8 = 0;
    /// It is interrupted at a loss.
    pub(super) const ARMED: u8 = 1;
    /// There was one: to be thrown at the next safe point.
    pub(super) const DUE: u8 = 2;
}

/// What the holder and the thread share.
pub(super) struct SharedLease {
    pub(super) uid: u64,
    pub(super) owner: String,
    /// The fork count of the process that keeps it.
    generation: u32,
    /// The thread whose request keeps it.
    thread: ThreadNumber,
    standing: AtomicU8,
    /// On the lease's clock: that of the last successful beat's sending, plus the lease.
    deadline: AtomicU64,
    beats: AtomicU64,
    last_step: AtomicU64,
    /// Did the silent limit end the beats? A step then has to wake the thread.
    resting: AtomicBool,
    notice: AtomicU8,
    /// Raised once, on the thread that notices the loss.
    on_loss: Option<Arc<InterruptSignal>>,
    /// Never locked in a forked child: the thread may have held it at the moment of the fork.
    talk: Mutex<LeaseProgress>,
    landed: Condvar,
}

#[derive(Default)]
struct LeaseProgress {
    last_error: Option<String>,
    /// Is a beat on its way?
    in_flight: bool,
}

impl SharedLease {
    /// A lease whose first renewal was sent at `sent`.
    pub(super) fn new(
        uid: u64,
        owner: &str,
        generation: u32,
        sent: u64,
        lease: u64,
        now: u64,
        on_loss: Option<Arc<InterruptSignal>>,
    ) -> Self {
        Self {
            uid,
            owner: owner.to_owned(),
            generation,
            thread: ThreadNumber::this(),
            standing: AtomicU8::new(LeaseStatus::Held as u8),
            deadline: AtomicU64::new(sent.saturating_add(lease)),
            beats: AtomicU64::new(1),
            last_step: AtomicU64::new(now),
            resting: AtomicBool::new(false),
            notice: AtomicU8::new(if on_loss.is_some() { notice::ARMED } else { notice::OFF }),
            on_loss,
            talk: Mutex::default(),
            landed: Condvar::new(),
        }
    }

    fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    /// Returns whether the calling thread's request keeps it.
    pub(super) fn is_of_this_thread(&self) -> bool {
        self.thread == ThreadNumber::this()
    }

    fn talk(&self) -> MutexGuard<'_, LeaseProgress> {
        // Nothing that can panic happens under this lock.
        self.talk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the lease stands at `now`, which is not later than this call. Whoever notices that the deadline has passed makes it
    /// final: a process that was stopped and continued never reads a stale `held`, whether or not the thread has woken up.
    pub(super) fn standing(&self, now: u64) -> LeaseStatus {
        if self.is_inherited() {
            return LeaseStatus::Inherited;
        }
        let standing = LeaseStatus::from_code(self.standing.load(Ordering::Acquire));
        if standing.is_final() || now < self.deadline.load(Ordering::Acquire) {
            return standing;
        }
        self.settle(LeaseStatus::Expired)
    }

    /// Has it ended?
    pub(super) fn is_final(&self, now: u64) -> bool {
        self.standing(now).is_final()
    }

    /// Makes a standing final, unless another one is, and tells of a loss. Returns the one that is.
    pub(super) fn settle(&self, standing: LeaseStatus) -> LeaseStatus {
        match self.make_final(standing) {
            Ok(()) => {
                self.announce(standing);
                standing
            }
            Err(before) => before,
        }
    }

    /// Makes a standing final; the one that is, if another is. Of all who try, one succeeds, once.
    pub(super) fn make_final(&self, standing: LeaseStatus) -> std::result::Result<(), LeaseStatus> {
        let mut current = self.standing.load(Ordering::Acquire);
        loop {
            let before = LeaseStatus::from_code(current);
            if before.is_final() {
                return Err(before);
            }
            match self.standing.compare_exchange_weak(
                current,
                standing as u8,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Ok(()),
                Err(found) => current = found,
            }
        }
    }

    /// Tells of a loss, where the holder wants to be interrupted. Only who made it final comes here; a release disarms before it settles.
    pub(super) fn announce(&self, standing: LeaseStatus) {
        if standing.is_loss()
            && self
                .notice
                .compare_exchange(notice::ARMED, notice::DUE, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
            && let Some(on_loss) = &self.on_loss
        {
            on_loss.raise();
        }
    }

    /// The deadline, on the lease's clock.
    pub(super) fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::Acquire)
    }

    /// When the last step was made.
    pub(super) fn last_step(&self) -> u64 {
        self.last_step.load(Ordering::SeqCst)
    }

    /// A beat is about to be sent. False: the lease has ended, and it must not be.
    ///
    /// The standing is read under the lock that [`Lease::release`] takes after it has settled: once that has returned, no beat is
    /// sent any more.
    pub(super) fn set_out(&self, now: u64) -> bool {
        let mut talk = self.talk();
        if self.standing(now).is_final() {
            return false;
        }
        talk.in_flight = true;
        true
    }

    /// The beat has come to its end, whatever that was.
    pub(super) fn land(&self) {
        self.talk().in_flight = false;
        self.landed.notify_all();
    }

    /// A beat that was sent at `sent` succeeded. It counts only if the deadline has not passed meanwhile.
    pub(super) fn renewed(&self, now: u64, sent: u64, lease: u64) {
        let standing = self.standing(now);
        if standing.is_final() {
            return;
        }
        self.talk().last_error = None;
        self.beats.fetch_add(1, Ordering::AcqRel);
        // Before the standing: who reads `held` reads its deadline.
        self.deadline.fetch_max(sent.saturating_add(lease), Ordering::AcqRel);
        // Fails where the holder has settled it meanwhile, which stays.
        let _ = self.standing.compare_exchange(
            LeaseStatus::Unknown as u8,
            LeaseStatus::Held as u8,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
    }

    /// A beat failed, which says nothing about the ownership (rule 17).
    pub(super) fn failed(&self, now: u64, message: String) {
        self.talk().last_error = Some(message);
        if !self.standing(now).is_final() {
            let _ = self.standing.compare_exchange(
                LeaseStatus::Held as u8,
                LeaseStatus::Unknown as u8,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
        }
    }

    /// A beat was refused: the row says why.
    pub(super) fn refused(&self, state: LeaseState) {
        let standing = LeaseStatus::of(state);
        self.talk().last_error = Some(standing.why().to_owned());
        self.settle(standing);
    }

    /// A limit ended the beats. False when a step was made meanwhile.
    pub(super) fn rest(&self, last_step: u64, why: impl FnOnce() -> String) -> bool {
        // The step writes its time and then looks at `resting`; here it is the other way round, so one of the two sees the other.
        let told = self.resting.swap(true, Ordering::SeqCst);
        if self.last_step.load(Ordering::SeqCst) != last_step {
            self.resting.store(false, Ordering::SeqCst);
            return false;
        }
        if !told {
            self.talk().last_error = Some(why());
        }
        true
    }

    /// The kind of the loss that the holder is to be interrupted with.
    pub(super) fn due_loss(&self, now: u64) -> Option<Kind> {
        let is_due = !self.is_inherited() && self.notice.load(Ordering::Acquire) == notice::DUE;
        is_due.then(|| self.error(self.standing(now)).kind)
    }

    /// The holder made a step. Returns whether the thread has to be woken: a limit had ended the beats.
    pub(super) fn step(&self, now: u64) -> bool {
        self.last_step.store(now, Ordering::SeqCst);
        self.resting.swap(false, Ordering::SeqCst)
    }

    /// The loss that the holder is to be interrupted with; once.
    pub(super) fn take_loss(&self, now: u64) -> Option<Error> {
        if self.is_inherited()
            || self
                .notice
                .compare_exchange(notice::DUE, notice::OFF, Ordering::AcqRel, Ordering::Acquire)
                .is_err()
        {
            return None;
        }
        Some(self.error(self.standing(now)))
    }

    /// Ends the lease in the holder's name: nobody is interrupted any more.
    pub(super) fn disarm_and_release(&self) {
        self.disarm();
        self.settle(LeaseStatus::Released);
    }

    /// From here on nobody is interrupted for this lease.
    pub(super) fn disarm(&self) {
        self.notice.store(notice::OFF, Ordering::Release);
    }

    fn error(&self, standing: LeaseStatus) -> Error {
        let detail = match standing {
            LeaseStatus::Expired => self.talk().last_error.clone(),
            _ => None,
        };
        error(standing, self.uid, &self.owner, detail.as_deref())
    }

    pub(super) fn wait_for_landing(&self) {
        let talk = self.talk();
        if talk.in_flight {
            drop(self.landed.wait_timeout_while(talk, LANDING, |talk| talk.in_flight));
        }
    }
}

/// A kept lease in the hands of its holder. Dropping it releases it.
pub struct Lease {
    cell: Arc<SharedLease>,
}

impl Lease {
    pub(super) const fn new(cell: Arc<SharedLease>) -> Self {
        Self { cell }
    }

    fn standing(&self) -> LeaseStatus {
        self.cell.standing(clock::now())
    }

    /// How the lease stands: held, unknown, lost, cancelled or stopped. The last three are final.
    #[must_use]
    pub fn state(&self) -> &'static str {
        self.standing().as_str()
    }

    /// Is the run still the holder's? True in held and unknown.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.standing().is_final()
    }

    /// Milliseconds until the lease runs out (rule 17); 0 when it has ended.
    #[must_use]
    pub fn remaining_ms(&self) -> i64 {
        let now = clock::now();
        if self.cell.standing(now).is_final() {
            return 0;
        }
        i64::try_from(self.cell.deadline().saturating_sub(now) / MILLISECOND).unwrap_or(i64::MAX)
    }

    /// Progress was made: the time without a step counts from here.
    ///
    /// # Errors
    ///
    /// Why the lease has ended. Who got it here is not interrupted with it too.
    pub fn step(&self) -> Result<()> {
        let now = clock::now();
        let standing = self.cell.standing(now);
        if standing == LeaseStatus::Inherited {
            return Err(error(standing, self.cell.uid, &self.cell.owner, None));
        }
        if standing.is_final() {
            self.cell.disarm();
            return Err(self.cell.error(standing));
        }
        if self.cell.step(now) {
            keeper::wake();
        }
        Ok(())
    }

    /// How many beats succeeded, the first renewal included.
    #[must_use]
    pub fn beats(&self) -> i64 {
        i64::try_from(self.cell.beats.load(Ordering::Acquire)).unwrap_or(i64::MAX)
    }

    /// Why the last beat failed, or which limit ended the beats.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        if self.cell.is_inherited() {
            return Some(LeaseStatus::Inherited.why().to_owned());
        }
        self.cell.talk().last_error.clone()
    }

    /// The run.
    #[must_use]
    pub fn run_uid(&self) -> u64 {
        self.cell.uid
    }

    /// The owner.
    #[must_use]
    pub fn claimed_by(&self) -> &str {
        &self.cell.owner
    }

    /// Ends the beats. No beat is sent after it, and one that is on its way is waited for, but not long.
    pub fn release(&self) {
        if !self.cell.is_inherited() {
            self.cell.disarm_and_release();
            self.cell.wait_for_landing();
            keeper::ended();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A forked child's copy is none of its business.
        if !self.cell.is_inherited() {
            self.cell.disarm_and_release();
            keeper::forget(&self.cell);
        }
    }
}

/// What is in a cell, for the model that explores its states (`model.rs`).
#[cfg(test)]
#[cfg(not(feature = "loom"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Image {
    pub(super) standing: LeaseStatus,
    pub(super) deadline: u64,
    pub(super) last_step: u64,
    pub(super) resting: bool,
    pub(super) in_flight: bool,
    /// As in [`notice`].
    pub(super) notice: u8,
}

#[cfg(test)]
#[cfg(not(feature = "loom"))]
impl Image {
    /// Is there a loss to be thrown?
    pub(super) fn is_due(&self) -> bool {
        self.notice == notice::DUE
    }
}

#[cfg(test)]
#[cfg(not(feature = "loom"))]
impl SharedLease {
    /// The cell with this in it, kept so many forks ago.
    pub(super) fn of(image: Image, forks: u32, on_loss: Option<Arc<InterruptSignal>>) -> Self {
        let cell =
            Self::new(7, "worker:a", fork::generation().wrapping_sub(forks), 0, 0, 0, on_loss);
        cell.standing.store(image.standing as u8, Ordering::Relaxed);
        cell.deadline.store(image.deadline, Ordering::Relaxed);
        cell.last_step.store(image.last_step, Ordering::Relaxed);
        cell.resting.store(image.resting, Ordering::Relaxed);
        cell.notice.store(image.notice, Ordering::Relaxed);
        cell.talk().in_flight = image.in_flight;
        cell
    }

    pub(super) fn image(&self) -> Image {
        Image {
            standing: LeaseStatus::from_code(self.standing.load(Ordering::Relaxed)),
            deadline: self.deadline(),
            last_step: self.last_step(),
            resting: self.resting.load(Ordering::Relaxed),
            in_flight: self.talk().in_flight,
            notice: self.notice.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: u64 = 3_000;

    fn cell(on_loss: Option<Arc<InterruptSignal>>) -> SharedLease {
        SharedLease::new(7, "worker:a", fork::generation(), 1_000, LEASE, 1_000, on_loss)
    }

    #[test]
    fn a_code_is_the_standing_it_was_made_from() {
        for standing in LeaseStatus::ALL {
            assert_eq!(LeaseStatus::from_code(standing as u8), standing);
        }
    }

    #[test]
    fn deadline_counts_from_sending_the_last_good_heartbeat() {
        let cell = cell(None);
        assert_eq!(cell.standing(3_999), LeaseStatus::Held);
        cell.renewed(2_500, 2_000, LEASE);
        assert_eq!((cell.deadline(), cell.standing(4_999)), (5_000, LeaseStatus::Held));
        cell.failed(4_999, "no network".to_owned());
        assert_eq!((cell.standing(4_999), cell.deadline()), (LeaseStatus::Unknown, 5_000));
        cell.renewed(4_999, 4_000, LEASE);
        assert_eq!(
            (cell.standing(6_999), cell.talk().last_error.clone()),
            (LeaseStatus::Held, None)
        );
        assert_eq!(cell.standing(7_000), LeaseStatus::Expired, "at the deadline, not after it");
        assert_eq!(cell.beats.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn a_reply_after_the_deadline_comes_too_late() {
        let cell = cell(None);
        cell.renewed(4_000, 3_999, LEASE);
        assert_eq!(
            cell.standing(1_000),
            LeaseStatus::Expired,
            "final, whatever the clock says then"
        );
        assert_eq!(cell.beats.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_failure_after_the_deadline_is_a_loss() {
        let cell = cell(None);
        cell.failed(4_000, "no network".to_owned());
        let standing = cell.standing(4_000);
        assert_eq!((standing, standing.as_str()), (LeaseStatus::Expired, "lost"));
        let message = cell.error(standing).message;
        assert!(
            message.contains("deadline passed")
                && message.contains("no network")
                && message.contains("run 7"),
            "{message}"
        );
    }

    #[test]
    fn what_is_final_stays() {
        let states = [
            (LeaseState::Taken, "lost"),
            (LeaseState::Requeued, "lost"),
            (LeaseState::Gone, "lost"),
            (LeaseState::Other, "lost"),
            (LeaseState::Cancelled, "cancelled"),
            (LeaseState::Completed, "stopped"),
            (LeaseState::Failed, "stopped"),
            (LeaseState::Waiting, "stopped"),
        ];
        for (state, word) in states {
            let cell = cell(None);
            cell.refused(state);
            for attempt in 0..3 {
                match attempt {
                    0 => cell.renewed(1_001, 1_001, LEASE),
                    1 => cell.failed(1_001, "x".to_owned()),
                    _ => cell.disarm_and_release(),
                }
                assert_eq!(cell.standing(9_999).as_str(), word, "{state:?}");
            }
            assert!(!cell.set_out(1_002), "{state:?}");
            let kind = cell.error(cell.standing(1_002)).kind;
            assert_eq!(
                kind,
                if word == "cancelled" { Kind::RunCancelled } else { Kind::LeaseLost }
            );
        }
    }

    #[test]
    fn a_loss_is_told_once_and_never_after_a_release() {
        let signal = Arc::new(InterruptSignal::new());
        let told = || signal.take();
        let on_loss = || Some(Arc::clone(&signal));
        let due = |cell: &SharedLease| cell.notice.load(Ordering::Relaxed) == notice::DUE;
        let lost = cell(on_loss());
        lost.standing(4_000);
        lost.standing(4_001);
        assert_eq!((told(), due(&lost)), (true, true));
        assert_eq!(lost.take_loss(4_000).unwrap().kind, Kind::LeaseLost);
        assert!(lost.take_loss(4_000).is_none() && !due(&lost));

        let cancelled = cell(on_loss());
        cancelled.refused(LeaseState::Cancelled);
        assert_eq!((told(), cancelled.take_loss(1_001).unwrap().kind), (true, Kind::RunCancelled));

        for state in [LeaseState::Completed, LeaseState::Failed, LeaseState::Waiting] {
            let settled = cell(on_loss());
            settled.refused(state);
            assert_eq!((told(), due(&settled)), (false, false));
        }

        let released = cell(on_loss());
        released.disarm_and_release();
        released.standing(9_999);
        assert_eq!(
            (told(), due(&released), released.standing(9_999)),
            (false, false, LeaseStatus::Released)
        );

        let released_when_lost = cell(on_loss());
        released_when_lost.refused(LeaseState::Taken);
        released_when_lost.disarm_and_release();
        assert_eq!((told(), released_when_lost.take_loss(1_001).is_none()), (true, true));
        assert_eq!(released_when_lost.standing(1_001), LeaseStatus::Taken);

        let polled = cell(None);
        polled.refused(LeaseState::Taken);
        assert_eq!((told(), due(&polled)), (false, false));
    }

    #[test]
    fn a_limit_is_named_once_and_a_step_ends_it() {
        let cell = cell(None);
        assert!(cell.rest(1_000, || "no step".to_owned()));
        assert!(cell.rest(1_000, || "again".to_owned()));
        assert_eq!(cell.talk().last_error.as_deref(), Some("no step"));
        cell.last_step.store(1_500, Ordering::SeqCst);
        assert!(!cell.rest(1_000, || "late".to_owned()), "a step was made meanwhile");
        assert_eq!(cell.standing(3_999), LeaseStatus::Held);
    }

    #[test]
    fn a_forked_child_reads_stopped_and_touches_no_lock() {
        let cell = Arc::new(SharedLease::new(
            7,
            "worker:a",
            fork::generation().wrapping_add(1),
            1_000,
            LEASE,
            1_000,
            None,
        ));
        let held = cell.talk.lock().unwrap();
        let lease = Lease::new(Arc::clone(&cell));
        assert_eq!(
            (lease.state(), lease.is_held(), lease.remaining_ms(), lease.beats()),
            ("stopped", false, 0, 1)
        );
        assert!(lease.step().unwrap_err().message.contains("forked"));
        assert!(lease.last_error().unwrap().contains("forked"));
        lease.release();
        drop(lease);
        assert_eq!(cell.standing.load(Ordering::Relaxed), LeaseStatus::Held as u8);
        drop(held);
    }

    #[test]
    fn release_waits_for_a_beat_on_its_way_but_not_for_ever() {
        let cell = Arc::new(cell(None));
        assert!(cell.set_out(1_001));
        let thread = std::thread::spawn({
            let cell = Arc::clone(&cell);
            move || cell.land()
        });
        cell.disarm_and_release();
        cell.wait_for_landing();
        thread.join().unwrap();
        assert!(!cell.talk().in_flight && !cell.set_out(1_002));
        cell.talk().in_flight = true;
        cell.wait_for_landing();
    }
}
