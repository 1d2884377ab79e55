//! `requeueStale()`: which leases are stale, and the end of the counter.

use crate::support::database::{Database, Run, assert_row};
use crate::support::harness::{Harness, LEASE, NOW, OWNER};

#[test]
fn stale_is_strictly_less_and_never_a_zero_lease() {
    let mut database = Database::new();
    let mut harness = Harness::on(&database);
    for (lease, now, stale) in [
        (NOW, NOW, false),
        (NOW - 1, NOW, true),
        (0, NOW, false),
        (1, 1, false),
        (1, 2, true),
        (1, 0, false),
        (4_294_967_295, 4_294_967_295, false),
        (4_294_967_294, 4_294_967_295, true),
    ] {
        let uid = database.insert(&Run::running(OWNER, lease));
        assert_eq!(
            harness.requeue_stale(uid, now).unwrap(),
            stale,
            "requeue: lease {lease}, now {now}"
        );
        let uid = database.insert(&Run::running(OWNER, lease));
        assert_eq!(
            harness.dead_letter_stale(uid, now, "retries_exhausted").unwrap(),
            stale,
            "dead-letter: lease {lease}, now {now}"
        );
    }
    let queued = database.insert(&Run::queued().set("lease_expires", 5));
    assert!(!harness.requeue_stale(queued, NOW).unwrap(), "not running");
}

#[test]
fn a_counter_at_its_maximum_is_not_increased() {
    let mut database = Database::new();
    let mut harness = Harness::on(&database);
    for (count, possible) in [(4_294_967_294_u64, true), (4_294_967_295, false)] {
        let held = database.insert(&Run::running(OWNER, LEASE).requeued(count));
        let stale = database.insert(&Run::running(OWNER, NOW - 1).requeued(count));
        let before = [database.row(held), database.row(stale)];
        assert_eq!(harness.requeue(held, OWNER).unwrap(), possible);
        assert_eq!(harness.requeue_stale(stale, NOW).unwrap(), possible);
        if !possible {
            assert_row(&database.row(held), &before[0], "requeue");
            assert_row(&database.row(stale), &before[1], "requeueStale");
        }
    }
}
