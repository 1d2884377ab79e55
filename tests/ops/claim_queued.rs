//! `claimQueued()`: which runs can be claimed, with every column compared; lost replies and
//! abandoned claims (rules 7, 14, 21).

use nrllm_runtime::error::Kind;

use crate::support::database::{Database, Run, Shape, assert_row, changed};
use crate::support::harness::{Harness, LEASE, NOW, OWNER, error_of};
use crate::support::legacy_php_worker::LegacyPhpWorker;
use crate::support::operation::{OTHER, timed};
use crate::support::proxy::{Fault, Proxy, When};
use crate::support::server::Server;

#[test]
fn claim_writes_owner_lease_and_times_only() {
    let mut database = Database::with(&Shape::default().queued_at());
    let uid = database.insert(&Run::queued().requeued(2).write_fence("read_only"));
    let before = database.row(uid);
    let mut harness = Harness::on(&database);
    assert!(harness.claim_queued(uid, OWNER, LEASE).unwrap());
    let now = NOW.to_string();
    let expected = changed(
        &before,
        &[
            ("status", "running"),
            ("claimed_by", OWNER),
            ("lease_expires", &LEASE.to_string()),
            ("started_at", &now),
            ("tstamp", &now),
        ],
    );
    assert_row(&database.row(uid), &expected, "a claim");
    assert!(
        !harness.claim_queued(uid, "worker:other", LEASE + 1).unwrap(),
        "another worker has it"
    );
    assert!(
        !harness.claim_queued(uid, OWNER, LEASE + 1).unwrap(),
        "and it is not queued, not even for its owner"
    );
    assert_row(&database.row(uid), &expected, "a claim that came too late");
}

#[test]
fn only_queued_runs_can_be_claimed() {
    let mut database = Database::new();
    let mut harness = Harness::on(&database);
    for status in [
        "running",
        "waiting_for_approval",
        "waiting_for_input",
        "completed",
        "failed",
        "cancelled",
        "some_later_status",
    ] {
        let uid = database.insert(&Run::in_status(status));
        let before = database.row(uid);
        assert!(!harness.claim_queued(uid, OWNER, LEASE).unwrap(), "{status}");
        assert_row(&database.row(uid), &before, status);
    }
    assert!(!harness.claim_queued(4_000_000_000, OWNER, LEASE).unwrap(), "no such run");
    assert!(
        !harness.claim_queued(i64::MAX, OWNER, LEASE).unwrap(),
        "no such run, beyond the column's range"
    );
}

#[test]
fn p07_of_concurrent_claims_one_wins() {
    let mut database = Database::new();
    let uids = database.insert_all(&vec![Run::queued(); 40]);
    let won: Vec<Vec<i64>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|number| {
                let (mut harness, uids) = (Harness::on(&database), uids.clone());
                scope.spawn(move || {
                    let owner = format!("worker:{number}");
                    uids.into_iter()
                        .filter(|uid| harness.claim_queued(*uid, &owner, LEASE).unwrap())
                        .collect()
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    let mut all: Vec<i64> = won.iter().flatten().copied().collect();
    all.sort_unstable();
    assert_eq!(all, uids, "every run was won exactly once");
    for (number, uids) in won.iter().enumerate() {
        for uid in uids {
            assert_eq!(database.get(*uid, "claimed_by"), format!("worker:{number}"));
        }
    }
}

#[test]
fn p14_run_taken_before_the_read_back_is_not_claimed() {
    // The reply to a claim is lost, and before the row is read back another worker has requeued and
    // claimed the run.
    let mut database = Database::new();
    let uid = database.insert(&Run::queued());
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    let mut php_worker = LegacyPhpWorker::of(&database);
    assert_eq!(harness.lease_state(uid, OWNER).unwrap(), "requeued");
    proxy.rule(When::statement("UPDATE "), Fault::CutAfter);
    let again = proxy.rule(When::statement("FOR UPDATE"), Fault::HoldRequest);
    let claimed = std::thread::scope(|scope| {
        let claiming = scope.spawn(|| harness.claim_queued(uid, OWNER, LEASE));
        again.wait();
        php_worker.requeue_stale(uid, LEASE + 1).unwrap();
        php_worker.claim(uid, OTHER, LEASE, NOW).unwrap();
        again.release();
        claiming.join().unwrap()
    });
    assert!(!claimed.unwrap());
    assert_eq!(database.get(uid, "claimed_by"), OTHER);
}

#[test]
fn p21_abandoned_claim_never_takes_effect_later() {
    let server = Server::start(&[]);
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&Run::queued());
    let mut php_worker = LegacyPhpWorker::of(&database);
    for query_ms in [300, 1_000, 1_500, 2_500] {
        let mut harness = Harness::limits(database.endpoint(), database.name(), 3_000, query_ms);
        assert_eq!(harness.lease_state(uid, OWNER).unwrap(), "requeued");
        php_worker.lock_row(uid);
        let (error, took) =
            timed(|| error_of(Kind::Connection, harness.claim_queued(uid, OWNER, LEASE)));
        assert!(took < query_ms as u128 + 6_000, "{took} ms of {query_ms}");
        php_worker.unlock();
        // No statement of the claim is left on the server, so that the row cannot change later.
        let left: Vec<_> = server
            .connections()
            .into_iter()
            .filter(|connection| connection.statement.contains("UPDATE"))
            .collect();
        assert!(left.is_empty(), "{query_ms} ms: {error}, {left:?}");
        let mut observer = database.connect();
        observer.run("START TRANSACTION");
        let row = observer
            .maps(&format!("SELECT * FROM tx_nrllm_agentrun WHERE uid = {uid} FOR UPDATE"))
            .remove(0);
        observer.run("ROLLBACK");
        assert_eq!(
            (row["status"].as_deref(), row["claimed_by"].as_deref()),
            (Some(&b"queued"[..]), Some(&b""[..])),
            "{query_ms} ms"
        );
        // The next call returns the right result.
        assert!(harness.claim_queued(uid, OWNER, LEASE).unwrap());
        assert!(harness.requeue(uid, OWNER).unwrap());
    }
}
