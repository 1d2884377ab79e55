//! A model of a kept lease, explored exhaustively at small scale (rules 16 to 20): one lease that
//! interrupts, the heartbeat thread, the thread that runs PHP, the row with a reaper, another
//! worker and a user who cancels, in every order of their steps. Heartbeats are lost before or
//! after they are executed, or are executed long after their time limit; replies arrive at any
//! time; progress is reported or not; the run is completed; the lease is released, destroyed, or
//! ends with the request, and another request follows, with its own lease.
//!
//! The model explores the crate's own code: a state holds the contents of a lease's `SharedLease`,
//! of the `Schedule` of its heartbeats and of the `InterruptSignal`; each step creates these
//! objects from the state, calls the method, and reads the result back. Where another thread can
//! interleave with the parts of a method, the model calls the parts. The row and the order of the
//! heartbeat thread's calls belong to the model.
//!
//! Each rule is necessary: a test removes it and requires that the explorer finds the path to the
//! violation.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::interrupt_signal::InterruptSignal;
use super::lease::Lease;
use super::options::KeepOptions;
use super::schedule::{Next, Schedule};
use super::shared::{Image, SharedLease, notice};
use super::status::{EndReason, LeaseStatus};
use crate::domain::lease_state::LeaseState;
use crate::process::clock;

/// The lease, the interval of its heartbeats and its limits, in ticks.
const LEASE: u64 = 3;
const EVERY: u64 = 1;
const MAX_SILENT: u64 = 2;
const MAX_TOTAL: u64 = 4;

/// The size of the explored model.
#[derive(Debug, Clone, Copy)]
struct Scale {
    /// In ticks.
    horizon: u64,
    /// Whether there is a second lease, which is lost too.
    two: bool,
}

/// Long enough for both limits, for a lease that expires after its last heartbeat, and for a reaper
/// that runs after that.
const LONG: Scale = Scale { horizon: 7, two: false };
/// Two leases that interfere with each other, past the first deadline.
const TWO: Scale = Scale { horizon: 3, two: true };

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Status {
    Ours,
    Requeued,
    Taken,
    Cancelled,
    Completed,
}

/// The state of the heartbeat thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum HeartbeatThread {
    Waits,
    /// The schedule requires a heartbeat. It is not sent yet, since the connection may be delayed.
    Decided,
    /// The request is in flight; with the time of the send.
    Sent(u64),
    /// The reply is in flight.
    Executed(u64, Answer),
    /// The outcome is known and not evaluated yet.
    Answered(u64, Answer),
    /// The thread has made this reason final and not announced it yet.
    Announces(EndReason),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Answer {
    Renewed,
    Refused(EndReason),
    Failed,
    GivenUp,
}

/// The progress of a raise by the heartbeat thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Raise {
    None,
    Post,
    Look,
    Set,
}

/// The state of PHP's thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Php {
    Runs,
    /// In `release()`: disarmed, not ended yet.
    Releases,
    /// In the engine's call, before the leases are queried.
    Asks,
    /// In the engine's call, after all leases are queried; only where the pending mark is cleared
    /// afterwards.
    Notes,
    /// The request ends: the interrupt signal has ended.
    Ends,
    /// The request ends: the lease is disarmed as well.
    EndsDisarmed,
    /// The next request.
    RunsNext,
    AsksNext,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    now: u64,
    status: Status,
    /// The expiry of the lease in the row.
    until: u64,
    /// A request that timed out, and that would move the expiry in the row to this time.
    late: Option<u64>,
    shared: Image,
    schedule: Schedule,
    thread: HeartbeatThread,
    raise: Raise,
    pending: bool,
    armed: bool,
    /// The engine's flag.
    flag: bool,
    php: Php,
    /// The lease of another run, which a user may cancel as well.
    other: Option<Image>,
    /// Whether the leases are among those that are queried for a loss.
    registered: bool,
    /// The deadline has passed once, or the lease has ended otherwise.
    over: bool,
    /// `release()` has returned, or the object is destroyed.
    released: bool,
    /// The holder is informed: by an exception, or since it has ended the lease itself.
    informed: bool,
    violation: Option<&'static str>,
}

