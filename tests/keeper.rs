//! Kept leases on a real server, through a proxy that breaks exchanges. A test binary of its own:
//! the process has one heartbeat thread, so the tests run one after the other.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub
)]

mod support;

use std::fs;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mysql_async::Params;
use nrllm_runtime::config::options::{Options, Timeouts};
use nrllm_runtime::error::Kind;
use nrllm_runtime::keeper;
use nrllm_runtime::keeper::InterruptSignal;
use nrllm_runtime::keeper::KeepOptions;
use nrllm_runtime::keeper::Lease;
use nrllm_runtime::process::sessions::{self, Key};

use support::PATIENCE;
use support::database::{Database, Run};
use support::harness::{OWNER, settings};
use support::proxy::{Fault, FoundRows, Info, Kind as Sent, Proxy, Welcome, When};
use support::server::Endpoint;

const MILLISECOND: u64 = 1_000_000;

/// Runs one test at a time, since the process has one heartbeat thread.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    keeper::end_all();
    guard
}

/// A database of its own, and a proxy before its server.
fn behind_a_proxy() -> (MutexGuard<'static, ()>, Database, Proxy) {
    let (alone, database) = (alone(), Database::new());
    let proxy = Proxy::start(database.endpoint());
    (alone, database, proxy)
}

/// A database of its own, and the address of its server.
fn on_the_server() -> (MutexGuard<'static, ()>, Database, Endpoint) {
    let (alone, database) = (alone(), Database::new());
    let endpoint = database.endpoint().clone();
    (alone, database, endpoint)
}

fn heartbeat_threads() -> usize {
    states().len()
}

/// Returns the states of the heartbeat threads in the system: `S` for one that sleeps.
fn states() -> Vec<char> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let state = |stat: String| stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    tasks
        .map(|task| task.unwrap().path())
        .filter(|task| {
            fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "nrllm-heartbeat")
        })
        .filter_map(|task| fs::read_to_string(task.join("stat")).ok().and_then(state))
        .collect()
}

/// Waits until something holds.
#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// How a lease is kept, in milliseconds; `query_ms` is queryTimeoutMs.
#[derive(Clone, Copy)]
struct How {
    lease_seconds: i64,
    every_ms: u64,
    query_ms: u64,
    silent_seconds: u64,
    interrupts: bool,
}

/// Short intervals and time limits, and a long lease: for tests that the deadline does not concern.
const OFTEN: How = How {
    lease_seconds: 60,
    every_ms: 200,
    query_ms: 5_000,
    silent_seconds: 3_600,
    interrupts: false,
};

fn key(endpoint: &Endpoint, database: &Database, how: How) -> Key {
    let timeouts = Timeouts {
        connect: Duration::from_millis(how.query_ms.max(1_000)),
        query: Duration::from_millis(how.query_ms),
    };
    Key { connection: Arc::new(settings(endpoint, database.name())), timeouts }
}

fn keep(endpoint: &Endpoint, database: &mut Database, how: How) -> (i64, Lease) {
    let uid = database.insert(&Run::running(OWNER, 4_000_000_000));
    let key = key(endpoint, database, how);
    let options = Options { timeouts: key.timeouts, ..Options::default() };
    let options_of_keeping = KeepOptions {
        every: how.every_ms * MILLISECOND,
        max_silent: how.silent_seconds * 1_000 * MILLISECOND,
        interrupt_on_loss: how.interrupts,
        ..KeepOptions::parse(how.lease_seconds, &[]).unwrap()
    };
    let lease = keeper::keep(
        &key,
        &options,
        u64::try_from(uid).unwrap(),
        OWNER,
        options_of_keeping,
        how.interrupts.then(signal),
    )
    .unwrap();
    (uid, lease)
}

/// The execution of a heartbeat's statement.
fn heartbeat() -> When {
    When::command(|command| command.kind == Sent::Execute && command.sql.starts_with("UPDATE"))
}

fn until_renewed(lease: &Lease) {
    let heartbeats = lease.beats();
    until("further heartbeats", || lease.beats() > heartbeats + 1);
    until("a lease that is held", || lease.state() == "held");
}

