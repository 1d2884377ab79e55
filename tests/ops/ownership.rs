//! How an operation recognises the owner of a run (rules 1, 2 and 3).

use nrllm_runtime::domain::failure::FailureClass;
use nrllm_runtime::domain::holder::Holder;
use nrllm_runtime::error::Kind;
use nrllm_runtime::ops::heartbeat;

use crate::support::client::Client;
use crate::support::database::{Database, Run, Shape, assert_row};
use crate::support::harness::{Harness, LEASE, NOW, OWNER, error_of};
use crate::support::legacy_php_worker::LegacyPhpWorker;
use crate::support::proxy::{INFOS, Info, MODES, Proxy};
use crate::support::server::{Server, shared, wants_mysql};

#[test]
fn p01_no_operation_trusts_the_affected_rows() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    for mode in MODES {
        for info in INFOS {
            let why = format!("{mode:?} {info:?}");
            proxy.found_rows(mode);
            proxy.info(info.clone());
            let mut harness = Harness::through(&proxy, &database);
            let queued = database.insert(&Run::queued());
            let held = database.insert(&Run::running(OWNER, LEASE));
            let stale = database.insert_all(&vec![Run::running("worker:dead", NOW - 1); 2]);
            let requeued = database.insert(&Run::queued().requeued(2));
            let cancelled = database.insert(&Run::queued());
            let uuid = database.get(cancelled, "uuid");
            let live = database.insert(&Run::running("worker:other", LEASE));
            let ended = database.insert(&Run::in_status("completed"));
            let ended_uuid = database.get(ended, "uuid");
            for expected in [true, false] {
                assert_eq!(harness.requeue(held, OWNER).unwrap(), expected, "requeue {why}");
                assert_eq!(
                    harness.requeue_stale(stale[0], NOW).unwrap(),
                    expected,
                    "requeueStale {why}"
                );
                // Without the reply's text the row decides, read back under its lock: it already
                // shows the effect.
                let expected = expected || info == Info::Drop;
                assert_eq!(
                    harness.claim_queued(queued, OWNER, LEASE).unwrap(),
                    expected,
                    "claim {why}"
                );
                assert_eq!(
                    harness.dead_letter_stale(stale[1], NOW, "not_retryable").unwrap(),
                    expected,
                    "deadLetterStale {why}"
                );
                assert_eq!(
                    harness.fail_undispatched(requeued, 2, "E").unwrap(),
                    expected,
                    "failUndispatched {why}"
                );
                assert_eq!(harness.cancel_run(&uuid).unwrap(), expected, "cancelRun {why}");
            }
            let before = database.row(live);
            assert!(!harness.claim_queued(queued, "worker:other", LEASE).unwrap(), "claim {why}");
            assert!(!harness.claim_queued(queued, OWNER, LEASE + 1).unwrap(), "claim {why}");
            assert!(!harness.requeue(live, OWNER).unwrap(), "requeue {why}");
            assert!(!harness.requeue_stale(live, NOW).unwrap(), "requeueStale {why}");
            assert!(
                !harness.dead_letter_stale(live, NOW, "not_retryable").unwrap(),
                "deadLetterStale {why}"
            );
            assert!(
                !harness.dead_letter_stale(stale[1], NOW, "retries_exhausted").unwrap(),
                "deadLetterStale {why}"
            );
            assert!(!harness.fail_undispatched(live, 0, "E").unwrap(), "failUndispatched {why}");
            assert!(!harness.cancel_run(&ended_uuid).unwrap(), "cancelRun {why}");
            assert_row(&database.row(live), &before, &why);
        }
    }
}

/// The defaults of a site that the session must not inherit.
const HOSTILE: [&[&str]; 3] = [
    &["--autocommit=0"],
    &["--autocommit=0", "--transaction-isolation=SERIALIZABLE", "--sql-mode="],
    &[
        "--transaction-isolation=REPEATABLE-READ",
        "--sql-mode=ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES",
    ],
];

