//! A model of a kept lease, explored exhaustively at small scale (rules 16 to 20): one lease that interrupts, the keeper's thread, the thread that
//! runs PHP, the row with a reaper, another worker and a user who cancels, in every order of their steps. Beats get lost before they are executed,
//! or after it, or are executed long after they were given up; replies come whenever; steps are made or not; the run is settled; the lease is
//! released, destroyed, or ends with the request, and another request follows, with a lease of its own.
//!
//! What is explored is the crate's own code: a state holds what is in a lease's `SharedLease`, in the `Schedule` of its beats and in the `InterruptSignal`; each step
//! makes these anew, calls the method, and looks at what it has left. Where a method does several things that another thread can come between, the
//! model calls its parts. The row and the order in which the keeper's thread calls are the model's.
//!
//! A rule that is taken away must be missed: for each there is a test that the explorer finds the way into the trouble.

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

/// The lease, the interval of its beats and its limits, in ticks.
const LEASE: u64 = 3;
const EVERY: u64 = 1;
const MAX_SILENT: u64 = 2;
const MAX_TOTAL: u64 = 4;

/// How much is looked at.
#[derive(Debug, Clone, Copy)]
struct Scale {
    /// In ticks.
    horizon: u64,
    /// Is there a second lease, which is lost too?
    two: bool,
}

/// Long enough for both limits, for a lease that runs out after its last beat, and for a reaper that comes then.
const LONG: Scale = Scale { horizon: 7, two: false };
/// Two leases in the way of each other, past the first deadline.
const TWO: Scale = Scale { horizon: 3, two: true };

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Status {
    Ours,
    Requeued,
    Taken,
    Cancelled,
    Completed,
}

/// What the keeper's thread is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Keeper {
    Waits,
    /// The plan says: beat. It is not sent yet, the connection may take its time.
    Decided,
    /// On its way to the server, since when.
    Sent(u64),
    /// On its way back.
    Executed(u64, Answer),
    /// What came of it is known, and not judged yet.
    Landed(u64, Answer),
    /// It has made this final, and not told it yet.
    Announces(EndReason),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Answer {
    Renewed,
    Refused(EndReason),
    Failed,
    GivenUp,
}

/// How far a raise of the keeper's thread has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Raise {
    None,
    Post,
    Look,
    Set,
}

/// What PHP's thread is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Php {
    Runs,
    /// In `release()`: disarmed, not settled.
    Releases,
    /// In the engine's call, asking the leases.
    Asks,
    /// In the engine's call, all leases asked; only where it is noted then that nothing is pending.
    Notes,
    /// The request ends: the hand-over has ended.
    Ends,
    /// And the lease is disarmed.
    EndsDisarmed,
    /// The next request.
    RunsNext,
    AsksNext,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    now: u64,
    status: Status,
    /// The end of the lease in the row.
    until: u64,
    /// A request that was given up, and would put the row's end there.
    late: Option<u64>,
    cell: Image,
    schedule: Schedule,
    keeper: Keeper,
    raise: Raise,
    pending: bool,
    armed: bool,
    /// The engine's flag.
    flag: bool,
    php: Php,
    /// The lease of another run, of which a user may cancel the run as well.
    other: Option<Image>,
    /// Are the leases among those that are asked for a loss?
    registered: bool,
    /// The deadline has passed once, or another end has come.
    over: bool,
    /// `release()` has returned, or the object is gone.
    released: bool,
    /// The holder knows: by an exception, or since it has ended the lease itself.
    told: bool,
    trouble: Option<&'static str>,
}

/// The rule that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    /// The deadline is counted from the reply.
    SendTime,
    /// Reading looks at what the thread has written, and not at the clock.
    Clock,
    /// A reply counts, however late it comes.
    Late,
    /// A beat is sent without a last look at the lease.
    SetOut,
    /// A beat that failed is a loss.
    Unknown,
    /// Steps do not count.
    Silent,
    /// A release does not disarm.
    DisarmInRelease,
    /// A step that throws does not disarm.
    DisarmInStep,
    /// A run that its own holder completed is a loss.
    Settlement,
    /// The leases are asked, and then it is noted that there is nothing pending.
    TakeFirst,
    /// The flag is raised, and then it is noted that there is something pending.
    PostFirst,
    /// The leases do not end with the request.
    EndOfRequest,
    /// A child takes the parent's leases for its own.
    Fork,
}