#[test]
fn p17_deadline_counts_from_sending_the_heartbeat() {
    let (_alone, mut database, proxy) = behind_a_proxy();
    let (_, lease) =
        keep(proxy.endpoint(), &mut database, How { lease_seconds: 20, every_ms: 5_000, ..OFTEN });
    let held = proxy.rule(heartbeat(), Fault::HoldReply);
    held.wait();
    let start = Instant::now();
    let before = lease.beats();
    // The delay of the reply must not extend the lease.
    until("a late reply", || start.elapsed() > Duration::from_millis(1_500));
    held.release();
    until("the reply", || lease.beats() > before);
    let remaining = lease.remaining_ms();
    assert!(remaining <= 20_000 - 1_500, "{remaining}");
    assert!(remaining > 10_000 && lease.state() == "held", "{remaining}");
}

#[test]
fn p17_a_fault_makes_the_lease_unknown_until_renewed() {
    let _alone = alone();
    let faults = [
        ("no answer", Fault::Silence),
        ("a row lock", Fault::Refuse(1205)),
        ("a deadlock", Fault::Refuse(1213)),
        ("a statement that took too long", Fault::Refuse(1969)),
        ("a read-only server", Fault::Refuse(1290)),
        ("a node that is not ready", Fault::Refuse(1047)),
        ("a missing privilege", Fault::Refuse(1142)),
        ("a table that was dropped", Fault::Refuse(1146)),
        ("garbage", Fault::Garbage(vec![0xFF; 40])),
        ("a packet that makes no sense", Fault::Payload(vec![0x05, 0x01, 0x02])),
    ];
    for (what, fault) in faults {
        let mut database = Database::new();
        let proxy = Proxy::start(database.endpoint());
        let (uid, lease) = keep(proxy.endpoint(), &mut database, How { query_ms: 300, ..OFTEN });
        until_renewed(&lease);
        let row = database.row(uid);
        let rule = proxy.rule(heartbeat().always(), fault);
        until("unknown", || lease.state() == "unknown");
        assert!(lease.is_held() && lease.remaining_ms() > 0, "{what}");
        let error = lease.last_error().unwrap_or_default();
        assert!(
            !error.is_empty() && !error.contains(&proxy.endpoint().password),
            "{what}: {error}"
        );
        // The heartbeat is retried.
        rule.wait_for(rule.hits() + 2);
        assert_eq!(lease.state(), "unknown", "{what}");
        assert_eq!(database.row(uid)["claimed_by"], row["claimed_by"], "{what}");
        proxy.heal();
        until("held again", || lease.state() == "held");
        assert_eq!(lease.last_error(), None, "{what}");
        until_renewed(&lease);
        lease.release();
        assert_eq!(heartbeat_threads(), 0, "{what}");
    }
}

#[test]
fn lost_reply_costs_one_connection() {
    let _alone = alone();
    for fault in [Fault::CutBefore, Fault::CutAfter, Fault::CutWithin(3)] {
        let mut database = Database::new();
        let proxy = Proxy::start(database.endpoint());
        let (_, lease) = keep(proxy.endpoint(), &mut database, OFTEN);
        until_renewed(&lease);
        let connections = proxy.connections();
        proxy.rule(heartbeat(), fault).wait();
        until_renewed(&lease);
        assert_eq!((lease.state(), proxy.connections()), ("held", connections + 1));
    }
}

#[test]
fn the_server_refuses_connections_for_a_while() {
    let _alone = alone();
    for welcome in [
        Welcome::Refuse(1040),
        Welcome::Cut,
        Welcome::Silence,
        Welcome::CutAtLogin,
        Welcome::Garbage(vec![0; 64]),
    ] {
        let mut database = Database::new();
        let proxy = Proxy::start(database.endpoint());
        let (_, lease) = keep(proxy.endpoint(), &mut database, OFTEN);
        until_renewed(&lease);
        proxy.welcome(welcome.clone(), 3);
        let made = proxy.connections();
        proxy.cut_all();
        proxy.wait_for_connections(made + 4);
        until("held again", || lease.state() == "held");
        until_renewed(&lease);
    }
}

