//! `requeue()`: what it writes, with every column compared, beside `requeueStale()`.

use crate::support::database::{Database, Run, Shape, assert_row, changed};
use crate::support::harness::{Harness, LEASE, NOW, OWNER};

#[test]
fn requeue_releases_the_run_and_keeps_the_payload() {
    for queued_at in [false, true] {
        let shape = if queued_at { Shape::default().queued_at() } else { Shape::default() };
        let mut database = Database::with(&shape);
        // Neither the retry budget nor the write fence is checked.
        let run = Run::running(OWNER, LEASE).requeued(7).write_fence("non_idempotent_write");
        let uid = database.insert(&run);
        let stale = database.insert(
            &run.clone().owner("worker:dead").set("lease_expires", NOW - 1).without_request(),
        );
        let before = [database.row(uid), database.row(stale)];
        let mut harness = Harness::on(&database);
        assert!(!harness.requeue(uid, "worker:other").unwrap());
        assert!(!harness.requeue_stale(uid, NOW).unwrap(), "its lease is not over");
        assert_row(&database.row(uid), &before[0], "a requeue by another owner");
        assert!(harness.requeue(uid, OWNER).unwrap());
        assert!(harness.requeue_stale(stale, NOW).unwrap());
        assert!(
            !harness.requeue(uid, OWNER).unwrap() && !harness.requeue_stale(stale, NOW).unwrap(),
            "it is done"
        );
        let now = NOW.to_string();
        let mut changes = vec![
            ("status", "queued"),
            ("requeue_count", "8"),
            ("claimed_by", ""),
            ("lease_expires", "0"),
            ("pending_effect", ""),
            ("tstamp", &now),
        ];
        if queued_at {
            changes.push(("queued_at", &now));
        }
        for (uid, before) in [uid, stale].into_iter().zip(before) {
            assert_row(&database.row(uid), &changed(&before, &changes), "a requeue");
        }
    }
}