/// The rule that is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    /// The deadline is counted from the reply.
    SendTime,
    /// Reading uses the status that the thread has written, and not the clock.
    Clock,
    /// A reply counts, however late it arrives.
    Late,
    /// A heartbeat is sent without a last check of the lease.
    LastCheck,
    /// A failed heartbeat is a loss.
    Unknown,
    /// Progress reports do not count.
    Progress,
    /// A release does not disarm.
    DisarmInRelease,
    /// A step that throws does not disarm.
    DisarmInStep,
    /// A run that its own holder completed is a loss.
    Completion,
    /// The leases are queried, and the pending mark is cleared afterwards.
    TakeFirst,
    /// The flag is raised, and the pending mark is set afterwards.
    PostFirst,
    /// The leases do not end with the request.
    EndOfRequest,
    /// A child treats the parent's leases as its own.
    Fork,
}

const HELD_WHEN_TAKEN: &str = "held when the reaper has taken the run";
const HELD_PAST_DEADLINE: &str = "held past the deadline";
const COMES_BACK: &str = "a lost lease is held again";
const STEP_PASSES: &str = "a step passes when the lease is lost";
const HEARTBEAT_AFTER_RELEASE: &str = "a heartbeat is sent after the release";
const NO_LOSS: &str = "a loss without a cause";
const STALLED: &str = "a stalled run is renewed";
const AFTER_END: &str = "an interrupt after the holder was informed";
const COMPLETED: &str = "an interrupt for a run that its holder has completed";
const NEVER_REPORTED: &str = "a loss that is never reported";
const NEXT_REQUEST: &str = "an interrupt in the next request";
const CHILD: &str = "a forked child holds the lease, or touches it";

thread_local! {
    static FLAG: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
}

fn start(scale: Scale) -> State {
    let options = KeepOptions {
        lease_seconds: 3,
        every: EVERY,
        max_silent: MAX_SILENT,
        max_total: MAX_TOTAL,
        interrupt_on_loss: true,
    };
    State {
        now: 0,
        status: Status::Ours,
        until: LEASE,
        late: None,
        shared: image(LEASE),
        // The heartbeats of the second lease are not part of the model.
        other: scale.two.then(|| image(u64::MAX)),
        schedule: Schedule::new(&options, 0).numbered(0),
        thread: HeartbeatThread::Waits,
        raise: Raise::None,
        pending: false,
        armed: true,
        flag: false,
        php: Php::Runs,
        registered: true,
        over: false,
        released: false,
        informed: false,
        violation: None,
    }
}

/// Returns the image of a lease that was just kept.
fn image(lease: u64) -> Image {
    Image {
        status: LeaseStatus::Held,
        deadline: lease,
        last_step: 0,
        paused: false,
        in_flight: false,
        notice: notice::ARMED,
    }
}

fn arm(signal: &InterruptSignal, flag: &'static AtomicBool) {
    // SAFETY: the flag is leaked and never freed, and its accesses are atomic.
    unsafe { signal.arm(NonNull::from(flag)) };
}

impl State {
    /// Normalises what no longer matters: for a final lease, neither its schedule nor the expiry in
    /// the row does.
    fn forget(&mut self, scale: Scale) {
        if self.shared.status.is_final() {
            (self.schedule, self.until, self.late, self.shared.last_step) =
                (start(scale).schedule, 0, None, 0);
        }
    }

    /// Calls the crate's code on the other lease, where there is one, as [`State::on_shared`] does.
    fn on_other<T>(&mut self, work: impl FnOnce(&SharedLease) -> T) -> Option<(T, bool)> {
        let other = self.other?;
        let mut state = Self { shared: other, ..self.clone() };
        let answer = state.on_shared(|shared| work(shared));
        self.other = Some(state.shared);
        Some(answer)
    }