#[test]
fn p01_heartbeats_do_not_depend_on_the_row_count() {
    let _alone = alone();
    for (found_rows, info) in [
        (FoundRows::On, Info::Keep),
        (FoundRows::Off, Info::Keep),
        (FoundRows::Flipped, Info::Drop),
        (FoundRows::Off, Info::Drop),
        (FoundRows::Off, Info::Translate),
    ] {
        let mut database = Database::new();
        let proxy = Proxy::start(database.endpoint());
        proxy.found_rows(found_rows);
        proxy.info(info);
        // Several heartbeats per second: most of them leave the row unchanged.
        let (uid, lease) = keep(proxy.endpoint(), &mut database, How { every_ms: 100, ..OFTEN });
        until("heartbeats", || lease.beats() > 5);
        assert_eq!(lease.state(), "held");
        database.set(uid, "claimed_by", "worker:other");
        until("the loss", || lease.state() == "lost");
    }
}

#[test]
fn p20_leases_share_one_connection_whatever_their_intervals() {
    let (_alone, mut database, proxy) = behind_a_proxy();
    let leases: Vec<Lease> = [100, 150, 200, 250, 100]
        .map(|every_ms| {
            keep(proxy.endpoint(), &mut database, How { every_ms, query_ms: 5_000, ..OFTEN }).1
        })
        .into_iter()
        .collect();
    until("heartbeats of all", || leases.iter().all(|lease| lease.beats() > 4));
    assert_eq!((proxy.connections(), heartbeat_threads()), (1, 1), "one for calls and heartbeats");
    // Each heartbeat has its own time limit, which is set on the server when it changes.
    assert!(
        proxy
            .statements()
            .iter()
            .filter(|sql| sql.starts_with("SET innodb_lock_wait_timeout"))
            .count()
            > 0
    );
    drop(leases);
    proxy.wait_for_open(1);
    assert_eq!(heartbeat_threads(), 0);
}

/// Sends a query that takes so long, as a call of the thread that keeps the lease.
fn slow_call(key: &Key, milliseconds: u64) {
    let sql = format!("SELECT SLEEP({})", milliseconds as f64 / 1_000.0);
    let rows = sessions::call(key, async |session| session.query(&sql, Params::Empty).await);
    assert_eq!(rows.unwrap().len(), 1);
}

#[test]
fn p20_a_kept_lease_needs_one_connection() {
    let (_alone, mut database, proxy) = behind_a_proxy();
    let key = key(proxy.endpoint(), &database, OFTEN);
    slow_call(&key, 1);
    let (_, lease) = keep(proxy.endpoint(), &mut database, OFTEN);
    for _ in 0..5 {
        let heartbeats = lease.beats();
        until("a heartbeat", || lease.beats() > heartbeats);
        slow_call(&key, 1);
    }
    assert_eq!(proxy.connections(), 1);
    drop(lease);
    slow_call(&key, 1);
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn a_call_does_not_wait_for_a_heartbeat_without_reply() {
    let (_alone, mut database, proxy) = behind_a_proxy();
    let key = key(proxy.endpoint(), &database, OFTEN);
    let (_, lease) = keep(proxy.endpoint(), &mut database, How { every_ms: 3_000, ..OFTEN });
    let held = proxy.rule(heartbeat(), Fault::HoldReply);
    held.wait();
    let start = Instant::now();
    slow_call(&key, 1);
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(proxy.connections(), 2);
    proxy.wait_for_open(1);
    held.release();
    until_renewed(&lease);
    assert_eq!(proxy.connections(), 2);
}

#[test]
fn call_waits_for_a_heartbeat_on_one_connection() {
    let (_alone, mut database, proxy) = behind_a_proxy();
    let key = key(proxy.endpoint(), &database, OFTEN);
    let (_, lease) = keep(proxy.endpoint(), &mut database, How { every_ms: 3_000, ..OFTEN });
    let held = proxy.rule(heartbeat(), Fault::HoldReply);
    held.wait();
    proxy.welcome(Welcome::Refuse(1226), 1_000);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            proxy.wait_for_connections(2);
            held.release();
        });
        // The session belongs to this thread.
        slow_call(&key, 1);
    });
    assert!(lease.is_held());
    proxy.heal();
}

#[test]
fn a_lease_is_renewed_during_a_long_call() {
    let (_alone, mut database, proxy) = behind_a_proxy();
    let how = How { lease_seconds: 2, every_ms: 300, ..OFTEN };
    let key = key(proxy.endpoint(), &database, how);
    let (_, lease) = keep(proxy.endpoint(), &mut database, how);
    let heartbeats = lease.beats();
    slow_call(&key, 3_500);
    assert!(lease.beats() > heartbeats + 3, "{}", lease.beats());
    assert_eq!((lease.state(), proxy.connections()), ("held", 2));
    // The next heartbeat has the session again, and closes the other connection.
    proxy.wait_for_open(1);
    until_renewed(&lease);
    assert_eq!(proxy.connections(), 2);
}