const HELD_WHEN_TAKEN: &str = "held when the reaper has taken the run";
const HELD_PAST_DEADLINE: &str = "held past the deadline";
const COMES_BACK: &str = "a lease that was lost is held again";
const STEP_PASSES: &str = "a step passes when the lease is lost";
const BEAT_AFTER_RELEASE: &str = "a beat is sent after the release";
const NO_LOSS: &str = "a loss without a cause";
const HANGS: &str = "a job that hangs is beaten for";
const AFTER_END: &str = "an interrupt after the holder knew";
const SETTLED: &str = "an interrupt for a run that its holder has settled";
const NEVER_TOLD: &str = "a loss that nobody is told of";
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
        cell: image(LEASE),
        // Its beats are no concern here.
        other: scale.two.then(|| image(u64::MAX)),
        schedule: Schedule::new(&options, 0).numbered(0),
        keeper: Keeper::Waits,
        raise: Raise::None,
        pending: false,
        armed: true,
        flag: false,
        php: Php::Runs,
        registered: true,
        over: false,
        released: false,
        told: false,
        trouble: None,
    }
}

/// A lease that was just kept.
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

fn arm(hand_over: &InterruptSignal, flag: &'static AtomicBool) {
    // SAFETY: the flag lives for ever, and its accesses are atomic.
    unsafe { hand_over.arm(NonNull::from(flag)) };
}

impl State {
    /// What cannot matter any more is made the same: when the lease is final, neither its plan nor the end of the row's lease does.
    fn forget(&mut self, scale: Scale) {
        if self.cell.status.is_final() {
            (self.schedule, self.until, self.late, self.cell.last_step) =
                (start(scale).schedule, 0, None, 0);
        }
    }

    /// As [`State::on_cell`] for the other lease, where there is one.
    fn on_other<T>(&mut self, work: impl FnOnce(&SharedLease) -> T) -> Option<(T, bool)> {
        let other = self.other?;
        let mut state = Self { cell: other, ..self.clone() };
        let answer = state.on_cell(|cell| work(cell));
        self.other = Some(state.cell);
        Some(answer)
    }

    /// Calls the crate's code on the lease. True: it has asked for the host's call.
    fn on_cell<T>(&mut self, work: impl FnOnce(&Arc<SharedLease>) -> T) -> (T, bool) {
        let raised = Arc::new(InterruptSignal::new());
        let cell = Arc::new(SharedLease::of(self.cell, 0, Some(Arc::clone(&raised))));
        clock::FIXED.set(Some(self.now));
        let answer = work(&cell);
        clock::FIXED.set(None);
        self.cell = cell.image();
        (answer, raised.is_pending())
    }

    /// As the holder does it, with an object of its own. The raise is its thread's.
    fn by_holder<T>(&mut self, work: impl FnOnce(&Lease) -> T) -> T {
        let (answer, raised) = self.on_cell(|cell| {
            let lease = Lease::new(Arc::clone(cell));
            let answer = work(&lease);
            // Dropping it is another step.
            std::mem::forget(lease);
            answer
        });
        if raised {
            self.on_hand_over(InterruptSignal::raise);
        }
        answer
    }

    fn by_keeper<T>(&mut self, work: impl FnOnce(&SharedLease) -> T) -> T {
        let (answer, raised) = self.on_cell(|cell| work(cell));
        if raised {
            self.raise = Raise::Post;
        }
        answer
    }