    /// Calls the crate's code on the lease. The second value is true if the code has requested the
    /// host's call.
    fn on_shared<T>(&mut self, work: impl FnOnce(&Arc<SharedLease>) -> T) -> (T, bool) {
        let raised = Arc::new(InterruptSignal::new());
        let shared = Arc::new(SharedLease::of(self.shared, 0, Some(Arc::clone(&raised))));
        clock::FIXED.set(Some(self.now));
        let answer = work(&shared);
        clock::FIXED.set(None);
        self.shared = shared.image();
        (answer, raised.is_pending())
    }

    /// Calls the crate's code as the holder does, with its own object and a raise by its own
    /// thread.
    fn by_holder<T>(&mut self, work: impl FnOnce(&Lease) -> T) -> T {
        let (answer, raised) = self.on_shared(|shared| {
            let lease = Lease::new(Arc::clone(shared));
            let answer = work(&lease);
            // Dropping the lease is another step.
            std::mem::forget(lease);
            answer
        });
        if raised {
            self.on_signal(InterruptSignal::raise);
        }
        answer
    }

    fn by_heartbeat_thread<T>(&mut self, work: impl FnOnce(&SharedLease) -> T) -> T {
        let (answer, raised) = self.on_shared(|shared| work(shared));
        if raised {
            self.raise = Raise::Post;
        }
        answer
    }

    fn on_signal<T>(&mut self, work: impl FnOnce(&InterruptSignal) -> T) -> T {
        let flag = FLAG.with(|flag| *flag);
        flag.store(self.flag, Ordering::Relaxed);
        let signal = InterruptSignal::new();
        if self.armed {
            arm(&signal, flag);
        }
        if self.pending {
            signal.post();
        }
        let answer = work(&signal);
        (self.pending, self.armed, self.flag) =
            (signal.is_pending(), signal.target().is_some(), flag.load(Ordering::Relaxed));
        answer
    }

    fn is_held(&self, without: Without) -> bool {
        if without == Without::Clock {
            return !self.shared.status.is_final();
        }
        self.clone().by_holder(Lease::is_held)
    }

    /// Returns why the row refuses a heartbeat; `None` where it does not.
    fn refused(&self) -> Option<EndReason> {
        EndReason::of(match self.status {
            Status::Ours => LeaseState::Held,
            Status::Requeued => LeaseState::Requeued,
            Status::Taken => LeaseState::Taken,
            Status::Cancelled => LeaseState::Cancelled,
            Status::Completed => LeaseState::Completed,
        })
    }

    /// Returns whether a forked child violates its rules: it reads `stopped`, its step fails, it
    /// throws no loss, and it changes nothing. The row and the heartbeat thread belong to the
    /// parent.
    fn child_is_wrong(&self, without: Without) -> bool {
        let forks = u32::from(without != Without::Fork);
        let raised = Arc::new(InterruptSignal::new());
        let shared = Arc::new(SharedLease::of(self.shared, forks, Some(Arc::clone(&raised))));
        clock::FIXED.set(Some(self.now));
        let lease = Lease::new(Arc::clone(&shared));
        let wrong = lease.is_held()
            || lease.state() != "stopped"
            || lease.step().is_ok()
            || shared.take_loss(self.now).is_some();
        drop(lease);
        clock::FIXED.set(None);
        wrong || shared.image() != self.shared || raised.is_pending()
    }

