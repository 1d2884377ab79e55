//! Faults at every command of every operation (rules 2, 9 and 14). After each fault the next call
//! returns the right result.

use std::panic::{AssertUnwindSafe, catch_unwind};

use nrllm_runtime::domain::failure::FailureClass;
use nrllm_runtime::error::Kind;
use nrllm_runtime::ops::recover_failure::Recovery;

use crate::support::database::{Database, RUNS, Run};
use crate::support::harness::{Harness, LEASE, OWNER, error_of};
use crate::support::operation::{
    OTHER, Operation, check_next_calls, held, operations, stale, target, writing_operations,
};
use crate::support::proxy::{Fault, Info, Proxy, Welcome, When};
use crate::support::server::wants_mysql;

/// What can go wrong with one command, and whether the server may have executed it.
fn faults() -> Vec<(&'static str, Fault)> {
    vec![
        ("cut before", Fault::CutBefore),
        ("cut after", Fault::CutAfter),
        ("cut within the header", Fault::CutWithin(3)),
        ("cut within the reply", Fault::CutWithin(6)),
        ("garbage", Fault::Garbage(b"\x03\x00\x00\x07zzz".to_vec())),
        ("too short an error", Fault::Payload(vec![0xFF])),
        ("nonsense", Fault::Payload(vec![0x00, 0xFE, 0xFF])),
        ("an empty packet", Fault::Payload(Vec::new())),
        ("gone away", Fault::Refuse(2006)),
        ("shutdown", Fault::Refuse(1053)),
        ("deadlock", Fault::Refuse(1213)),
        ("certification", Fault::Refuse(3101)),
        ("error during commit", Fault::Refuse(1180)),
        ("error during commit, after it", Fault::RefuseAfter(1180)),
        ("read-only", Fault::Refuse(1290)),
        ("syntax", Fault::Refuse(1064)),
        ("statements", Fault::Refuse(1461)),
    ]
}

/// How many commands an operation sends on a connection that is new, or used already.
fn commands(proxy: &Proxy, database: &mut Database, operation: &Operation, warm: bool) -> usize {
    let mut harness = Harness::through(proxy, database);
    if warm {
        let uid = database.insert(&Run::queued());
        assert_eq!(harness.lease_state(uid, OWNER).unwrap(), "requeued");
    }
    let (uid, uuid) = target(database, operation);
    let before = proxy.count();
    (operation.call)(&mut harness, uid, &uuid).unwrap();
    proxy.count().since(before).round_trips
}

/// One operation with one fault at one of its commands.
fn try_fault(
    database: &mut Database,
    proxy: &Proxy,
    operation: &Operation,
    warm: bool,
    nth: usize,
    fault: &Fault,
    why: &str,
) {
    let mut harness = Harness::limits(proxy.endpoint(), database.name(), 5_000, 4_000);
    if warm {
        let uid = database.insert(&Run::queued());
        harness.lease_state(uid, OWNER).unwrap();
    }
    let (uid, uuid) = target(database, operation);
    proxy.clear_log();
    let rule = proxy.rule(When::any_command().nth(nth), fault.clone());
    let outcome = (operation.call)(&mut harness, uid, &uuid);
    assert_eq!(rule.hits(), 1, "{why}: {outcome:?}");
    rule.cancel();
    let effect = (operation.effect)(database, uid);
    match &outcome {
        Ok(done) => assert_eq!(*done, effect, "{why}: the answer and the row; {:#?}", proxy.log()),
        Err(error) => {
            assert!(
                matches!(error.kind, Kind::Connection | Kind::Query | Kind::Configuration),
                "{why}: {error:?}"
            );
            assert!(
                !effect || error.outcome_unknown(),
                "{why}: {error:?} but the row shows the effect; {:#?}",
                proxy.log()
            );
        }
    }
    check_next_calls(&mut harness, database, why);
}