#[test]
fn p02_ownership_is_never_read_from_an_old_snapshot() {
    for options in HOSTILE {
        let server = Server::start(options);
        let mut database = Database::on(&server, &Shape::default());
        let uid = database.insert(&Run::running(OWNER, NOW - 1));
        let queued = database.insert(&Run::queued());
        let mut harness = Harness::on(&database);
        let mut php_worker = LegacyPhpWorker::of(&database);
        php_worker.client.run("SET autocommit = 1");
        for round in 0..3 {
            assert!(harness.renew_lease(uid, OWNER, NOW - 1).unwrap(), "{options:?}");
            assert_eq!(harness.lease_state(uid, OWNER).unwrap(), "held");
            php_worker.requeue_stale(uid, NOW).unwrap();
            assert_eq!(harness.lease_state(uid, OWNER).unwrap(), "requeued", "{options:?}");
            assert!(!harness.renew_lease(uid, OWNER, LEASE).unwrap(), "{options:?}");
            assert!(!harness.mark_pending_effect(uid, OWNER, "", LEASE).unwrap(), "{options:?}");
            php_worker.claim(uid, OWNER, NOW - 1, NOW).unwrap();
            assert!(harness.claim_queued(queued, OWNER, LEASE + round).unwrap());
            assert_eq!(
                database.get(queued, "claimed_by"),
                OWNER,
                "{options:?}: others see the claim at once"
            );
            assert!(harness.requeue(queued, OWNER).unwrap());
        }
    }
}

/// Owners that collations treat as equal.
const ALIKE: [[&str; 2]; 8] = [
    ["worker:a", "WORKER:A"],
    ["worker:a", "worker:\u{e4}"],
    ["worker:stra\u{df}e", "worker:strasse"],
    ["worker:a", "worker:a "],
    ["worker:a", "worker:a\0"],
    ["worker:a", "worker:\0a"],
    ["worker:a", "worker:\u{200b}a"],
    ["worker:\u{e9}", "worker:e\u{301}"],
];

fn collations() -> Vec<&'static str> {
    let mut collations = vec![
        "utf8mb4_unicode_ci",
        "utf8mb4_general_ci",
        "utf8mb4_bin",
        "utf8mb3_general_ci",
        "utf8mb3_unicode_ci",
        "utf8mb3_bin",
        "latin1_swedish_ci",
        "latin1_bin",
    ];
    if wants_mysql() {
        collations.extend(["utf8mb4_0900_ai_ci", "utf8mb4_0900_bin"]);
    } else {
        collations.extend([
            "utf8mb4_nopad_bin",
            "utf8mb4_unicode_nopad_ci",
            "utf8mb4_unicode_520_ci",
        ]);
    }
    collations
}

#[test]
fn p03_owners_compare_byte_by_byte() {
    for collation in collations() {
        let mut database = Database::with(&Shape::default().collation(collation));
        let mut harness = Harness::on(&database);
        for pair in ALIKE {
            for [holder, other] in [pair, [pair[1], pair[0]]] {
                let uid = database.insert(&Run::queued());
                match harness.claim_queued(uid, holder, LEASE) {
                    Ok(true) => {}
                    Err(error)
                        if error.kind == Kind::Argument && collation.starts_with("latin1") =>
                    {
                        assert!(
                            !holder.chars().all(|c| u32::from(c) < 256),
                            "{holder:?} fits into latin1: {error}"
                        );
                        continue;
                    }
                    outcome => panic!("{collation}, {holder:?}: {outcome:?}"),
                }
                let stored = database
                    .client()
                    .text(&format!("SELECT HEX(CONVERT(claimed_by USING utf8mb4)) FROM tx_nrllm_agentrun WHERE uid = {uid}"));
                let hex: String = holder.bytes().map(|byte| format!("{byte:02X}")).collect();
                assert_eq!(stored, hex, "{collation}");
                let why = format!("{collation}: {holder:?} is not {other:?}");
                let before = database.row(uid);
                let lost = |outcome: nrllm_runtime::error::Result<bool>| match outcome {
                    Ok(owned) => assert!(!owned, "{why}"),
                    Err(error) => assert_eq!(error.kind, Kind::Argument, "{why}: {error}"),
                };
                lost(harness.renew_lease(uid, other, LEASE));
                lost(harness.mark_pending_effect(uid, other, "read_only", LEASE));
                lost(harness.requeue(uid, other));
                match harness.lease_state(uid, other) {
                    Ok(state) => assert_eq!(state, "taken", "{why}"),
                    Err(error) => assert_eq!(error.kind, Kind::Argument, "{why}: {error}"),
                }
                assert_row(&database.row(uid), &before, &why);
                assert_eq!(harness.lease_state(uid, holder).unwrap(), "held", "{why}");
                assert!(harness.renew_lease(uid, holder, LEASE).unwrap(), "{why}");
                assert!(
                    harness.mark_pending_effect(uid, holder, "read_only", LEASE).unwrap(),
                    "{why}"
                );
                assert!(harness.requeue(uid, holder).unwrap(), "{why}");
            }
        }
    }
}