    /// Returns the violation in this state, if there is one.
    fn violated(&self, without: Without) -> Option<&'static str> {
        if self.violation.is_some() {
            return self.violation;
        }
        if self.is_held(without) {
            if matches!(self.status, Status::Requeued | Status::Taken) {
                return Some(HELD_WHEN_TAKEN);
            }
            if self.now >= self.shared.deadline {
                return Some(HELD_PAST_DEADLINE);
            }
            if self.over || self.released {
                return Some(COMES_BACK);
            }
        }
        let caused = match self.shared.status {
            LeaseStatus::Held | LeaseStatus::Unknown | LeaseStatus::Ended(EndReason::Released) => {
                true
            }
            LeaseStatus::Ended(EndReason::Expired) => self.now >= self.shared.deadline,
            // The row shows the cause, or has shown it: requeued, then taken.
            _ => self.status != Status::Ours,
        };
        if !caused {
            return Some(NO_LOSS);
        }
        let under_way =
            self.raise != Raise::None || matches!(self.thread, HeartbeatThread::Announces(_));
        let due = self.shared.is_due() || self.other.is_some_and(|other| other.is_due());
        if due
            && self.registered
            && self.php == Php::Runs
            && !under_way
            && !(self.pending && self.flag)
        {
            return Some(NEVER_REPORTED);
        }
        self.child_is_wrong(without).then_some(CHILD)
    }
}

fn successors(state: &State, without: Without, scale: Scale) -> Vec<(&'static str, State)> {
    let mut next = Vec::new();
    let mut push = |what: &'static str, change: &dyn Fn(&mut State)| {
        let mut after = state.clone();
        change(&mut after);
        after.over |= after.shared.status.is_final() || after.now >= after.shared.deadline;
        after.forget(scale);
        next.push((what, after));
    };

    if state.now < scale.horizon {
        push("tick", &|after| after.now += 1);
    }
    match state.status {
        Status::Ours => {
            if state.until < state.now {
                push("reap", &|after| after.status = Status::Requeued);
            }
            push("cancel", &|after| after.status = Status::Cancelled);
        }
        Status::Requeued => push("another worker claims", &|after| after.status = Status::Taken),
        _ => {}
    }
    if let Some(until) = state.late {
        push("a request that timed out is executed", &|after| {
            if after.status == Status::Ours {
                after.until = after.until.max(until);
            }
            after.late = None;
        });
    }
    php(state, without, &mut push);
    heartbeat_thread(state, without, &mut push);
    next
}

fn php(state: &State, without: Without, push: &mut Push<'_>) {
    if matches!(state.php, Php::Runs | Php::RunsNext) {
        if state.flag {
            push("the engine calls", &|after| {
                after.flag = false;
                let pending = if without == Without::TakeFirst {
                    after.pending
                } else {
                    after.on_signal(InterruptSignal::take)
                };
                if pending {
                    after.php = if after.php == Php::Runs { Php::Asks } else { Php::AsksNext };
                }
            });
        } else {
            push("other code raises the flag", &|after| after.flag = true);
        }
    }
    match state.php {
        Php::Runs => {
            push("read the state", &|after| {
                after.by_holder(Lease::state);
            });
            push("step", &|after| {
                let notice = after.shared.notice;
                if after.by_holder(Lease::step).is_ok() {
                    after.violation = after.over.then_some(STEP_PASSES);
                } else {
                    if without == Without::DisarmInStep {
                        after.shared.notice = notice;
                    }
                    after.informed = true;
                }
            });
            if state.status == Status::Ours {
                push("complete", &|after| after.status = Status::Completed);
            }
            if !state.released {
                push("release", &|after| {
                    if without != Without::DisarmInRelease {
                        after.on_shared(|shared| shared.disarm());
                    }
                    after.php = Php::Releases;
                });
                push("destroy", &|after| {
                    if without == Without::DisarmInRelease {
                        after.on_shared(|shared| shared.end(EndReason::Released));
                    } else {
                        after.on_shared(|shared| drop(Lease::new(Arc::clone(shared))));
                    }
                    (after.released, after.informed) = (true, true);
                });
            }
            push("the request ends", &|after| {
                after.on_signal(InterruptSignal::request_ended);
                after.php = Php::Ends;
            });
        }
        Php::Releases => push("released", &|after| {
            after.on_shared(|shared| shared.end(EndReason::Released));
            (after.php, after.released, after.informed) = (Php::Runs, true, true);
        }),
        Php::Asks | Php::AsksNext => push("the leases are queried", &|after| {
            let loss = if after.registered {
                after.on_shared(|shared| shared.take_loss(clock::now())).0
            } else {
                None
            };
            // Two losses in one call: the later is thrown with the earlier as its previous
            // exception.
            let other = if after.registered {
                after.on_other(|shared| shared.take_loss(clock::now())).and_then(|(loss, _)| loss)
            } else {
                None
            };
            if other.is_some() && after.php == Php::AsksNext {
                after.violation = Some(NEXT_REQUEST);
            }
            if loss.is_some() {
                after.violation = if after.php == Php::AsksNext {
                    Some(NEXT_REQUEST)
                } else if after.informed {
                    Some(AFTER_END)
                } else if after.shared.status == LeaseStatus::Ended(EndReason::Completed) {
                    Some(COMPLETED)
                } else {
                    None
                };
                after.informed = true;
            }
            if loss.is_some() || other.is_some() {
                return;
            }
            after.php = match after.php {
                Php::AsksNext => Php::RunsNext,
                _ if without == Without::TakeFirst => Php::Notes,
                _ => Php::Runs,
            };
        }),
        Php::Notes => push("the pending mark is cleared", &|after| {
            (after.pending, after.php) = (false, Php::Runs)
        }),
        Php::Ends => push("its leases are disarmed", &|after| {
            if without != Without::EndOfRequest {
                after.registered = false;
                after.on_shared(|shared| shared.disarm());
                after.on_other(SharedLease::disarm_and_release);
            }
            after.php = Php::EndsDisarmed;
        }),
        Php::EndsDisarmed => push("its leases are released", &|after| {
            after.php = Php::RunsNext;
            if without != Without::EndOfRequest {
                after.on_shared(|shared| shared.end(EndReason::Released));
                (after.released, after.informed) = (true, true);
            }
        }),
        Php::RunsNext => {
            if !state.armed {
                push("the next request keeps a lease", &|after| {
                    after.on_signal(|signal| arm(signal, FLAG.with(|flag| *flag)))
                });
            }
        }
    }
}

