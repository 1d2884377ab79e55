//! A model of the protocol, explored exhaustively: one run, two workers, a reaper, a dispatcher, in
//! every order of their steps, with crashes, pauses of any length, requests that arrive late and
//! replies that get lost.
//!
//! The decisions of a reaper and after a failure are the crate's own code. Time passes in ticks,
//! the same for all; a stopped worker takes no step while they pass. Requests carry the lease that
//! they write as an absolute time, as in the product: its rest shrinks while they are in flight.
//!
//! Each rule is necessary: a test removes it and requires that the explorer finds the path to the
//! violation.

// A test fails by a panic.
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
    /// Ticks until the lease expires.
    lease: u8,
    requeues: u8,
    /// A non-idempotent write is pending.
    write_fence: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    Idle,
    /// The claim was executed, its reply is in flight; the ticks left of the lease that it wrote.
    Claimed(u8),
    Running,
    /// The write fence was acknowledged; the write comes next, at any time.
    Marked,
    Written,
}

/// A heartbeat in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Heartbeat {
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
    /// Ticks until the worker counts its lease as lost.
    deadline: u8,
    heartbeat: Heartbeat,
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

/// The rule that is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    OwnerInRenewal,
    OwnerInFinish,
    StatusInClaim,
    /// The deadline is counted from the reply.
    SendTime,
    Deadline,
    WriteFence,
    Budget,
    TerminalInCancel,
    Sweep,
    LeaseInReap,
}

const START: State = State {
    row: Row { status: Status::Queued, owner: 0, lease: 0, requeues: 0, write_fence: false },
    message: true,
    workers: [Worker { phase: Phase::Idle, owner: 0, deadline: 0, heartbeat: Heartbeat::None }; 2],
    executions: 0,
    writes: 0,
    claims: 0,
};

impl Row {
    fn is_terminal(self) -> bool {
        matches!(self.status, Status::Completed | Status::Failed | Status::Cancelled)
    }

    fn ended(self, status: Status) -> Self {
        // The reaper leaves the write fence, which no operation reads any more.
        Self { status, owner: 0, lease: 0, ..self }
    }

    fn facts(&self, without: Without) -> Facts<'static> {
        Facts {
            pending_effect: if self.write_fence && without != Without::WriteFence {
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
                write_fence: false,
            },
            Decision::DeadLetter(_) => self.ended(Status::Failed),
        }
    }
}

impl Worker {
    fn counts_on_its_lease(&self) -> bool {
        self.deadline > 0 && matches!(self.phase, Phase::Running | Phase::Marked | Phase::Written)
    }

    /// The worker without a lease: lost, completed or dead. What it has sent stays in flight.
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
        match &mut worker.heartbeat {
            Heartbeat::Sent { left, .. } | Heartbeat::Executed { left, .. } => {
                *left = left.saturating_sub(1)
            }
            Heartbeat::None => {}
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
        next.push(("a duplicate wake-up", State { message: true, ..*state }));
    }
    if state.message {
        next.push(("the message is lost with its consumer", State { message: false, ..*state }));
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
                if worker.heartbeat == Heartbeat::None && worker.counts_on_its_lease() {
                    push(
                        "heartbeat",
                        row,
                        Worker {
                            heartbeat: Heartbeat::Sent { owner: worker.owner, left: LEASE },
                            ..worker
                        },
                        nothing,
                    );
                }
                if worker.phase == Phase::Running && worker.counts_on_its_lease() {
                    if owns {
                        let marked = Row { write_fence: true, lease: LEASE, ..row };
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
        match worker.heartbeat {
            Heartbeat::None => {}
            Heartbeat::Sent { owner, left } => {
                let matches = row.status == Status::Running
                    && (row.owner == owner || without == Without::OwnerInRenewal);
                if matches {
                    // The last write counts: a late request may even shorten the lease.
                    push(
                        "the heartbeat is executed",
                        Row { lease: left, ..row },
                        Worker { heartbeat: Heartbeat::Executed { owner, left }, ..worker },
                        nothing,
                    );
                } else if worker.owner == owner {
                    push(
                        "the heartbeat says lost",
                        row,
                        Worker { heartbeat: Heartbeat::None, ..worker.idle() },
                        nothing,
                    );
                }
                push(
                    "the heartbeat is lost",
                    row,
                    Worker { heartbeat: Heartbeat::None, ..worker },
                    nothing,
                );
            }
            Heartbeat::Executed { owner, left } => {
                push(
                    "the heartbeat's reply is lost",
                    row,
                    Worker { heartbeat: Heartbeat::None, ..worker },
                    nothing,
                );
                // After its deadline a lease is lost, whatever a late reply returns.
                if worker.owner == owner && (worker.deadline > 0 || without == Without::Deadline) {
                    let deadline = if without == Without::SendTime { LEASE } else { left };
                    push(
                        "the heartbeat's reply",
                        row,
                        Worker { heartbeat: Heartbeat::None, deadline, ..worker },
                        nothing,
                    );
                }
            }
        }
    }
    next
}

/// Returns the violation in a state, if there is one.
fn violation(state: &State) -> Option<&'static str> {
    for worker in &state.workers {
        if worker.counts_on_its_lease()
            && state.row.owner != worker.owner
            && matches!(state.row.status, Status::Queued | Status::Running)
        {
            return Some("a worker counts on a lease that it does not hold");
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
    /// The first violation and the shortest path to it.
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
    // From every state there is a path to an end without a lucky timing and without a user who
    // cancels: searched backwards from the ends.
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
    assert!(explored.states > 10_000, "the model has many states: {}", explored.states);
}

#[test]
fn each_rule_is_needed() {
    for (without, expected) in [
        (Without::OwnerInRenewal, "a worker counts on a lease that it does not hold"),
        (Without::OwnerInFinish, "a terminal row changes"),
        (Without::StatusInClaim, "a worker counts on a lease that it does not hold"),
        (Without::SendTime, "a worker counts on a lease that it does not hold"),
        (Without::Deadline, "a worker counts on a lease that it does not hold"),
        (Without::LeaseInReap, "a worker counts on a lease that it does not hold"),
        (Without::WriteFence, "a second non-idempotent write"),
        (Without::Budget, "too many executions"),
        (Without::TerminalInCancel, "a terminal row changes"),
        (Without::Sweep, "a run that never ends"),
    ] {
        let explored = explore(without);
        let (violation, way) = explored
            .violation
            .unwrap_or_else(|| panic!("without {without:?} there is no violation"));
        println!("without {without:?}: {violation}: {}", way.join(", "));
        assert_eq!(violation, expected, "without {without:?}: {way:?}");
    }
}