    fn on_hand_over<T>(&mut self, work: impl FnOnce(&InterruptSignal) -> T) -> T {
        let flag = FLAG.with(|flag| *flag);
        flag.store(self.flag, Ordering::Relaxed);
        let hand_over = InterruptSignal::new();
        if self.armed {
            arm(&hand_over, flag);
        }
        if self.pending {
            hand_over.post();
        }
        let answer = work(&hand_over);
        (self.pending, self.armed, self.flag) =
            (hand_over.is_pending(), hand_over.target().is_some(), flag.load(Ordering::Relaxed));
        answer
    }

    fn is_held(&self, without: Without) -> bool {
        if without == Without::Clock {
            return !self.cell.status.is_final();
        }
        self.clone().by_holder(Lease::is_held)
    }

    /// Why the row refuses a heartbeat; none where it does not.
    fn refused(&self) -> Option<EndReason> {
        EndReason::of(match self.status {
            Status::Ours => LeaseState::Held,
            Status::Requeued => LeaseState::Requeued,
            Status::Taken => LeaseState::Taken,
            Status::Cancelled => LeaseState::Cancelled,
            Status::Completed => LeaseState::Completed,
        })
    }

    /// A forked child reads `stopped`, is told so, throws nothing, and leaves everything as it is. The row and the keeper are the parent's.
    fn child_is_wrong(&self, without: Without) -> bool {
        let forks = u32::from(without != Without::Fork);
        let raised = Arc::new(InterruptSignal::new());
        let cell = Arc::new(SharedLease::of(self.cell, forks, Some(Arc::clone(&raised))));
        clock::FIXED.set(Some(self.now));
        let lease = Lease::new(Arc::clone(&cell));
        let wrong = lease.is_held()
            || lease.state() != "stopped"
            || lease.step().is_ok()
            || cell.take_loss(self.now).is_some();
        drop(lease);
        clock::FIXED.set(None);
        wrong || cell.image() != self.cell || raised.is_pending()
    }

    /// What is wrong with it, if anything.
    fn wrong(&self, without: Without) -> Option<&'static str> {
        if self.trouble.is_some() {
            return self.trouble;
        }
        if self.is_held(without) {
            if matches!(self.status, Status::Requeued | Status::Taken) {
                return Some(HELD_WHEN_TAKEN);
            }
            if self.now >= self.cell.deadline {
                return Some(HELD_PAST_DEADLINE);
            }
            if self.over || self.released {
                return Some(COMES_BACK);
            }
        }
        let caused = match self.cell.status {
            LeaseStatus::Held | LeaseStatus::Unknown | LeaseStatus::Ended(EndReason::Released) => {
                true
            }
            LeaseStatus::Ended(EndReason::Expired) => self.now >= self.cell.deadline,
            // The row says it, or has said it: requeued, then taken.
            _ => self.status != Status::Ours,
        };
        if !caused {
            return Some(NO_LOSS);
        }
        let under_way = self.raise != Raise::None || matches!(self.keeper, Keeper::Announces(_));
        let due = self.cell.is_due() || self.other.is_some_and(|other| other.is_due());
        if due
            && self.registered
            && self.php == Php::Runs
            && !under_way
            && !(self.pending && self.flag)
        {
            return Some(NEVER_TOLD);
        }
        self.child_is_wrong(without).then_some(CHILD)
    }
}