fn heartbeat_thread(state: &State, without: Without, push: &mut Push<'_>) {
    // The heartbeat thread finishes a raise that it has begun before it continues.
    if state.raise != Raise::None {
        raise(state, without, push);
        return;
    }
    if state.other.is_some_and(|other| !other.status.is_final())
        && !matches!(state.thread, HeartbeatThread::Announces(_))
    {
        push("the other run was cancelled", &|after| {
            if after
                .on_other(|shared| shared.refused(EndReason::Cancelled))
                .is_some_and(|(_, raised)| raised)
            {
                after.raise = Raise::Post;
            }
        });
    }
    if !state.shared.status.is_final()
        && state.now >= state.shared.deadline
        && !matches!(state.thread, HeartbeatThread::Announces(_) | HeartbeatThread::Answered(..))
    {
        push("the thread sees the deadline", &|after| {
            after.by_heartbeat_thread(|shared| shared.is_final(clock::now()));
        });
    }
    match state.thread {
        HeartbeatThread::Waits => {
            if state.shared.status.is_final() {
                return;
            }
            let last_step =
                if without == Without::Progress { state.now } else { state.shared.last_step };
            match state.schedule.next(state.now, last_step) {
                Next::Heartbeat => push("a heartbeat is due", &|after| {
                    let stalled =
                        after.now >= after.shared.last_step + MAX_SILENT || after.now >= MAX_TOTAL;
                    after.violation = stalled.then_some(STALLED);
                    after.thread = HeartbeatThread::Decided;
                }),
                Next::Pause(_) => push("renewal is paused", &|after| {
                    after.by_heartbeat_thread(|shared| shared.pause(last_step, String::new));
                }),
                Next::Wait(_) => {}
            }
        }
        HeartbeatThread::Decided => push("the heartbeat is sent", &|after| {
            let goes = after.by_heartbeat_thread(|shared| shared.heartbeat_starts(clock::now()))
                || without == Without::LastCheck;
            after.thread =
                if goes { HeartbeatThread::Sent(after.now) } else { HeartbeatThread::Waits };
            after.violation = (goes && after.released).then_some(HEARTBEAT_AFTER_RELEASE);
        }),
        HeartbeatThread::Sent(sent) => {
            push("the heartbeat is executed", &|after| {
                let answer = match after.refused() {
                    None => {
                        after.until = after.until.max(sent + LEASE);
                        Answer::Renewed
                    }
                    Some(reason) => Answer::Refused(reason),
                };
                after.thread = HeartbeatThread::Executed(sent, answer);
            });
            push("the heartbeat is lost", &|after| answered(after, sent, Answer::Failed));
            if state.late.is_none() {
                push("the heartbeat times out while in flight", &|after| {
                    after.late = Some(sent + LEASE);
                    answered(after, sent, Answer::Failed);
                });
            }
        }
        HeartbeatThread::Executed(sent, answer) => {
            push("the reply", &|after| answered(after, sent, answer));
            push("the reply is lost", &|after| answered(after, sent, Answer::Failed));
        }
        HeartbeatThread::Answered(sent, answer) => {
            push("the outcome is evaluated", &|after| evaluate(after, sent, answer, without))
        }
        HeartbeatThread::Announces(reason) => push("the thread announces the end", &|after| {
            after.thread = HeartbeatThread::Waits;
            let reason = if without == Without::Completion && reason == EndReason::Completed {
                EndReason::Taken
            } else {
                reason
            };
            after.by_heartbeat_thread(|shared| shared.announce(reason));
        }),
    }
    if matches!(state.thread, HeartbeatThread::Sent(_) | HeartbeatThread::Executed(..))
        && state.shared.status.is_final()
    {
        push("the heartbeat is abandoned", &|after| {
            let (HeartbeatThread::Sent(sent) | HeartbeatThread::Executed(sent, _)) = after.thread
            else {
                return;
            };
            answered(after, sent, Answer::GivenUp);
        });
    }
}