#[test]
fn p14_fault_at_any_command_never_gives_a_wrong_answer() {
    let mut database = Database::new();
    let mut wrong = Vec::new();
    for operation in operations() {
        for warm in [false, true] {
            let proxy = Proxy::start(database.endpoint());
            let commands = commands(&proxy, &mut database, &operation, warm);
            for (fault_name, fault) in faults() {
                for nth in 1..=commands {
                    let why = format!(
                        "{}, {fault_name} at command {nth} of {commands}, warm: {warm}",
                        operation.name
                    );
                    let case = AssertUnwindSafe(|| {
                        try_fault(&mut database, &proxy, &operation, warm, nth, &fault, &why)
                    });
                    if catch_unwind(case).is_err() {
                        wrong.push(why);
                        proxy.heal();
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases, see above: {wrong:#?}", wrong.len());
}

#[test]
fn p14_lost_reply_is_verified_by_reading_back() {
    let mut database = Database::new();
    for operation in writing_operations() {
        for fault in [Fault::CutAfter, Fault::CutBefore] {
            let why = format!("{}, {fault:?} at its write", operation.name);
            let proxy = Proxy::start(database.endpoint());
            let mut harness = Harness::through(&proxy, &database);
            let (uid, uuid) = target(&mut database, &operation);
            let rule = proxy.rule(operation.write(), fault);
            let done = (operation.call)(&mut harness, uid, &uuid)
                .unwrap_or_else(|error| panic!("{why}: {error:?}"));
            assert_eq!(rule.hits(), 1, "{why}");
            assert_eq!(done, (operation.effect)(&mut database, uid), "{why}");
            assert!(
                done,
                "{why}: it took effect and the row says so, or it did not and was tried again"
            );
            assert_eq!(proxy.connections(), 2, "{why}: read back on a new connection");
        }
    }
}

#[test]
fn p14_confirmed_outcome_is_marked_confirmed() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    let commit = || When::command(|command| command.sql == "COMMIT");

    let uids = database.insert_all(&[stale(), stale().requeued(3)]);
    proxy.rule(commit(), Fault::CutAfter);
    let report = harness.reap_all(5);
    assert_eq!((report.requeued.len(), report.dead_lettered.len()), (1, 1));
    assert!(report.requeued[0].confirmed && report.dead_lettered[0].confirmed);
    assert_eq!(report.requeued[0].requeue_count, 1);
    assert_eq!(
        (database.get(uids[0], "requeue_count"), database.get(uids[1], "requeue_count")),
        ("1".to_owned(), "3".to_owned())
    );

    let uid = database.insert(&held());
    proxy.rule(commit(), Fault::CutAfter);
    let recovery = harness.recover_failure(uid, OWNER, FailureClass::Connection, "E").unwrap();
    assert!(
        matches!(
            recovery,
            Recovery::Requeued { confirmed: true, requeue_count: 1, delay_ms: 30_000, .. }
        ),
        "{recovery:?}"
    );

    let uid = database.insert(&held().requeued(3));
    proxy.rule(commit(), Fault::CutAfter);
    let recovery = harness.recover_failure(uid, OWNER, FailureClass::Connection, "E").unwrap();
    assert!(
        matches!(recovery, Recovery::DeadLettered { confirmed: true, requeue_count: 3, .. }),
        "{recovery:?}"
    );

    // Without a fault nothing has to be confirmed.
    database.insert(&stale());
    assert!(!harness.reap_all(5).requeued[0].confirmed);
}

/// The reads of the run table that were sent, in the order of their sending.
fn reads(proxy: &Proxy) -> Vec<String> {
    let of_runs =
        |sql: &String| sql.starts_with("SELECT ") && sql.contains(&format!("FROM `{RUNS}`"));
    proxy.statements().into_iter().filter(of_runs).collect()
}

#[test]
fn p02_ownership_is_never_read_without_a_lock() {
    // A read/write splitter answers plain reads from a replica, which may be behind.
    let mut database = Database::new();
    for operation in writing_operations() {
        for lost in [false, true] {
            let proxy = Proxy::start(database.endpoint());
            let mut harness = Harness::through(&proxy, &database);
            let opened = database.insert(&Run::queued());
            assert_eq!(harness.lease_state(opened, OWNER).unwrap(), "requeued");
            if lost {
                proxy.rule(operation.write(), Fault::CutAfter);
            } else {
                // Without the reply's text every write is read back.
                proxy.info(Info::Drop);
            }
            let (uid, uuid) = target(&mut database, &operation);
            proxy.clear_log();
            assert!(
                (operation.call)(&mut harness, uid, &uuid).unwrap(),
                "{}, lost: {lost}",
                operation.name
            );
            let mut reads = reads(&proxy);
            // A reaper's list of candidates is plain (rule 6).
            reads.retain(|sql| {
                !(operation.name.starts_with("reap")
                    && sql.contains(" ORDER BY lease_expires, uid LIMIT "))
            });
            let repeated = lost && operation.may_be_repeated();
            assert_eq!(reads.is_empty(), repeated, "{}, lost: {lost}", operation.name);
            for sql in reads {
                assert!(sql.contains(" FOR UPDATE"), "{}, lost: {lost}: {sql}", operation.name);
            }
        }
    }
}

#[test]
fn p14_read_back_on_a_cluster_waits_for_replication() {
    let mut database = Database::new();
    for operation in writing_operations() {
        let proxy = Proxy::start(database.endpoint());
        // As a node's variables are.
        let variables = "SELECT 'version', VERSION() UNION SELECT 'transaction_isolation', 'x' UNION SELECT 'wsrep_on', 'ON'";
        let variables = if wants_mysql() {
            variables.to_owned()
        } else {
            variables.replace("transaction_", "tx_")
        };
        let settings = format!("SET NAMES utf8mb4; {variables}");
        proxy.rule(When::statement("SHOW VARIABLES").always(), Fault::Instead(settings));
        let waits = proxy.rule(
            When::statement("SET SESSION wsrep_sync_wait = 1").always(),
            Fault::Instead("DO 0".to_owned()),
        );
        let mut harness = Harness::through(&proxy, &database);
        let (uid, uuid) = target(&mut database, &operation);
        let lost = proxy.rule(operation.write(), Fault::CutAfter);
        assert!((operation.call)(&mut harness, uid, &uuid).unwrap(), "{}", operation.name);
        // What may simply be repeated is not read back.
        let repeated = operation.may_be_repeated();
        assert_eq!((lost.hits(), waits.hits()), (1, usize::from(!repeated)), "{}", operation.name);
        assert!((operation.call)(&mut harness, uid, &uuid).is_ok());
        assert_eq!(waits.hits(), usize::from(!repeated), "{}: once per connection", operation.name);
        check_next_calls(&mut harness, &mut database, operation.name);
    }
}

#[test]
fn p14_failed_read_back_is_a_connection_error() {
    let mut database = Database::new();
    for operation in writing_operations() {
        let proxy = Proxy::start(database.endpoint());
        let mut harness = Harness::through(&proxy, &database);
        let (uid, uuid) = target(&mut database, &operation);
        proxy.rule(operation.write(), Fault::CutAfter);
        let opened = database.insert(&Run::queued());
        assert_eq!(harness.lease_state(opened, OWNER).unwrap(), "requeued");
        proxy.welcome(Welcome::Cut, 20);
        let error = error_of(Kind::Connection, (operation.call)(&mut harness, uid, &uuid));
        let idempotent = operation.may_be_repeated();
        assert!(error.outcome_unknown() || idempotent, "{}: {error:?}", operation.name);
        proxy.heal();
        check_next_calls(&mut harness, &mut database, operation.name);
    }
}

#[test]
fn p09_deadlock_of_a_single_statement_is_retried() {
    let mut database = Database::new();
    for operation in operations() {
        let part = if operation.name == "leaseState" { "SELECT status" } else { "UPDATE " };
        let write = || {
            When::command(move |command| command.is_statement() && command.sql.starts_with(part))
        };
        for code in [1213, 1020] {
            let why = format!("{}, {code}", operation.name);
            let proxy = Proxy::start(database.endpoint());
            let mut harness = Harness::through(&proxy, &database);
            let (uid, uuid) = target(&mut database, &operation);
            let rule = proxy.rule(write().times(2), Fault::Refuse(code));
            let done = (operation.call)(&mut harness, uid, &uuid)
                .unwrap_or_else(|error| panic!("{why}: {error:?}"));
            assert_eq!((rule.hits(), done), (2, (operation.effect)(&mut database, uid)), "{why}");
            assert!(done || operation.name == "leaseState", "{why}");

            // The number of retries is bounded, and the outcome is reported.
            let (uid, uuid) = target(&mut database, &operation);
            let rule = proxy.rule(write().always(), Fault::Refuse(code));
            let outcome = (operation.call)(&mut harness, uid, &uuid);
            assert!((2..=60).contains(&rule.hits()), "{why}: {} times", rule.hits());
            rule.cancel();
            match outcome {
                Ok(done) => assert!(
                    !done && operation.name.starts_with("reap"),
                    "{why}: a reaper reports the run as skipped"
                ),
                Err(error) => assert_eq!(error.code, code, "{why}"),
            }
            assert!(!(operation.effect)(&mut database, uid), "{why}");
            check_next_calls(&mut harness, &mut database, &why);
        }
    }
}

#[test]
fn unreadable_reply_is_not_read_as_the_previous_one() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    let held = database.insert(&held());
    let taken = database.insert(&Run::running(OTHER, LEASE));
    for payload in [vec![0x00], vec![0x00, 0xFE, 0xFF], vec![0x00; 3]] {
        assert!(harness.renew_lease(held, OWNER, LEASE).unwrap());
        // The driver keeps the last OK packet that it could read: "Rows matched: 1".
        let rule = proxy.rule(When::statement("UPDATE "), Fault::Payload(payload));
        assert!(!harness.renew_lease(taken, OWNER, LEASE).is_ok_and(|renewed| renewed));
        assert_eq!(rule.hits(), 1);
    }
}