#[test]
fn a_second_connection_that_is_refused_loses_no_lease() {
    let (_alone, mut database, proxy) = behind_a_proxy();
    let how = How { lease_seconds: 10, every_ms: 300, ..OFTEN };
    let key = key(proxy.endpoint(), &database, how);
    let (_, lease) = keep(proxy.endpoint(), &mut database, how);
    proxy.welcome(Welcome::Refuse(1226), 1_000);
    slow_call(&key, 1_500);
    assert!(lease.is_held());
    until_renewed(&lease);
    proxy.heal();
}

#[test]
fn p30_a_column_that_is_missing_for_a_moment_loses_no_lease() {
    let (_alone, mut database, endpoint) = on_the_server();
    let how = How { lease_seconds: 20, ..OFTEN };
    let (_, lease) = keep(&endpoint, &mut database, how);
    until_renewed(&lease);
    database.client().run("ALTER TABLE tx_nrllm_agentrun RENAME COLUMN claimed_by TO owner");
    until("a heartbeat that fails", || lease.state() == "unknown");
    assert!(lease.last_error().is_some_and(|error| error.contains("claimed_by")));
    database.client().run("ALTER TABLE tx_nrllm_agentrun RENAME COLUMN owner TO claimed_by");
    until_renewed(&lease);
    assert_eq!(lease.last_error(), None);
}

#[test]
fn p29_a_stalled_server_holds_one_heartbeat_connection() {
    let (_alone, mut database, proxy) = behind_a_proxy();
    let (_, lease) = keep(proxy.endpoint(), &mut database, How { query_ms: 200, ..OFTEN });
    let stalled = proxy.rule(heartbeat().always(), Fault::Silence);
    // Each heartbeat without a reply costs its connection.
    let made = proxy.connections();
    proxy.wait_for_connections(made + 5);
    assert!(proxy.open_connections() <= 2, "{}", proxy.open_connections());
    stalled.cancel();
    proxy.heal();
    until_renewed(&lease);
    proxy.wait_for_open(1);
}

#[test]
fn silent_server_does_not_delay_leases_on_another() {
    let _alone = alone();
    let (mut one, mut other) = (Database::new(), Database::new());
    let proxy = Proxy::start(one.endpoint());
    // The longest interval, half the lease, beside a heartbeat that waits for its whole limit.
    let how = How { lease_seconds: 4, every_ms: 2_000, ..OFTEN };
    let (_, stuck) =
        keep(proxy.endpoint(), &mut one, How { lease_seconds: 60, every_ms: 3_000, ..how });
    let endpoint = other.endpoint().clone();
    let (_, free) = keep(&endpoint, &mut other, how);
    let silence = proxy.rule(When::any_command().always(), Fault::Silence);
    silence.wait();
    let heartbeats = free.beats();
    until("heartbeats of the other", || {
        assert!(free.is_held(), "{:?}", free.last_error());
        free.beats() > heartbeats + 3
    });
    assert!(stuck.state() == "unknown" || silence.hits() > 0);
}

/// A heartbeat that may wait for four seconds.
const LONG_WAIT: How = How { lease_seconds: 20, every_ms: 4_000, ..OFTEN };

#[test]
fn p17_new_lease_is_renewed_while_another_heartbeat_waits() {
    let (_alone, mut database, proxy) = behind_a_proxy();
    let (_, stuck) = keep(proxy.endpoint(), &mut database, LONG_WAIT);
    let held = proxy.rule(heartbeat(), Fault::HoldReply);
    held.wait();
    let (_, late) =
        keep(proxy.endpoint(), &mut database, How { lease_seconds: 2, every_ms: 1_000, ..OFTEN });
    until("heartbeats of the late one", || {
        assert!(late.is_held(), "{:?}", late.last_error());
        late.beats() > 4
    });
    // The heartbeat that was given up is tried again.
    until("the other", || stuck.state() == "held" && stuck.beats() > 1);
    held.release();
}

