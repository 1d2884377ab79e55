//! `markPendingEffect()`: sets and clears the write fence, with every column compared.

use crate::support::database::{Database, Run, assert_row, changed};
use crate::support::harness::{Harness, LEASE, NOW, OWNER};

#[test]
fn write_fence_is_set_and_cleared_with_the_lease() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running(OWNER, NOW + 5));
    let before = database.row(uid);
    let mut harness = Harness::on(&database);
    for effect in
        ["non_idempotent_write", "", "an_effect_of_a_later_release", "read_only", "read_only"]
    {
        assert!(harness.mark_pending_effect(uid, OWNER, effect, LEASE).unwrap());
        let lease = LEASE.to_string();
        let now = NOW.to_string();
        let expected = changed(
            &before,
            &[("pending_effect", effect), ("lease_expires", &lease), ("tstamp", &now)],
        );
        assert_row(&database.row(uid), &expected, effect);
    }
    let marked = database.row(uid);
    assert!(!harness.mark_pending_effect(uid, "worker:other", "", LEASE + 9).unwrap());
    assert_row(&database.row(uid), &marked, "the write fence of another owner");
}
