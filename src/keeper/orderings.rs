//! The memory orderings of a kept lease and of the interrupt signal, checked with loom: every
//! interleaving of two threads, with every value that the memory model lets a load return. The
//! model in `model.rs` explores longer histories, but sequentially consistent ones.
//!
//! Run it with `cargo test --no-default-features --features loom --lib keeper::orderings`.

use std::collections::BTreeMap;
use std::process::Command;
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError};

use loom::cell::UnsafeCell;
use loom::thread;

use super::control::ThreadControl;
use super::interrupt_signal::InterruptSignal;
use super::shared::{LeaseAtomics, SharedLease};
use super::status::{EndReason, LeaseStatus};
use super::sync::{AtomicBool, Ordering, STRONG};

/// The lease starts here, lasts so long, and ends there.
const START: u64 = 1_000;
const LEASE: u64 = 3_000;
const END: u64 = START + LEASE;

/// Three switches away from a thread that could go on suffice for every fault that was planted so
/// far; without a bound, the search takes hours.
fn check(scenario: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(scenario);
}

fn lease(on_loss: Option<&Arc<InterruptSignal>>) -> Arc<SharedLease> {
    let state = LeaseAtomics::new(START, LEASE, START, on_loss.is_some());
    let control = Arc::new(ThreadControl::default());
    Arc::new(SharedLease::new(7, "worker:a", state, on_loss.cloned(), control))
}

/// Explores two threads: the one that keeps leases, and the holder of one, which is the main thread
/// of the model.
fn explore(
    prepare: impl Fn() -> Arc<SharedLease> + Send + Sync + 'static,
    keeper: impl Fn(&SharedLease) + Copy + Send + Sync + 'static,
    holder: impl Fn(&Arc<SharedLease>, thread::JoinHandle<()>) + Send + Sync + 'static,
) {
    check(move || {
        let lease = prepare();
        let kept = Arc::clone(&lease);
        let keeping = thread::spawn(move || keeper(&kept));
        holder(&lease, keeping);
    });
}

/// A thread of the host: its flag (`vm_interrupt` in PHP), the signal, and a lease that interrupts.
struct Host {
    flag: NonNull<AtomicBool>,
    signal: Arc<InterruptSignal>,
    lease: Arc<SharedLease>,
}

impl Host {
    fn new() -> Self {
        let flag = NonNull::from(Box::leak(Box::new(AtomicBool::new(false))));
        let signal = Arc::new(InterruptSignal::new());
        // SAFETY: the flag is leaked.
        unsafe { signal.arm(flag) };
        let lease = lease(Some(&signal));
        Self { flag, signal, lease }
    }

    /// Another thread loses the lease.
    fn loses(&self, reason: EndReason) -> thread::JoinHandle<()> {
        let lease = Arc::clone(&self.lease);
        thread::spawn(move || lease.refused(reason))
    }

    /// Returns whether the engine was asked for a call. It clears its flag before it calls, with a
    /// sequentially consistent store.
    fn is_asked(&self) -> bool {
        // SAFETY: the flag is leaked.
        unsafe { self.flag.as_ref() }.swap(false, Ordering::SeqCst)
    }

    /// The engine's call. Returns how many losses it throws.
    fn called(&self) -> usize {
        usize::from(
            self.signal.is_pending()
                && self.signal.take()
                && self.lease.take_loss(START + 1).is_some(),
        )
    }
}

#[test]
fn scenario_a_loss_is_thrown_exactly_once() {
    check(|| {
        let host = Host::new();
        let losing = host.loses(EndReason::Taken);
        // Another module asked for this call, so that it follows no store to the flag.
        let mut thrown =
            usize::from(host.signal.take() && host.lease.take_loss(START + 1).is_some());
        if host.is_asked() {
            thrown += host.called();
        }
        losing.join().unwrap();
        if host.is_asked() {
            thrown += host.called();
        }
        assert_eq!(thrown, 1);
        assert_eq!(host.called(), 0);
    });
}