#[test]
fn p18_resumed_lease_is_renewed_while_another_waits() {
    let (_alone, mut database, proxy) = behind_a_proxy();
    let (_, stuck) = keep(proxy.endpoint(), &mut database, LONG_WAIT);
    let (_, silent) = keep(
        proxy.endpoint(),
        &mut database,
        How { lease_seconds: 6, every_ms: 2_000, silent_seconds: 1, ..OFTEN },
    );
    let held = proxy.rule(heartbeat(), Fault::HoldReply);
    held.wait();
    assert!(
        silent.last_error().is_some_and(|error| error.contains("no step()")),
        "{:?}",
        silent.last_error()
    );
    until("heartbeats of the resumed one", || {
        silent.step().unwrap();
        silent.beats() > 4
    });
    until("the other", || stuck.state() == "held" && stuck.beats() > 1);
    held.release();
}

/// The signal to the thread of the tests, which run one after the other.
static SIGNAL: LazyLock<Arc<InterruptSignal>> = LazyLock::new(Arc::default);

fn signal() -> Arc<InterruptSignal> {
    Arc::clone(&SIGNAL)
}

#[test]
fn p17_deadline_passes_while_a_heartbeat_waits() {
    let (_alone, mut database, proxy) = behind_a_proxy();
    let how = How { lease_seconds: 2, every_ms: 1_000, interrupts: true, ..OFTEN };
    signal().take();
    let (_, lease) = keep(proxy.endpoint(), &mut database, how);
    let silence = proxy.rule(When::any_command().always(), Fault::Silence);
    silence.wait();
    // No method of the lease is called: the thread notices by itself.
    until("the raised signal", || signal().is_pending());
    assert_eq!((lease.state(), lease.remaining_ms()), ("lost", 0));
    let loss = keeper::take_loss().unwrap();
    assert!(loss.kind == Kind::LeaseLost && loss.message.contains("deadline passed"), "{loss}");
    assert!(keeper::take_loss().is_none());
    assert!(signal().take());
    until("the end of the thread", || heartbeat_threads() == 0);
    assert!(!signal().is_pending(), "once");
}

/// The seconds of suspend that the clocks of this binary count.
#[cfg(target_os = "linux")]
static SLEPT: AtomicI64 = AtomicI64::new(0);

