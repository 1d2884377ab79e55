//! `deadLetterStale()`: what it writes, with every column compared.

use crate::support::database::{Database, Run, assert_row, changed};
use crate::support::harness::{Harness, NOW, OWNER};

#[test]
fn dead_letter_keeps_write_fence_totals_and_cost() {
    let mut database = Database::new();
    let uid = database.insert(
        &Run::running(OWNER, NOW - 1)
            .requeued(1)
            .write_fence("non_idempotent_write")
            .set("error_class", "Old"),
    );
    let before = database.row(uid);
    assert!(Harness::on(&database).dead_letter_stale(uid, NOW, "a_reason_of_the_caller").unwrap());
    let now = NOW.to_string();
    let expected = changed(
        &before,
        &[
            ("status", "failed"),
            ("termination_reason", "a_reason_of_the_caller"),
            ("error_class", ""),
            ("suspended_state", ""),
            ("queued_request", ""),
            ("claimed_by", ""),
            ("lease_expires", "0"),
            ("finished_at", &now),
            ("tstamp", &now),
        ],
    );
    assert_row(&database.row(uid), &expected, "a dead letter");
}
