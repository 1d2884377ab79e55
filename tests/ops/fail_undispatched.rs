//! `failUndispatched()`: which requeue it ends (rule 15).

use crate::support::database::{Database, Run, assert_row, changed};
use crate::support::harness::{Harness, LEASE, NOW};

const ERROR: &str = "Vendor\\Provider\\TimeoutException";

#[test]
fn p15_only_this_undispatched_requeue_is_failed() {
    let mut database = Database::new();
    let mut harness = Harness::on(&database);
    let now = NOW.to_string();
    for count in [0_u64, 1, 3, 4_294_967_295] {
        let uid = database.insert(&Run::queued().requeued(count));
        let before = database.row(uid);
        assert!(harness.fail_undispatched(uid, count as i64, ERROR).unwrap());
        let expected = changed(
            &before,
            &[
                ("status", "failed"),
                ("termination_reason", "provider_failed"),
                ("error_class", ERROR),
                ("suspended_state", ""),
                ("queued_request", ""),
                ("finished_at", &now),
                ("tstamp", &now),
            ],
        );
        assert_row(&database.row(uid), &expected, "failed undispatched");
        assert!(!harness.fail_undispatched(uid, count as i64, ERROR).unwrap(), "once");
    }
    for run in [
        Run::queued().requeued(1),
        Run::queued().requeued(3),
        Run::queued().requeued(2).owner("worker:other"),
        Run::running("worker:other", LEASE).requeued(2),
        Run::in_status("cancelled").requeued(2),
        Run::in_status("waiting_for_input").requeued(2),
    ] {
        let uid = database.insert(&run);
        let before = database.row(uid);
        assert!(!harness.fail_undispatched(uid, 2, ERROR).unwrap());
        assert_row(&database.row(uid), &before, "a run with another status, owner or count");
    }
    // A blank is no owner for the collation, but it is one byte by byte.
    let uid = database.insert(&Run::queued().owner(" "));
    assert!(!harness.fail_undispatched(uid, 0, ERROR).unwrap());
}
