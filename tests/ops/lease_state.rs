//! `leaseState()`: one answer per state of a run, without waiting for row locks.

use nrllm_runtime::error::Kind;

use crate::support::database::{Database, Run};
use crate::support::harness::{Harness, LEASE, NOW, OWNER, error_of};
use crate::support::legacy_php_worker::LegacyPhpWorker;
use crate::support::operation::held;
use crate::support::proxy::{Fault, Proxy, When};

#[test]
fn every_status_has_a_lease_state() {
    let mut database = Database::new();
    let mut harness = Harness::on(&database);
    for (run, state) in [
        (Run::running(OWNER, LEASE), "held"),
        (Run::running(OWNER, NOW - 500), "held"),
        (Run::running("worker:other", LEASE), "taken"),
        (Run::running("", 0), "taken"),
        (Run::queued(), "requeued"),
        (Run::in_status("waiting_for_approval"), "waiting"),
        (Run::in_status("waiting_for_input"), "waiting"),
        (Run::in_status("cancelled"), "cancelled"),
        (Run::in_status("completed"), "completed"),
        (Run::in_status("failed"), "failed"),
        (Run::in_status("a_later_status"), "other"),
        (Run::in_status(""), "other"),
    ] {
        let uid = database.insert(&run);
        assert_eq!(harness.lease_state(uid, OWNER).unwrap(), state);
    }
    assert_eq!(harness.lease_state(4_000_000_000, OWNER).unwrap(), "gone");
}

#[test]
fn lease_state_does_not_wait_for_a_row_lock() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running(OWNER, LEASE));
    let mut harness = Harness::on(&database);
    let mut php_worker = LegacyPhpWorker::of(&database);
    php_worker.lock_row(uid);
    assert_eq!(harness.lease_state(uid, OWNER).unwrap(), "held");
    php_worker.unlock();
}

#[test]
fn ok_packet_in_place_of_rows_is_not_an_answer() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    let uid = database.insert(&held());
    assert_eq!(harness.lease_state(uid, OWNER).unwrap(), "held");
    // Once: the question is asked again on a new connection. Always: an error, and not "gone".
    let ok = || Fault::Payload(b"\0\x01\0\x02\0\0\0".to_vec());
    proxy.rule(When::statement("SELECT status"), ok());
    assert_eq!(harness.lease_state(uid, OWNER).unwrap(), "held");
    proxy.rule(When::statement("SELECT status").always(), ok());
    error_of(Kind::Connection, harness.lease_state(uid, OWNER));
}
