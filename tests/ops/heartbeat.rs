//! The statement of the heartbeat thread (rules 16 and 17).

use std::time::{SystemTime, UNIX_EPOCH};

use nrllm_runtime::config::options::{Clock, Options};
use nrllm_runtime::domain::holder::Holder;
use nrllm_runtime::domain::lease_state::LeaseState;
use nrllm_runtime::ops::heartbeat::{End, HeartbeatResult, send_heartbeat};

use crate::support::database::{Database, Run};
use crate::support::harness::{Harness, OWNER};

fn sent(harness: &mut Harness, uid: i64, owner: &str, seconds: i64, end: End) -> HeartbeatResult {
    let options = harness.options.clone();
    let holder = Holder { run_uid: u64::try_from(uid).unwrap(), owner };
    harness
        .run(async |session, _| {
            send_heartbeat(session, &options, holder, seconds, end, || true).await
        })
        .unwrap()
}

fn lease(database: &mut Database, uid: i64) -> i64 {
    String::from_utf8(database.row(uid)["lease_expires"].clone().unwrap()).unwrap().parse().unwrap()
}

/// The time between connecting and the reply that a heartbeat may take, with the default options.
const LIMITS: i64 = 8;

fn now() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(elapsed.as_secs()).unwrap()
}

fn with_clock(clock: Clock) -> (Database, Harness, i64) {
    let mut database = Database::new();
    let uid = database.insert(&Run::running(OWNER, 4_000_000_000));
    let harness = Harness::with(&database, Options { clock, ..Options::default() });
    (database, harness, uid)
}

/// A heartbeat that was given up may arrive after a later one: the row would be stale before the
/// deadline of its holder.
#[test]
fn p17_late_heartbeat_does_not_move_the_lease_back() {
    for clock in [Clock::Caller, Clock::Database] {
        let (mut database, mut harness, uid) = with_clock(clock);
        // The first heartbeat replaces any lease.
        assert_eq!(sent(&mut harness, uid, OWNER, 60, End::Exact), HeartbeatResult::Renewed);
        let first = lease(&mut database, uid);
        assert!((now() + 50..=now() + 60).contains(&first), "{clock:?}: {first}");
        // As a heartbeat leaves it that was sent within the time limits of the late one.
        let later = (first + LIMITS - 4).to_string();
        database.set(uid, "lease_expires", &later);
        assert_eq!(sent(&mut harness, uid, OWNER, 60, End::NeverEarlier), HeartbeatResult::Renewed);
        assert_eq!(lease(&mut database, uid).to_string(), later, "{clock:?}");
        assert_eq!(
            sent(&mut harness, uid, OWNER, 600, End::NeverEarlier),
            HeartbeatResult::Renewed
        );
        assert!(lease(&mut database, uid) >= first + 540, "{clock:?}");
    }
}

#[test]
fn p32_next_heartbeat_repairs_a_lease_far_ahead() {
    for clock in [Clock::Caller, Clock::Database] {
        let (mut database, mut harness, uid) = with_clock(clock);
        assert_eq!(sent(&mut harness, uid, OWNER, 60, End::NeverEarlier), HeartbeatResult::Renewed);
        let ends_in = lease(&mut database, uid) - now();
        assert!((50..=60 + LIMITS).contains(&ends_in), "{clock:?}: {ends_in}");
    }
}

/// With the caller's clock the server is a day ahead of the caller, which is behind for a moment;
/// with the database's it is a day behind.
#[test]
fn p32_a_clock_that_is_behind_makes_no_live_run_stale() {
    const DAY: i64 = 86_400;
    for (clock, server) in [(Clock::Caller, DAY), (Clock::Database, -DAY)] {
        let (mut database, mut harness, uid) = with_clock(clock);
        let expires = match clock {
            Clock::Caller => now() + DAY + 60,
            Clock::Database => now() + 60,
        };
        database.set(uid, "lease_expires", expires.to_string());
        let sql = format!("SET timestamp = {}", now() + server);
        harness
            .run(async |session, _| session.execute(&sql, mysql_async::Params::Empty).await)
            .unwrap();
        assert_eq!(sent(&mut harness, uid, OWNER, 60, End::NeverEarlier), HeartbeatResult::Renewed);
        assert_eq!(lease(&mut database, uid), expires, "{clock:?}");
    }
}

#[test]
fn p16_refused_heartbeat_has_a_reason_and_writes_nothing() {
    let mut database = Database::new();
    let table = [
        (Run::running("worker:other", 4_000_000_000), LeaseState::Taken),
        (Run::queued(), LeaseState::Requeued),
        (Run::in_status("waiting_for_input"), LeaseState::Waiting),
        (Run::in_status("cancelled"), LeaseState::Cancelled),
        (Run::in_status("completed"), LeaseState::Completed),
        (Run::in_status("failed"), LeaseState::Failed),
        (Run::in_status("some_later_status"), LeaseState::Other),
    ];
    let mut harness = Harness::on(&database);
    for (run, state) in table {
        let uid = database.insert(&run);
        let before = database.row(uid);
        assert_eq!(
            sent(&mut harness, uid, OWNER, 60, End::NeverEarlier),
            HeartbeatResult::NotOwner(state)
        );
        assert_eq!(database.row(uid), before, "{state:?}");
    }
    assert_eq!(
        sent(&mut harness, 4_000_000_000, OWNER, 60, End::NeverEarlier),
        HeartbeatResult::NotOwner(LeaseState::Gone)
    );
}