fn raise(state: &State, without: Without, push: &mut Push<'_>) {
    let late_post = without == Without::PostFirst;
    match state.raise {
        Raise::None => {}
        Raise::Post if late_post => push("the thread looks up the flag", &|after| {
            after.raise = if after.on_signal(|signal| signal.target().is_some()) {
                Raise::Look
            } else {
                Raise::Set
            };
        }),
        Raise::Look if late_post => push("the thread raises the flag", &|after| {
            after.flag = true;
            after.raise = Raise::Set;
        }),
        Raise::Set if late_post => push("the thread posts", &|after| {
            after.on_signal(InterruptSignal::post);
            after.raise = Raise::None;
        }),
        Raise::Post => push("the thread posts", &|after| {
            after.on_signal(InterruptSignal::post);
            after.raise = Raise::Look;
        }),
        Raise::Look => push("the thread looks up the flag", &|after| {
            after.raise = if after.on_signal(|signal| signal.target().is_some()) {
                Raise::Set
            } else {
                Raise::None
            };
        }),
        // The flag belongs to the engine and is never freed: it may be raised after the request
        // that armed it has ended.
        Raise::Set => push("the thread raises the flag", &|after| {
            after.flag = true;
            after.raise = Raise::None;
        }),
    }
}

fn answered(after: &mut State, sent: u64, answer: Answer) {
    after.by_heartbeat_thread(SharedLease::heartbeat_ends);
    after.thread = HeartbeatThread::Answered(sent, answer);
}

