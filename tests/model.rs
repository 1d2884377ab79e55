//! A model of the protocol, explored exhaustively: one run, two workers, a reaper, a dispatcher, in
//! every order of their steps, with crashes, pauses of any length, requests that arrive late and
//! replies that get lost.
//!
//! What a reaper or a failure decides is the crate's own code. Time goes in ticks, the same for
//! all; a worker that is stopped is one that does nothing while they pass. Requests carry the lease
//! that they write as an absolute time, as in the product: what is left of it shrinks while they
//! are under way.
//!
//! A rule that is taken away must be missed: for each, a test checks that the explorer finds the
//! way to a violation.

// A test says what went wrong by panicking, and shares its helpers freely.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub
)]

use std::collections::{HashMap, VecDeque};

use nrllm_runtime::domain::decision::{Decision, Facts, after_failure, stale};

/// Ticks that a lease lasts.
const LEASE: u8 = 2;
const MAX_REQUEUES: u8 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Status {
    Queued,
    Running,
    Completed,
    Failed,
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Row {
    status: Status,
    /// 0: no owner. Each claim has an identity of its own.
    owner: u8,
    /// Ticks until the lease is over.
    lease: u8,
    requeues: u8,
    /// A non-idempotent write is pending.
    fence: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    Idle,
    /// The claim was executed, its reply is under way; the ticks left of the lease that it wrote.
    Claimed(u8),
    Running,
    /// The fence was acknowledged; the write comes next, whenever.
    Marked,
    Written,
}

/// A renewal under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Beat {
    None,
    /// To the server. It may be executed after its sender died.
    Sent {
        owner: u8,
        left: u8,
    },
    /// Back to the sender.
    Executed {
        owner: u8,
        left: u8,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Worker {
    phase: Phase,
    owner: u8,
    /// Ticks until the worker gives its lease up by itself.
    deadline: u8,
    beat: Beat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    row: Row,
    /// A wake-up waits in the queue.
    message: bool,
    workers: [Worker; 2],
    executions: u8,
    writes: u8,
    claims: u8,
}

/// The rule that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    OwnerInRenewal,
    OwnerInFinish,
    StatusInClaim,
    /// The deadline is counted from the reply.
    SendTime,
    Deadline,
    Fence,
    Budget,
    TerminalInCancel,
    Sweep,
    LeaseInReap,
}

const START: State = State {
    row: Row { status: Status::Queued, owner: 0, lease: 0, requeues: 0, fence: false },
    message: true,
    workers: [Worker { phase: Phase::Idle, owner: 0, deadline: 0, beat: Beat::None }; 2],
    executions: 0,
    writes: 0,
    claims: 0,
};

impl Row {
    fn is_terminal(self) -> bool {
        matches!(self.status, Status::Completed | Status::Failed | Status::Cancelled)
    }

    fn ended(self, status: Status) -> Self {
        // The reaper leaves the write fence, which nothing reads any more.
        Self { status, owner: 0, lease: 0, ..self }
    }

    fn facts(&self, without: Without) -> Facts<'static> {
        Facts {
            pending_effect: if self.fence && without != Without::Fence {
                b"non_idempotent_write"
            } else {
                b""
            },
            has_request: true,
            requeue_count: if without == Without::Budget { 0 } else { u32::from(self.requeues) },
        }
    }

    fn decided(self, decision: Decision) -> Self {
        match decision {
            Decision::Requeue => Self {
                status: Status::Queued,
                owner: 0,
                lease: 0,
                requeues: self.requeues + 1,
                fence: false,
            },
            Decision::DeadLetter(_) => self.ended(Status::Failed),
        }
    }
}

impl Worker {
    fn believes(&self) -> bool {
        self.deadline > 0 && matches!(self.phase, Phase::Running | Phase::Marked | Phase::Written)
    }

    /// It knows nothing any more: lost, settled or dead. What it has sent stays under way.
    fn idle(self) -> Self {
        Self { phase: Phase::Idle, owner: 0, deadline: 0, ..self }
    }
}