/// Replaces the C library's function in this binary, also for Rust's own timers: suspend moves this
/// clock alone.
///
/// # Safety
///
/// As the C library's.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(
    clock: libc::clockid_t,
    time: *mut libc::timespec,
) -> libc::c_int {
    // SAFETY: the caller's `time` may be written, and is what this call fills.
    unsafe {
        let code = libc::syscall(libc::SYS_clock_gettime, clock, time);
        if code == 0 && clock == libc::CLOCK_BOOTTIME {
            (*time).tv_sec += SLEPT.load(Ordering::SeqCst);
        }
        if code == 0 { 0 } else { -1 }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn p17_suspended_time_counts_and_is_noticed_soon() {
    let (_alone, mut database, endpoint) = on_the_server();
    let how = How { lease_seconds: 3_600, every_ms: 1_200_000, ..OFTEN };
    signal().take();
    let (_, polled) = keep(&endpoint, &mut database, how);
    let (_, interrupted) = keep(&endpoint, &mut database, How { interrupts: true, ..how });
    until("a thread that sleeps", || states() == ['S']);
    assert!(polled.is_held() && interrupted.is_held());
    SLEPT.fetch_add(3_600, Ordering::SeqCst);
    assert_eq!((polled.state(), polled.remaining_ms()), ("lost", 0));
    // Its timer would fire in twenty minutes. No method of the other lease is called.
    until("the raised signal", || signal().is_pending());
    assert_eq!(interrupted.state(), "lost");
    assert!(keeper::take_loss().is_some());
}

#[test]
fn p19_no_heartbeat_is_sent_after_a_release() {
    let (_alone, mut database, proxy) = behind_a_proxy();
    type End = fn(Lease);
    let endings: [(&str, End); 3] = [
        ("released", |lease| lease.release()),
        ("dropped", drop),
        ("the request ends", |lease| {
            keeper::end_all();
            assert_eq!(lease.state(), "stopped");
        }),
    ];
    for (what, end) in endings {
        let (_, lease) = keep(proxy.endpoint(), &mut database, OFTEN);
        until_renewed(&lease);
        let held = proxy.rule(heartbeat(), Fault::HoldRequest);
        held.wait();
        let start = Instant::now();
        end(lease);
        // Far below the time of a wait for the server.
        assert!(start.elapsed() < Duration::from_secs(3), "{what}");
        assert_eq!(heartbeat_threads(), 0, "{what}: without its thread nothing is sent");
        held.release();
        // The connection of the heartbeat that was given up is discarded, and no other is left.
        proxy.wait_for_open(0);
        proxy.heal();
    }
}

#[test]
fn shutdown_does_not_wait_for_a_silent_server() {
    let (_alone, mut database, proxy) = behind_a_proxy();
    let (_, lease) = keep(proxy.endpoint(), &mut database, OFTEN);
    until_renewed(&lease);
    let made = proxy.connections();
    proxy.welcome(Welcome::Silence, 100);
    proxy.cut_all();
    proxy.wait_for_connections(made + 1);
    let start = Instant::now();
    keeper::end_all();
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!((lease.state(), heartbeat_threads()), ("stopped", 0));
}

#[test]
fn the_thread_lives_from_the_first_lease_to_the_last() {
    let (_alone, mut database, endpoint) = on_the_server();
    for _ in 0..20 {
        let (uid, one) = keep(&endpoint, &mut database, OFTEN);
        let (_, two) = keep(&endpoint, &mut database, OFTEN);
        // A thread names itself when it first runs.
        until("one thread for both", || heartbeat_threads() == 1);
        drop(two);
        assert_eq!(heartbeat_threads(), 1);
        // It ends by itself when the last lease does, and is started anew.
        database.set(uid, "status", "completed");
        until("the end of the thread", || heartbeat_threads() == 0);
        assert_eq!(one.state(), "stopped");
        let (_, three) = keep(&endpoint, &mut database, OFTEN);
        until_renewed(&three);
        three.release();
        assert_eq!(heartbeat_threads(), 0);
    }
}

#[test]
fn a_request_ends_the_leases_of_its_thread_only() {
    let (_alone, mut database, endpoint) = on_the_server();
    let (_, ours) = keep(&endpoint, &mut database, OFTEN);
    let (_, theirs) = std::thread::scope(|scope| {
        scope.spawn(|| keep(&endpoint, &mut database, OFTEN)).join().unwrap()
    });
    keeper::end_thread();
    assert_eq!((ours.state(), theirs.state()), ("stopped", "held"));
    assert_eq!(heartbeat_threads(), 1);
    until_renewed(&theirs);
    theirs.release();
    assert_eq!(heartbeat_threads(), 0);
}

#[test]
fn a_loss_is_thrown_on_the_thread_that_keeps_the_lease() {
    let (_alone, mut database, endpoint) = on_the_server();
    let how = How { interrupts: true, ..OFTEN };
    signal().take();
    let (uid, ours) = keep(&endpoint, &mut database, how);
    database.set(uid, "claimed_by", "worker:other");
    until("the raised signal", || signal().is_pending());
    assert_eq!(ours.state(), "lost");
    assert!(std::thread::spawn(|| keeper::take_loss().is_none()).join().unwrap());
    assert_eq!(keeper::take_loss().unwrap().kind, Kind::LeaseLost);
    assert!(keeper::take_loss().is_none());
}

#[test]
fn leases_of_many_threads_are_kept_by_one() {
    let (_alone, mut database, endpoint) = on_the_server();
    let uids = database.insert_all(&vec![Run::running(OWNER, 4_000_000_000); 200]);
    let key = Key {
        connection: Arc::new(settings(&endpoint, database.name())),
        timeouts: Timeouts::default(),
    };
    std::thread::scope(|scope| {
        for part in uids.chunks(50) {
            let key = &key;
            scope.spawn(move || {
                for &uid in part {
                    let how = KeepOptions {
                        every: 100 * MILLISECOND,
                        ..KeepOptions::parse(60, &[]).unwrap()
                    };
                    let lease = keeper::keep(
                        key,
                        &Options::default(),
                        u64::try_from(uid).unwrap(),
                        OWNER,
                        how,
                        None,
                    )
                    .unwrap();
                    if uid % 3 == 0 {
                        until("a heartbeat", || lease.beats() > 1);
                    }
                    lease.step().unwrap();
                    assert!(lease.is_held());
                }
            });
        }
    });
    assert_eq!(heartbeat_threads(), 0);
}
