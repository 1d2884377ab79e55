//! The statement of the heartbeat thread (rules 16 and 17).

use nrllm_runtime::config::options::{Clock, Options};
use nrllm_runtime::domain::holder::Holder;
use nrllm_runtime::domain::lease_state::LeaseState;
use nrllm_runtime::ops::heartbeat::{Beat, End, beat};

use crate::support::database::{Database, Run};
use crate::support::harness::{Harness, OWNER};

fn sent(harness: &mut Harness, uid: i64, owner: &str, seconds: i64, end: End) -> Beat {
    let options = harness.options.clone();
    let holder = Holder { run_uid: u64::try_from(uid).unwrap(), owner };
    harness
        .run(async |session, _| beat(session, &options, holder, seconds, end, || true).await)
        .unwrap()
}

fn lease(database: &mut Database, uid: i64) -> i64 {
    String::from_utf8(database.row(uid)["lease_expires"].clone().unwrap()).unwrap().parse().unwrap()
}

/// A beat that was given up may arrive behind a later one: the row would be stale while its holder still believes in the lease.
#[test]
fn p17_late_heartbeat_does_not_move_the_lease_back() {
    for clock in [Clock::Caller, Clock::Database] {
        let mut database = Database::new();
        let uid = database.insert(&Run::running(OWNER, 4_000_000_000));
        let mut harness = Harness::with(&database, Options { clock, ..Options::default() });
        assert_eq!(sent(&mut harness, uid, OWNER, 60, End::NeverEarlier), Beat::Renewed);
        assert_eq!(lease(&mut database, uid), 4_000_000_000, "{clock:?}");
        // The first beat takes over from whatever lease there was.
        assert_eq!(sent(&mut harness, uid, OWNER, 60, End::Exact), Beat::Renewed);
        let first = lease(&mut database, uid);
        assert!(first < 4_000_000_000, "{clock:?}: {first}");
        assert_eq!(sent(&mut harness, uid, OWNER, 600, End::NeverEarlier), Beat::Renewed);
        assert!(lease(&mut database, uid) >= first + 540, "{clock:?}");
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
        assert_eq!(sent(&mut harness, uid, OWNER, 60, End::NeverEarlier), Beat::NotOwner(state));
        assert_eq!(database.row(uid), before, "{state:?}");
    }
    assert_eq!(
        sent(&mut harness, 4_000_000_000, OWNER, 60, End::NeverEarlier),
        Beat::NotOwner(LeaseState::Gone)
    );
}