fn evaluate(after: &mut State, sent: u64, answer: Answer, without: Without) {
    after.thread = HeartbeatThread::Waits;
    match answer {
        Answer::Renewed => {
            let (now, counts_from) = match without {
                Without::SendTime => (after.now, after.now),
                Without::Late => (sent, sent),
                _ => (after.now, sent),
            };
            after.by_heartbeat_thread(|shared| shared.renewed(now, counts_from, LEASE));
            after.schedule.succeeded(sent);
        }
        Answer::Failed if without == Without::Unknown => {
            after.by_heartbeat_thread(|shared| shared.refused(EndReason::Taken))
        }
        Answer::Failed => {
            after.by_heartbeat_thread(|shared| shared.failed(clock::now(), String::new()));
            after.schedule.failed(after.now, 0);
        }
        Answer::Refused(reason) => {
            if after.by_heartbeat_thread(|shared| shared.make_final(reason)).is_ok() {
                after.thread = HeartbeatThread::Announces(reason);
            }
        }
        Answer::GivenUp => {}
    }
}

/// Takes a step, given by its name and its change of the state.
type Push<'a> = dyn FnMut(&'static str, &dyn Fn(&mut State)) + 'a;

struct Explored {
    states: usize,
    /// The first violation and the shortest path to it.
    violation: Option<(&'static str, Vec<&'static str>)>,
    /// How often each step was taken: a step that is never taken proves nothing.
    seen: HashMap<&'static str, usize>,
}

fn explore(without: Without, scale: Scale) -> Explored {
    let mut states = vec![start(scale)];
    let mut known = HashMap::from([(start(scale), 0_usize)]);
    let mut parents: Vec<Option<(usize, &'static str)>> = vec![None];
    let mut queue = VecDeque::from([0_usize]);
    let mut seen = HashMap::new();
    while let Some(index) = queue.pop_front() {
        let state = states[index].clone();
        if let Some(violation) = state.violated(without) {
            let (mut path, mut at) = (Vec::new(), index);
            while let Some((parent, step)) = parents[at] {
                path.push(step);
                at = parent;
            }
            path.reverse();
            return Explored { states: states.len(), violation: Some((violation, path)), seen };
        }
        for (step, after) in successors(&state, without, scale) {
            *seen.entry(step).or_insert(0) += 1;
            if !known.contains_key(&after) {
                known.insert(after.clone(), states.len());
                queue.push_back(states.len());
                states.push(after);
                parents.push(Some((index, step)));
            }
        }
    }
    Explored { states: states.len(), violation: None, seen }
}

#[test]
fn every_order_of_steps_keeps_the_rules() {
    let mut steps = HashSet::new();
    for scale in [LONG, TWO] {
        let explored = explore(Without::Nothing, scale);
        let mut seen: Vec<_> = explored.seen.iter().collect();
        seen.sort();
        println!("{scale:?}: {} states; {seen:?}", explored.states);
        assert_eq!(explored.violation, None);
        assert!(explored.states > 10_000, "the model has too few states: {}", explored.states);
        steps.extend(explored.seen.into_keys());
    }
    // There is one more step, which only occurs without a rule.
    assert_eq!(steps.len(), 34, "a step is never taken: {steps:?}");
}

#[test]
fn each_rule_of_the_keeper_is_needed() {
    for (without, scale, expected) in [
        (Without::SendTime, LONG, HELD_WHEN_TAKEN),
        (Without::Clock, LONG, HELD_PAST_DEADLINE),
        (Without::Late, LONG, COMES_BACK),
        (Without::LastCheck, LONG, HEARTBEAT_AFTER_RELEASE),
        (Without::Unknown, LONG, NO_LOSS),
        (Without::Progress, LONG, STALLED),
        (Without::DisarmInRelease, LONG, AFTER_END),
        (Without::DisarmInStep, LONG, AFTER_END),
        (Without::Completion, LONG, COMPLETED),
        (Without::TakeFirst, TWO, NEVER_REPORTED),
        (Without::PostFirst, LONG, NEVER_REPORTED),
        (Without::EndOfRequest, LONG, NEXT_REQUEST),
        (Without::Fork, LONG, CHILD),
    ] {
        let explored = explore(without, scale);
        let (violation, path) = explored
            .violation
            .unwrap_or_else(|| panic!("without {without:?} no violation is found"));
        println!("without {without:?}: {violation}: {}", path.join(", "));
        assert_eq!(violation, expected, "without {without:?}: {path:?}");
    }
}