#[test]
fn scenario_a_thrown_loss_has_its_reason() {
    check(|| {
        let host = Host::new();
        let losing = host.loses(EndReason::Cancelled);
        if let Some(kind) = host.lease.due_loss(START + 1) {
            assert_eq!(kind, crate::error::Kind::RunCancelled);
        }
        let mut thrown = Vec::from_iter(host.lease.take_loss(START + 1));
        losing.join().unwrap();
        thrown.extend(host.lease.take_loss(START + 1));
        let kinds: Vec<_> = thrown.iter().map(|error| error.kind).collect();
        assert_eq!(kinds, [crate::error::Kind::RunCancelled]);
    });
}

#[test]
fn scenario_no_loss_is_thrown_after_a_release() {
    check(|| {
        let host = Host::new();
        let losing = host.loses(EndReason::Taken);
        host.lease.disarm_and_release();
        assert_eq!(host.called(), 0);
        losing.join().unwrap();
        assert_eq!(host.called(), 0);
    });
}

#[test]
fn scenario_no_raise_touches_the_flag_of_an_ended_request() {
    check(|| {
        let host = Host::new();
        let losing = host.loses(EndReason::Taken);
        host.signal.request_ended();
        // From here on the host may free the flag.
        // SAFETY: it is leaked.
        unsafe { host.flag.as_ref() }.touch();
        losing.join().unwrap();
    });
}

#[test]
#[allow(clippy::arc_with_non_send_sync)]
fn scenario_no_heartbeat_is_sent_after_a_release() {
    check(|| {
        let lease = lease(None);
        // Touched by the heartbeat, and by the holder after its release: loom reports two at once.
        let connection = Arc::new(UnsafeCell::new(0));
        let keeping = thread::spawn({
            let (lease, connection) = (Arc::clone(&lease), Arc::clone(&connection));
            move || {
                if lease.heartbeat_starts(START + 1) {
                    // SAFETY: what is checked: the holder comes here before the heartbeat, or after
                    // it.
                    connection.with_mut(|connection| unsafe { *connection += 1 });
                    lease.heartbeat_ends();
                }
            }
        });
        lease.disarm_and_release();
        lease.wait_for_heartbeat();
        // SAFETY: as above.
        connection.with_mut(|connection| unsafe { *connection += 1 });
        keeping.join().unwrap();
    });
}

#[test]
fn scenario_a_held_lease_has_its_own_deadline() {
    let prepare = || {
        let lease = lease(None);
        lease.failed(START + 1, String::new());
        lease
    };
    let renew = |lease: &SharedLease| lease.renewed(START + 2, START + 2, LEASE);
    explore(prepare, renew, |lease, keeping| {
        if lease.status(START + 3) == LeaseStatus::Held {
            assert_eq!(lease.deadline(), END + 2);
        }
        keeping.join().unwrap();
        assert_eq!(lease.status(END + 1), LeaseStatus::Held);
    });
}

#[test]
fn scenario_an_ended_lease_is_never_held_again() {
    explore(
        || lease(None),
        |lease| {
            lease.failed(END - 2, String::new());
            lease.renewed(END - 1, END - 1, LEASE);
        },
        |lease, keeping| {
            let seen = lease.status(END);
            let then = lease.status(START);
            assert!(!seen.is_final() || then == seen, "{seen:?}, then {then:?}");
            keeping.join().unwrap();
            let at_last = lease.status(START);
            assert!(!then.is_final() || at_last == then, "{then:?}, then {at_last:?}");
        },
    );
}

#[test]
fn scenario_one_end_wins() {
    explore(
        || lease(None),
        |lease| lease.refused(EndReason::Gone),
        |lease, keeping| {
            let seen = lease.status(END);
            assert!(matches!(seen, LeaseStatus::Ended(EndReason::Gone | EndReason::Expired)));
            keeping.join().unwrap();
            assert_eq!(lease.status(END), seen);
        },
    );
}

#[test]
fn scenario_a_step_is_seen_by_the_limit_or_notifies_the_thread() {
    // The thread's result is returned through a plain variable of the model.
    check(|| {
        let lease = lease(None);
        let keeping = thread::spawn({
            let lease = Arc::clone(&lease);
            move || lease.pause(START, || String::from("no step"))
        });
        let notified = lease.step(START + 1);
        let paused = keeping.join().unwrap();
        assert!(notified || !paused, "the renewal is paused although a step was made");
    });
}

