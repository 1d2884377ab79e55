//! `renewLease()`: what it writes, and how an unchanged renewal is recognised (rule 1).

use crate::support::database::{Database, Run, assert_row, changed};
use crate::support::harness::{Harness, LEASE, NOW, OWNER};
use crate::support::proxy::{INFOS, Info, MODES, Proxy};

#[test]
fn renewal_writes_lease_and_tstamp_only() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running(OWNER, NOW - 5).write_fence("non_idempotent_write"));
    let before = database.row(uid);
    assert!(
        Harness::on(&database).renew_lease(uid, OWNER, LEASE).unwrap(),
        "expired, but not taken"
    );
    let expected =
        changed(&before, &[("lease_expires", &LEASE.to_string()), ("tstamp", &NOW.to_string())]);
    assert_row(&database.row(uid), &expected, "a renewal");
}

#[test]
fn p01_unchanged_renewal_is_a_renewal() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    for mode in MODES {
        for info in INFOS {
            proxy.found_rows(mode);
            proxy.info(info.clone());
            let uid =
                database.insert(&Run::running(OWNER, LEASE).tstamp(NOW).write_fence("read_only"));
            let gone = database.insert(&Run::running("worker:other", LEASE).tstamp(NOW));
            let mut harness = Harness::through(&proxy, &database);
            assert!(harness.renew_lease(uid, OWNER, LEASE).unwrap(), "{mode:?} {info:?}");
            assert!(harness.renew_lease(uid, OWNER, LEASE).unwrap(), "{mode:?} {info:?}");
            assert!(
                harness.mark_pending_effect(uid, OWNER, "read_only", LEASE).unwrap(),
                "{mode:?} {info:?}"
            );
            assert!(!harness.renew_lease(gone, OWNER, LEASE).unwrap(), "{mode:?} {info:?}");
            assert!(
                !harness.mark_pending_effect(gone, OWNER, "read_only", LEASE).unwrap(),
                "{mode:?} {info:?}"
            );
        }
    }
}

#[test]
fn p01_renewal_is_one_round_trip_or_two_without_info() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running(OWNER, LEASE));
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    for (info, trips) in [(Info::Keep, 1), (Info::Drop, 2)] {
        proxy.info(info);
        harness.renew_lease(uid, OWNER, LEASE).unwrap();
        let before = proxy.count();
        assert!(harness.renew_lease(uid, OWNER, LEASE).unwrap());
        assert_eq!(proxy.count().since(before).round_trips, trips);
    }
}