fn successors(state: &State, without: Without) -> Vec<(&'static str, State)> {
    let mut next = Vec::new();
    let row = state.row;

    let mut ticked = *state;
    ticked.row.lease = row.lease.saturating_sub(1);
    for worker in &mut ticked.workers {
        if without != Without::Deadline {
            worker.deadline = worker.deadline.saturating_sub(1);
        }
        if let Phase::Claimed(left) = &mut worker.phase {
            *left = left.saturating_sub(1);
        }
        match &mut worker.beat {
            Beat::Sent { left, .. } | Beat::Executed { left, .. } => *left = left.saturating_sub(1),
            Beat::None => {}
        }
    }
    next.push(("tick", ticked));

    if row.status == Status::Running && (row.lease == 0 || without == Without::LeaseInReap) {
        let after = row.decided(stale(row.facts(without), u32::from(MAX_REQUEUES)));
        // The wake-up is written in the requeue's transaction.
        next.push((
            "reap",
            State {
                row: after,
                message: state.message || after.status == Status::Queued,
                ..*state
            },
        ));
    }
    if !row.is_terminal() || without == Without::TerminalInCancel {
        next.push(("cancel", State { row: row.ended(Status::Cancelled), ..*state }));
    }
    if row.status == Status::Queued && !state.message && without != Without::Sweep {
        next.push(("sweep", State { message: true, ..*state }));
    }
    if row.status == Status::Running && !state.message {
        next.push(("a wake-up too many", State { message: true, ..*state }));
    }
    if state.message {
        next.push(("the message gets lost with its consumer", State { message: false, ..*state }));
    }

    for index in 0..2 {
        let worker = state.workers[index];
        let mut push =
            |what: &'static str, row: Row, worker: Worker, change: &dyn Fn(&mut State)| {
                let mut after = State { row, ..*state };
                after.workers[index] = worker;
                change(&mut after);
                next.push((what, after));
            };
        let nothing: &dyn Fn(&mut State) = &|_| {};
        let owns = row.status == Status::Running && row.owner == worker.owner && worker.owner != 0;

        match worker.phase {
            Phase::Idle => {
                let free = row.status == Status::Queued
                    || (without == Without::StatusInClaim
                        && row.status == Status::Running
                        && state.claims < 6);
                if state.message && free {
                    let owner = state.claims + 1;
                    let claimed = Row { status: Status::Running, owner, lease: LEASE, ..row };
                    push(
                        "claim",
                        claimed,
                        Worker { phase: Phase::Claimed(LEASE), owner, ..worker },
                        &|after| {
                            after.message = false;
                            after.claims += 1;
                        },
                    );
                }
            }
            Phase::Claimed(left) => {
                let deadline = if without == Without::SendTime { LEASE } else { left };
                push(
                    "the claim's reply",
                    row,
                    Worker { phase: Phase::Running, deadline, ..worker },
                    &|after| after.executions += 1,
                );
                push("the claim's reply is lost", row, worker.idle(), nothing);
            }
            Phase::Running | Phase::Marked | Phase::Written => {
                push("crash", row, worker.idle(), nothing);
                if worker.beat == Beat::None && worker.believes() {
                    push(
                        "beat",
                        row,
                        Worker { beat: Beat::Sent { owner: worker.owner, left: LEASE }, ..worker },
                        nothing,
                    );
                }
                if worker.phase == Phase::Running && worker.believes() {
                    if owns {
                        let marked = Row { fence: true, lease: LEASE, ..row };
                        push("mark", marked, Worker { phase: Phase::Marked, ..worker }, nothing);
                        push("mark, and its reply is lost", marked, worker.idle(), nothing);
                    } else {
                        push("lost at the mark", row, worker.idle(), nothing);
                    }
                }
                if worker.phase == Phase::Marked {
                    push("write", row, Worker { phase: Phase::Written, ..worker }, &|after| {
                        after.writes += 1
                    });
                }
                if worker.phase != Phase::Marked {
                    let finishes = owns || (without == Without::OwnerInFinish && worker.owner != 0);
                    push(
                        "finish",
                        if finishes { row.ended(Status::Completed) } else { row },
                        worker.idle(),
                        nothing,
                    );
                    for retryable in [true, false] {
                        let after = if owns {
                            row.decided(after_failure(
                                retryable,
                                row.facts(without),
                                u32::from(MAX_REQUEUES),
                            ))
                        } else {
                            row
                        };
                        push("recover", after, worker.idle(), &|state| {
                            state.message |= owns && after.status == Status::Queued
                        });
                    }
                }
            }
        }
        match worker.beat {
            Beat::None => {}
            Beat::Sent { owner, left } => {
                let matches = row.status == Status::Running
                    && (row.owner == owner || without == Without::OwnerInRenewal);
                if matches {
                    // What was written last counts: a late request may even shorten the lease.
                    push(
                        "the beat is executed",
                        Row { lease: left, ..row },
                        Worker { beat: Beat::Executed { owner, left }, ..worker },
                        nothing,
                    );
                } else if worker.owner == owner {
                    push(
                        "the beat says lost",
                        row,
                        Worker { beat: Beat::None, ..worker.idle() },
                        nothing,
                    );
                }
                push("the beat gets lost", row, Worker { beat: Beat::None, ..worker }, nothing);
            }
            Beat::Executed { owner, left } => {
                push(
                    "the beat's reply is lost",
                    row,
                    Worker { beat: Beat::None, ..worker },
                    nothing,
                );
                // Past its deadline a lease is lost for good, whatever a late reply says.
                if worker.owner == owner && (worker.deadline > 0 || without == Without::Deadline) {
                    let deadline = if without == Without::SendTime { LEASE } else { left };
                    push(
                        "the beat's reply",
                        row,
                        Worker { beat: Beat::None, deadline, ..worker },
                        nothing,
                    );
                }
            }
        }
    }
    next
}