/// The orderings that may be relaxed without any scenario failing, with the reason why they are
/// what they are. A place is named by the beginning of its statement.
const NOT_NEEDED: &[(&str, &str)] = &[
    (
        "self.flag.store(flag.as_ptr(), Ordering::Release);",
        "the flag is a static of the host: nothing behind the pointer has to be published",
    ),
    ("NonNull::new(self.flag.load(Ordering::Acquire))", "as above"),
    ("self.flag.swap(null_mut(), Ordering::AcqRel);", "published by the exchange of `raising`"),
    (
        "if self.generation.swap(generation, Ordering::AcqRel) != generation {",
        "written and read by the host's thread alone",
    ),
    ("while self.generation.load(Ordering::Acquire) == fork::generation()", "as above"),
    ("self.pending.store(false, Ordering::Release);", "read by the host's thread that wrote it"),
    ("self.pending.load(Ordering::Acquire)", "a first look: take() decides"),
    ("self.deadline.load(Ordering::Acquire)", "published by the status"),
    (
        "self.deadline.fetch_max(deadline, Ordering::AcqRel);",
        "published by the status, which is written after it",
    ),
    (
        "let mut current = self.status.load(Ordering::Acquire);",
        "a first look: the exchange decides",
    ),
    (
        "match self.status.compare_exchange_weak(",
        "the end of a lease is published by the notice, and to the thread by the lock",
    ),
    ("self.heartbeats.fetch_add(1, Ordering::AcqRel);", "a count that nothing depends on"),
    ("self.last_step.load(Ordering::Acquire)", "published by the exchange of `paused`"),
    ("self.last_step.store(now, Ordering::Release);", "published by the exchange of `paused`"),
    ("self.paused.store(false, Ordering::Release);", "the thread withdraws its own pause"),
    (
        "self.notice.load(Ordering::Acquire) == notice::DUE",
        "a first look: the exchange decides, and the signal has published the status before",
    ),
    ("self.notice.store(notice::OFF, Ordering::Release);", "read by the holder that wrote it"),
];

/// The statement that begins in this line, on one line.
fn statement(source: &str, line: usize) -> String {
    let mut words = Vec::new();
    for line in source.lines().skip(line - 1) {
        words.extend(line.split_whitespace());
        if line.ends_with([';', '{', '}']) {
            break;
        }
    }
    words.join(" ")
}

#[test]
fn every_ordering_is_needed_or_listed() {
    if std::env::var_os("NRLLM_WEAKENED").is_some() {
        return;
    }
    scenario_a_loss_is_thrown_exactly_once();
    scenario_a_thrown_loss_has_its_reason();
    scenario_no_loss_is_thrown_after_a_release();
    scenario_no_heartbeat_is_sent_after_a_release();
    scenario_a_held_lease_has_its_own_deadline();
    scenario_an_ended_lease_is_never_held_again();
    scenario_no_raise_touches_the_flag_of_an_ended_request();
    scenario_one_end_wins();
    scenario_a_step_is_seen_by_the_limit_or_notifies_the_thread();
    let places = STRONG.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut unexpected = BTreeMap::new();
    for place in places {
        let [file, line, _] = place.split(':').collect::<Vec<_>>()[..] else { panic!("{place}") };
        if file.ends_with("orderings.rs") {
            continue;
        }
        let source = std::fs::read_to_string(file).unwrap();
        let text = statement(&source, line.parse().unwrap());
        let run = Command::new(std::env::current_exe().unwrap())
            .args(["keeper::orderings::scenario_", "--test-threads=2"])
            .env("NRLLM_WEAKENED", &place)
            .output()
            .unwrap();
        let found = !run.status.success();
        println!("{place} {text}: {}", if found { "found" } else { "not found" });
        let listed = NOT_NEEDED.iter().any(|(known, _)| text.starts_with(known));
        if found == listed {
            unexpected.insert(place, text);
        }
    }
    assert!(
        unexpected.is_empty(),
        "weakened and not found, or found although listed: {unexpected:#?}"
    );
}
