//! `status()`: the counts over a table with every kind of run.

use nrllm_runtime::ops::status::{StatusReport, status};

use crate::support::database::{Database, Run, Shape};
use crate::support::harness::{Harness, LEASE, NOW, OWNER};
use crate::support::legacy_php_worker::LegacyPhpWorker;
use crate::support::server;

fn report(database: &Database, now: Option<i64>, since: Option<i64>) -> StatusReport {
    Harness::on(database)
        .run(async |session, context| status(session, context, now, since).await)
        .unwrap()
}

fn count(list: &[(String, u64)], name: &str) -> Option<u64> {
    list.iter().find(|(key, _)| key == name).map(|(_, count)| *count)
}

#[test]
fn empty_table_reports_zero_for_every_status() {
    let database = Database::new();
    let report = report(&database, None, None);
    let names: Vec<&str> = report.counts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "queued",
            "running",
            "waiting_for_approval",
            "waiting_for_input",
            "completed",
            "failed",
            "cancelled"
        ]
    );
    assert!(report.counts.iter().all(|(_, count)| *count == 0) && report.dead_letters.is_empty());
    assert_eq!((report.expired_leases, report.unleased_running, report.stranded), (0, 0, 0));
    assert_eq!(
        (report.oldest_lease, report.oldest_queued_seconds, report.lease_key),
        (None, None, false)
    );
    assert_eq!(report.server, server::shared().version());
    assert_eq!(report.isolation, "READ-COMMITTED");
}

#[test]
fn every_kind_of_run_is_counted_once() {
    let mut database = Database::with(&Shape::default().lease_key());
    database.insert_all(&[
        Run::running(OWNER, NOW - 10),
        Run::running(OWNER, NOW - 500),
        Run::running(OWNER, NOW),
        Run::running(OWNER, LEASE),
        Run::running("", 0),
        Run::queued().tstamp(NOW - 70).crdate(NOW - 1_000),
        Run::queued().tstamp(NOW - 90).crdate(NOW - 95),
        Run::in_status("failed").set("termination_reason", "not_retryable"),
        Run::in_status("failed").set("termination_reason", "not_retryable"),
        Run::in_status("failed").set("termination_reason", "retries_exhausted").crdate(NOW),
        Run::in_status("failed"),
        Run::in_status("completed"),
        Run::in_status("cancelled").set("termination_reason", "cancelled"),
        Run::in_status("a_later_status"),
    ]);
    let all = report(&database, None, None);
    for (name, expected) in [
        ("running", 5),
        ("queued", 2),
        ("failed", 4),
        ("completed", 1),
        ("cancelled", 1),
        ("a_later_status", 1),
    ] {
        assert_eq!(count(&all.counts, name), Some(expected), "{name}");
    }
    assert_eq!(count(&all.dead_letters, "not_retryable"), Some(2));
    assert_eq!(count(&all.dead_letters, "retries_exhausted"), Some(1));
    assert_eq!(count(&all.dead_letters, "cancelled"), None, "no dead letter");
    assert_eq!((all.expired_leases, all.unleased_running), (2, 1));
    assert_eq!((all.oldest_lease, all.oldest_queued_seconds), (Some(NOW - 500), Some(90)));
    assert!(all.lease_key);
    assert_eq!(report(&database, Some(NOW + 1), None).expired_leases, 3);
    assert_eq!(report(&database, Some(NOW - 300), None).expired_leases, 1);
    // The time bounds what was created, not what is going on.
    let recent = report(&database, None, Some(NOW - 100));
    assert_eq!(
        (count(&recent.counts, "failed"), count(&recent.counts, "queued")),
        (Some(1), Some(1))
    );
    assert_eq!((recent.expired_leases, recent.oldest_queued_seconds), (2, Some(90)));
}

#[test]
fn queue_wait_counts_from_queued_at_where_known() {
    let mut database = Database::with(&Shape::default().queued_at());
    database.insert(&Run::queued().tstamp(NOW - 500).set("queued_at", NOW - 20));
    assert_eq!(report(&database, None, None).oldest_queued_seconds, Some(20));
    database.insert(&Run::queued().tstamp(NOW - 60).set("queued_at", 0));
    assert_eq!(report(&database, None, None).oldest_queued_seconds, Some(60));
    database.insert(&Run::queued().tstamp(NOW + 60));
    assert_eq!(
        report(&database, None, None).oldest_queued_seconds,
        Some(60),
        "a wait is never negative"
    );
}

#[test]
fn run_is_stranded_long_after_it_was_due() {
    let mut database = Database::new();
    for (run, stranded) in [
        (Run::queued().tstamp(NOW - 301), 1),
        (Run::queued().tstamp(NOW - 300), 0),
        (Run::queued().tstamp(NOW - 301).without_request(), 0),
        (Run::queued().tstamp(NOW - 301).request(""), 0),
        // After the third requeue it waits for two minutes first.
        (Run::queued().tstamp(NOW - 420).requeued(3), 0),
        (Run::queued().tstamp(NOW - 421).requeued(3), 1),
        (Run::queued().tstamp(NOW - 901).requeued(4_294_967_295), 1),
    ] {
        let before = report(&database, None, None).stranded;
        let uid = database.insert(&run);
        assert_eq!(
            report(&database, None, None).stranded - before,
            stranded,
            "{:?}",
            database.row(uid)
        );
    }
}

#[test]
fn status_does_not_wait_for_locks() {
    let mut database = Database::new();
    let uids = database.insert_all(&[Run::running(OWNER, NOW - 10), Run::queued()]);
    let mut php_worker = LegacyPhpWorker::of(&database);
    php_worker.lock_rows(&uids);
    assert_eq!(report(&database, None, None).expired_leases, 1);
    php_worker.unlock();
}

/// Rule 33: an operator learns what a heartbeat costs, and what to change.
#[test]
fn p33_binary_log_and_its_cost_are_reported() {
    let plain = report(&Database::new(), None, None).binlog;
    assert_eq!((plain.format, plain.bytes_per_heartbeat, plain.remedy), (None, 0, None));
    let server = server::Server::start(&["--log-bin", "--server-id=1", "--binlog-format=ROW"]);
    let mut database = Database::on(&server, &Shape::default());
    database.insert(&Run::running(OWNER, LEASE).request(&"x".repeat(20_000)));
    // The session has taken the smallest row image.
    let own = report(&database, None, None).binlog;
    assert_eq!((own.format.as_deref(), own.row_image.as_deref()), (Some("ROW"), Some("MINIMAL")));
    assert!(own.bytes_per_heartbeat < 1_024 && own.remedy.is_none(), "{own:?}");
}