/// What is wrong with a state, if anything.
fn violation(state: &State) -> Option<&'static str> {
    for worker in &state.workers {
        if worker.believes()
            && state.row.owner != worker.owner
            && matches!(state.row.status, Status::Queued | Status::Running)
        {
            return Some("a worker believes in a lease that is not its own");
        }
    }
    if state.executions > 1 + MAX_REQUEUES {
        return Some("too many executions");
    }
    if state.writes > 1 {
        return Some("a second non-idempotent write");
    }
    None
}

struct Explored {
    states: usize,
    /// The first violation and the way to it, by the fewest steps.
    violation: Option<(&'static str, Vec<&'static str>)>,
}

fn explore(without: Without) -> Explored {
    let mut parents: HashMap<State, Option<(State, &'static str)>> = HashMap::from([(START, None)]);
    let mut before: HashMap<State, Vec<State>> = HashMap::new();
    let mut queue = VecDeque::from([START]);
    let way = |parents: &HashMap<State, Option<(State, &'static str)>>, mut state: State| {
        let mut steps = Vec::new();
        while let Some(Some((parent, step))) = parents.get(&state) {
            steps.push(*step);
            state = *parent;
        }
        steps.reverse();
        steps
    };
    while let Some(state) = queue.pop_front() {
        if let Some(violation) = violation(&state) {
            return Explored {
                states: parents.len(),
                violation: Some((violation, way(&parents, state))),
            };
        }
        for (step, after) in successors(&state, without) {
            if state.row.is_terminal() && after.row != state.row {
                let mut steps = way(&parents, state);
                steps.push(step);
                return Explored {
                    states: parents.len(),
                    violation: Some(("a terminal row changes", steps)),
                };
            }
            before.entry(after).or_default().push(state);
            parents.entry(after).or_insert_with(|| {
                queue.push_back(after);
                Some((state, step))
            });
        }
    }
    // From every state there is a way to an end that needs neither luck nor a user who cancels:
    // backwards from the ends.
    let mut reached: HashMap<State, ()> = HashMap::new();
    let mut ends: VecDeque<State> =
        parents.keys().filter(|state| state.row.is_terminal()).copied().collect();
    while let Some(state) = ends.pop_front() {
        if reached.insert(state, ()).is_none() {
            let sources = before.get(&state).into_iter().flatten();
            ends.extend(sources.filter(|source| {
                (source.row.is_terminal() || state.row.status != Status::Cancelled)
                    && !reached.contains_key(source)
            }));
        }
    }
    let trap = parents.keys().find(|state| !reached.contains_key(state)).copied();
    Explored {
        states: parents.len(),
        violation: trap.map(|state| ("a run that never ends", way(&parents, state))),
    }
}

#[test]
fn every_order_of_steps_keeps_the_promises() {
    let explored = explore(Without::Nothing);
    println!("{} states", explored.states);
    assert_eq!(explored.violation, None);
    assert!(
        explored.states > 10_000,
        "the model is more than a handful of states: {}",
        explored.states
    );
}

#[test]
fn each_rule_is_needed() {
    for (without, expected) in [
        (Without::OwnerInRenewal, "a worker believes in a lease that is not its own"),
        (Without::OwnerInFinish, "a terminal row changes"),
        (Without::StatusInClaim, "a worker believes in a lease that is not its own"),
        (Without::SendTime, "a worker believes in a lease that is not its own"),
        (Without::Deadline, "a worker believes in a lease that is not its own"),
        (Without::LeaseInReap, "a worker believes in a lease that is not its own"),
        (Without::Fence, "a second non-idempotent write"),
        (Without::Budget, "too many executions"),
        (Without::TerminalInCancel, "a terminal row changes"),
        (Without::Sweep, "a run that never ends"),
    ] {
        let explored = explore(without);
        let (violation, way) =
            explored.violation.unwrap_or_else(|| panic!("without {without:?} nothing goes wrong"));
        println!("without {without:?}: {violation}: {}", way.join(", "));
        assert_eq!(violation, expected, "without {without:?}: {way:?}");
    }
}
