//! `cancelRun()`: which runs it ends, with every column compared.

use crate::support::database::{Database, Run, assert_row, changed};
use crate::support::harness::{Harness, LEASE, NOW, OWNER};

#[test]
fn cancel_ends_one_run_that_has_not_ended() {
    let mut database = Database::new();
    let mut harness = Harness::on(&database);
    for status in ["queued", "running", "waiting_for_approval", "waiting_for_input"] {
        let uid = database.insert(
            &Run::in_status(status)
                .owner(OWNER)
                .set("lease_expires", LEASE)
                .set("error_class", "Old")
                .write_fence("read_only"),
        );
        let before = database.row(uid);
        assert!(harness.cancel_run(&database.get(uid, "uuid")).unwrap(), "{status}");
        let now = NOW.to_string();
        let expected = changed(
            &before,
            &[
                ("status", "cancelled"),
                ("termination_reason", "cancelled"),
                ("error_class", ""),
                ("suspended_state", ""),
                ("queued_request", ""),
                ("claimed_by", ""),
                ("lease_expires", "0"),
                ("finished_at", &now),
                ("tstamp", &now),
            ],
        );
        assert_row(&database.row(uid), &expected, status);
    }
    for status in ["completed", "failed", "cancelled"] {
        let uid = database.insert(&Run::in_status(status));
        let before = database.row(uid);
        assert!(!harness.cancel_run(&database.get(uid, "uuid")).unwrap(), "{status}");
        assert_row(&database.row(uid), &before, status);
    }
    assert!(!harness.cancel_run("no such run").unwrap());

    // The key over the uuid is not unique.
    let twins = database.insert_all(&vec![Run::queued().uuid("twin"); 3]);
    assert!(harness.cancel_run("twin").unwrap());
    let cancelled = |database: &mut Database| {
        twins.iter().filter(|uid| database.get(**uid, "status") == "cancelled").count()
    };
    assert_eq!(cancelled(&mut database), 1);
    assert!(
        !harness.cancel_run("TWIN").unwrap() && !harness.cancel_run("twin ").unwrap(),
        "a uuid is compared byte by byte"
    );
    assert_eq!(cancelled(&mut database), 1);
}