fn successors(state: &State, without: Without, scale: Scale) -> Vec<(&'static str, State)> {
    let mut next = Vec::new();
    let mut push = |what: &'static str, change: &dyn Fn(&mut State)| {
        let mut after = state.clone();
        change(&mut after);
        after.over |= after.cell.status.is_final() || after.now >= after.cell.deadline;
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
        push("a request that was given up is executed", &|after| {
            if after.status == Status::Ours {
                after.until = after.until.max(until);
            }
            after.late = None;
        });
    }
    php(state, without, &mut push);
    keeper(state, without, &mut push);
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
                    after.on_hand_over(InterruptSignal::take)
                };
                if pending {
                    after.php = if after.php == Php::Runs { Php::Asks } else { Php::AsksNext };
                }
            });
        } else {
            push("somebody else raises the flag", &|after| after.flag = true);
        }
    }
    match state.php {
        Php::Runs => {
            push("look", &|after| {
                after.by_holder(Lease::state);
            });
            push("step", &|after| {
                let notice = after.cell.notice;
                if after.by_holder(Lease::step).is_ok() {
                    after.trouble = after.over.then_some(STEP_PASSES);
                } else {
                    if without == Without::DisarmInStep {
                        after.cell.notice = notice;
                    }
                    after.told = true;
                }
            });
            if state.status == Status::Ours {
                push("settle", &|after| after.status = Status::Completed);
            }
            if !state.released {
                push("release", &|after| {
                    if without != Without::DisarmInRelease {
                        after.on_cell(|cell| cell.disarm());
                    }
                    after.php = Php::Releases;
                });
                push("destroy", &|after| {
                    if without == Without::DisarmInRelease {
                        after.on_cell(|cell| cell.end(EndReason::Released));
                    } else {
                        after.on_cell(|cell| drop(Lease::new(Arc::clone(cell))));
                    }
                    (after.released, after.told) = (true, true);
                });
            }
            push("the request ends", &|after| {
                after.on_hand_over(InterruptSignal::request_ended);
                after.php = Php::Ends;
            });
        }
        Php::Releases => push("released", &|after| {
            after.on_cell(|cell| cell.end(EndReason::Released));
            (after.php, after.released, after.told) = (Php::Runs, true, true);
        }),
        Php::Asks | Php::AsksNext => push("the leases are asked", &|after| {
            let loss = if after.registered {
                after.on_cell(|cell| cell.take_loss(clock::now())).0
            } else {
                None
            };
            // Two of one call: the later is thrown with the earlier as its previous one.
            let other = if after.registered {
                after.on_other(|cell| cell.take_loss(clock::now())).and_then(|(loss, _)| loss)
            } else {
                None
            };
            if other.is_some() && after.php == Php::AsksNext {
                after.trouble = Some(NEXT_REQUEST);
            }
            if loss.is_some() {
                after.trouble = if after.php == Php::AsksNext {
                    Some(NEXT_REQUEST)
                } else if after.told {
                    Some(AFTER_END)
                } else if after.cell.status == LeaseStatus::Ended(EndReason::Completed) {
                    Some(SETTLED)
                } else {
                    None
                };
                after.told = true;
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
        Php::Notes => push("nothing is pending, it is noted", &|after| {
            (after.pending, after.php) = (false, Php::Runs)
        }),
        Php::Ends => push("its leases are disarmed", &|after| {
            if without != Without::EndOfRequest {
                after.registered = false;
                after.on_cell(|cell| cell.disarm());
                after.on_other(SharedLease::disarm_and_release);
            }
            after.php = Php::EndsDisarmed;
        }),
        Php::EndsDisarmed => push("its leases are released", &|after| {
            after.php = Php::RunsNext;
            if without != Without::EndOfRequest {
                after.on_cell(|cell| cell.end(EndReason::Released));
                (after.released, after.told) = (true, true);
            }
        }),
        Php::RunsNext => {
            if !state.armed {
                push("the next request keeps a lease", &|after| {
                    after.on_hand_over(|hand_over| arm(hand_over, FLAG.with(|flag| *flag)))
                });
            }
        }
    }
}

fn keeper(state: &State, without: Without, push: &mut Push<'_>) {
    // It is one thread: a raise that it has begun comes to its end before anything else.
    if state.raise != Raise::None {
        raise(state, without, push);
        return;
    }
    if state.other.is_some_and(|other| !other.status.is_final())
        && !matches!(state.keeper, Keeper::Announces(_))
    {
        push("the other run was cancelled", &|after| {
            if after
                .on_other(|cell| cell.refused(EndReason::Cancelled))
                .is_some_and(|(_, raised)| raised)
            {
                after.raise = Raise::Post;
            }
        });
    }
    if !state.cell.status.is_final()
        && state.now >= state.cell.deadline
        && !matches!(state.keeper, Keeper::Announces(_) | Keeper::Landed(..))
    {
        push("the keeper sees the deadline", &|after| {
            after.by_keeper(|cell| cell.is_final(clock::now()));
        });
    }
    match state.keeper {
        Keeper::Waits => {
            if state.cell.status.is_final() {
                return;
            }
            let last_step =
                if without == Without::Silent { state.now } else { state.cell.last_step };
            match state.schedule.next(state.now, last_step) {
                Next::Heartbeat => push("a beat is due", &|after| {
                    let hangs =
                        after.now >= after.cell.last_step + MAX_SILENT || after.now >= MAX_TOTAL;
                    after.trouble = hangs.then_some(HANGS);
                    after.keeper = Keeper::Decided;
                }),
                Next::Pause(_) => push("the beats rest", &|after| {
                    after.by_keeper(|cell| cell.pause(last_step, String::new));
                }),
                Next::Wait(_) => {}
            }
        }
        Keeper::Decided => push("the beat is sent", &|after| {
            let goes =
                after.by_keeper(|cell| cell.set_out(clock::now())) || without == Without::SetOut;
            after.keeper = if goes { Keeper::Sent(after.now) } else { Keeper::Waits };
            after.trouble = (goes && after.released).then_some(BEAT_AFTER_RELEASE);
        }),
        Keeper::Sent(sent) => {
            push("the beat is executed", &|after| {
                let answer = match after.refused() {
                    None => {
                        after.until = after.until.max(sent + LEASE);
                        Answer::Renewed
                    }
                    Some(reason) => Answer::Refused(reason),
                };
                after.keeper = Keeper::Executed(sent, answer);
            });
            push("the beat is lost", &|after| land(after, sent, Answer::Failed));
            if state.late.is_none() {
                push("the beat is given up, and still under way", &|after| {
                    after.late = Some(sent + LEASE);
                    land(after, sent, Answer::Failed);
                });
            }
        }
        Keeper::Executed(sent, answer) => {
            push("the reply", &|after| land(after, sent, answer));
            push("the reply is lost", &|after| land(after, sent, Answer::Failed));
        }
        Keeper::Landed(sent, answer) => {
            push("the outcome is judged", &|after| judge(after, sent, answer, without))
        }
        Keeper::Announces(standing) => push("the keeper tells", &|after| {
            after.keeper = Keeper::Waits;
            let standing = if without == Without::Settlement && standing == EndReason::Completed {
                EndReason::Taken
            } else {
                standing
            };
            after.by_keeper(|cell| cell.announce(standing));
        }),
    }
    if matches!(state.keeper, Keeper::Sent(_) | Keeper::Executed(..))
        && state.cell.status.is_final()
    {
        push("nobody cares for the beat any more", &|after| {
            let (Keeper::Sent(sent) | Keeper::Executed(sent, _)) = after.keeper else { return };
            land(after, sent, Answer::GivenUp);
        });
    }
}

fn raise(state: &State, without: Without, push: &mut Push<'_>) {
    let late_post = without == Without::PostFirst;
    match state.raise {
        Raise::None => {}
        Raise::Post if late_post => push("the keeper looks for the flag", &|after| {
            after.raise = if after.on_hand_over(|hand_over| hand_over.target().is_some()) {
                Raise::Look
            } else {
                Raise::Set
            };
        }),
        Raise::Look if late_post => push("the keeper raises the flag", &|after| {
            after.flag = true;
            after.raise = Raise::Set;
        }),
        Raise::Set if late_post => push("the keeper posts", &|after| {
            after.on_hand_over(InterruptSignal::post);
            after.raise = Raise::None;
        }),
        Raise::Post => push("the keeper posts", &|after| {
            after.on_hand_over(InterruptSignal::post);
            after.raise = Raise::Look;
        }),
        Raise::Look => push("the keeper looks for the flag", &|after| {
            after.raise = if after.on_hand_over(|hand_over| hand_over.target().is_some()) {
                Raise::Set
            } else {
                Raise::None
            };
        }),
        // The flag is the engine's, and is there for ever: it may be raised when the request that armed it has ended.
        Raise::Set => push("the keeper raises the flag", &|after| {
            after.flag = true;
            after.raise = Raise::None;
        }),
    }
}

fn land(after: &mut State, sent: u64, answer: Answer) {
    after.by_keeper(SharedLease::land);
    after.keeper = Keeper::Landed(sent, answer);
}

fn judge(after: &mut State, sent: u64, answer: Answer, without: Without) {
    after.keeper = Keeper::Waits;
    match answer {
        Answer::Renewed => {
            let (now, counts_from) = match without {
                Without::SendTime => (after.now, after.now),
                Without::Late => (sent, sent),
                _ => (after.now, sent),
            };
            after.by_keeper(|cell| cell.renewed(now, counts_from, LEASE));
            after.schedule.succeeded(sent);
        }
        Answer::Failed if without == Without::Unknown => {
            after.by_keeper(|cell| cell.refused(EndReason::Taken))
        }
        Answer::Failed => {
            after.by_keeper(|cell| cell.failed(clock::now(), String::new()));
            after.schedule.failed(after.now, 0);
        }
        Answer::Refused(standing) => {
            if after.by_keeper(|cell| cell.make_final(standing)).is_ok() {
                after.keeper = Keeper::Announces(standing);
            }
        }
        Answer::GivenUp => {}
    }
}

/// Takes a step: its name, and what it changes.
type Push<'a> = dyn FnMut(&'static str, &dyn Fn(&mut State)) + 'a;

struct Explored {
    states: usize,
    /// The first trouble and the way into it, by the fewest steps.
    trouble: Option<(&'static str, Vec<&'static str>)>,
    /// How often each step was taken: one that never is proves nothing.
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
        if let Some(trouble) = state.wrong(without) {
            let (mut way, mut at) = (Vec::new(), index);
            while let Some((parent, step)) = parents[at] {
                way.push(step);
                at = parent;
            }
            way.reverse();
            return Explored { states: states.len(), trouble: Some((trouble, way)), seen };
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
    Explored { states: states.len(), trouble: None, seen }
}

#[test]
fn every_order_of_steps_keeps_the_rules_of_the_keeper() {
    let mut steps = HashSet::new();
    for scale in [LONG, TWO] {
        let explored = explore(Without::Nothing, scale);
        let mut seen: Vec<_> = explored.seen.iter().collect();
        seen.sort();
        println!("{scale:?}: {} states; {seen:?}", explored.states);
        assert_eq!(explored.trouble, None);
        assert!(
            explored.states > 10_000,
            "the model is more than a handful of states: {}",
            explored.states
        );
        steps.extend(explored.seen.into_keys());
    }
    // One more there is, and a missing rule alone brings it.
    assert_eq!(steps.len(), 34, "a step is never taken: {steps:?}");
}

#[test]
fn each_rule_of_the_keeper_is_needed() {
    for (without, scale, expected) in [
        (Without::SendTime, LONG, HELD_WHEN_TAKEN),
        (Without::Clock, LONG, HELD_PAST_DEADLINE),
        (Without::Late, LONG, COMES_BACK),
        (Without::SetOut, LONG, BEAT_AFTER_RELEASE),
        (Without::Unknown, LONG, NO_LOSS),
        (Without::Silent, LONG, HANGS),
        (Without::DisarmInRelease, LONG, AFTER_END),
        (Without::DisarmInStep, LONG, AFTER_END),
        (Without::Settlement, LONG, SETTLED),
        (Without::TakeFirst, TWO, NEVER_TOLD),
        (Without::PostFirst, LONG, NEVER_TOLD),
        (Without::EndOfRequest, LONG, NEXT_REQUEST),
        (Without::Fork, LONG, CHILD),
    ] {
        let explored = explore(without, scale);
        let (trouble, way) =
            explored.trouble.unwrap_or_else(|| panic!("without {without:?} nothing goes wrong"));
        println!("without {without:?}: {trouble}: {}", way.join(", "));
        assert_eq!(trouble, expected, "without {without:?}: {way:?}");
    }
}