#[test]
fn p03_unstorable_owner_is_an_argument_error() {
    let lax = Server::start(&["--sql-mode="]);
    for (collation, owner) in [
        ("latin1_swedish_ci", "worker:\u{3c9}"),
        ("latin1_swedish_ci", "worker:\u{1f600}"),
        ("utf8mb3_general_ci", "worker:\u{1f600}"),
        ("ascii_general_ci", "worker:\u{e9}"),
    ] {
        for server in [&lax, shared()] {
            let mut database = Database::on(server, &Shape::default().collation(collation));
            let uid = database.insert(&Run::queued());
            let before = database.row(uid);
            let mut harness = Harness::on(&database);
            let options = harness.options.clone();
            let refused_heartbeat = harness.run(async |session, _| {
                heartbeat::send_heartbeat(
                    session,
                    &options,
                    Holder { run_uid: uid as u64, owner },
                    60,
                    heartbeat::End::Exact,
                    || true,
                )
                .await
                .map(|_| false)
            });
            for refused in [
                harness.claim_queued(uid, owner, LEASE),
                harness.renew_lease(uid, owner, LEASE),
                harness.mark_pending_effect(uid, owner, "read_only", LEASE),
                harness.requeue(uid, owner),
                harness.lease_state(uid, owner).map(|_| false),
                harness.recover_failure(uid, owner, FailureClass::Connection, "E").map(|_| false),
                refused_heartbeat,
            ] {
                let error = error_of(Kind::Argument, refused);
                assert!(error.message.contains("claimedBy"), "{error}");
            }
            assert_row(&database.row(uid), &before, collation);
        }
    }
    for (collation, owner) in [
        ("utf8mb4_bin", "worker:\u{1f600}"),
        ("utf8mb3_general_ci", "worker:\u{20ac}"),
        ("latin1_swedish_ci", "worker:\u{20ac}\u{e9}"),
    ] {
        let mut database = Database::with(&Shape::default().collation(collation));
        let uid = database.insert(&Run::queued());
        let mut harness = Harness::on(&database);
        assert!(
            harness.claim_queued(uid, owner, LEASE).unwrap()
                && harness.renew_lease(uid, owner, LEASE).unwrap(),
            "{collation} {owner}"
        );
    }
}

#[test]
fn p03_owners_stored_by_php_workers_are_recognised() {
    // A PHP worker whose connection has another character set writes the same characters in other
    // bytes.
    for collation in ["latin1_swedish_ci", "utf8mb4_unicode_ci"] {
        let mut database = Database::with(&Shape::default().collation(collation));
        let uid = database.insert(&Run::queued());
        let mut php = Client::connect(database.endpoint(), Some(database.name()));
        php.run("SET NAMES latin1");
        php.run(&format!("UPDATE tx_nrllm_agentrun SET status = 'running', claimed_by = CONCAT('worker:', CHAR(0xFC USING latin1)), lease_expires = {LEASE} WHERE uid = {uid}"));
        assert!(
            Harness::on(&database).renew_lease(uid, "worker:\u{fc}", LEASE).unwrap(),
            "{collation}"
        );
    }
}
