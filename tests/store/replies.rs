//! Faults between the store and the server: rule 14, and what 20 to 22 say about connections. After every fault the next call gives
//! the right answer to its own question.

use std::panic::{AssertUnwindSafe, catch_unwind};

use nrllm_runtime::config::options::Options;
use nrllm_runtime::domain::failure::FailureClass;
use nrllm_runtime::error::{Kind, Result};
use nrllm_runtime::ops::reap::{Report, Request};
use nrllm_runtime::ops::recover_failure::Recovery;

use crate::subject::{LEASE, NOW, Subject, error_of, request};
use crate::support::database::{Database, RUNS, Run, Shape};
use crate::support::peer::Peer;
use crate::support::proxy::{Fault, Info, Proxy, Welcome, When};
use crate::support::server::{Endpoint, Server, wants_mysql};

const OWNER: &str = "worker:web-01:4711:c0ffee";
const OTHER: &str = "worker:other:1:beef";

/// One operation on one run, as the fault tests drive it.
struct Operation {
    name: &'static str,
    run: fn() -> Run,
    /// Did it say that it was done? `None` for an answer that says neither.
    call: fn(&mut Subject, i64, &str) -> Result<bool>,
    /// Does the row show the effect?
    effect: fn(&mut Database, i64) -> bool,
}

impl Operation {
    /// The command that makes its effect stand: where it is a transaction the commit, else the write.
    fn write(&self) -> When {
        let start = if self.name.starts_with("reap") || self.name.starts_with("recover") {
            "COMMIT"
        } else {
            "UPDATE "
        };
        When::command(move |command| command.is_statement() && command.sql.starts_with(start))
    }

    /// Is it simply done again when its reply is lost, instead of being read back?
    fn may_be_repeated(&self) -> bool {
        matches!(self.name, "renewLease" | "markPendingEffect")
    }
}

fn stale() -> Run {
    Run::running(OTHER, NOW - 10)
}

fn held() -> Run {
    Run::running(OWNER, NOW + 10)
}

/// A run may be contended: by the reaper's own transaction on a connection whose end the server has not noticed yet.
fn passed_over(report: &Report) -> bool {
    report.skipped.iter().all(|entry| entry.reason == Some("contended"))
}

fn operations() -> Vec<Operation> {
    vec![
        Operation {
            name: "claimQueued",
            run: Run::queued,
            call: |subject, uid, _| subject.claim(uid, OWNER, LEASE),
            effect: |database, uid| {
                database.get(uid, "status") == "running" && database.get(uid, "claimed_by") == OWNER
            },
        },
        Operation {
            name: "renewLease",
            run: held,
            call: |subject, uid, _| subject.renew(uid, OWNER, LEASE),
            effect: |database, uid| database.get(uid, "lease_expires") == LEASE.to_string(),
        },
        Operation {
            name: "markPendingEffect",
            run: held,
            call: |subject, uid, _| subject.fence(uid, OWNER, "non_idempotent_write", LEASE),
            effect: |database, uid| database.get(uid, "pending_effect") == "non_idempotent_write",
        },
        Operation {
            name: "requeue",
            run: held,
            call: |subject, uid, _| subject.requeue(uid, OWNER),
            effect: |database, uid| {
                database.get(uid, "status") == "queued" && database.get(uid, "requeue_count") == "1"
            },
        },
        Operation {
            name: "requeueStale",
            run: stale,
            call: |subject, uid, _| subject.requeue_stale(uid, NOW),
            effect: |database, uid| {
                database.get(uid, "status") == "queued" && database.get(uid, "requeue_count") == "1"
            },
        },
        Operation {
            name: "deadLetterStale",
            run: stale,
            call: |subject, uid, _| subject.dead_letter_stale(uid, NOW, "retries_exhausted"),
            effect: |database, uid| database.get(uid, "termination_reason") == "retries_exhausted",
        },
        Operation {
            name: "recoverFailure, requeue",
            run: held,
            call: |subject, uid, _| {
                let recovery = subject.recover(uid, OWNER, FailureClass::RateLimit, "E")?;
                assert!(!matches!(recovery, Recovery::DeadLettered { .. }), "{recovery:?}");
                Ok(matches!(recovery, Recovery::Requeued { requeue_count: 1, .. }))
            },
            effect: |database, uid| {
                database.get(uid, "status") == "queued" && database.get(uid, "requeue_count") == "1"
            },
        },
        Operation {
            name: "recoverFailure, dead-letter",
            run: held,
            call: |subject, uid, _| {
                let recovery = subject.recover(uid, OWNER, FailureClass::Auth, "E")?;
                assert!(!matches!(recovery, Recovery::Requeued { .. }), "{recovery:?}");
                Ok(matches!(recovery, Recovery::DeadLettered { .. }))
            },
            effect: |database, uid| database.get(uid, "termination_reason") == "not_retryable",
        },
        Operation {
            name: "reap, requeue",
            run: stale,
            call: |subject, uid, _| {
                let report =
                    subject.reap(&Request { only: Some(vec![uid as u64]), ..request(5) })?;
                assert!(report.dead_lettered.is_empty() && passed_over(&report), "{report:?}");
                Ok(report.requeued.len() == 1 && report.requeued[0].requeue_count == 1)
            },
            effect: |database, uid| {
                database.get(uid, "status") == "queued" && database.get(uid, "requeue_count") == "1"
            },
        },
        Operation {
            name: "reap, dead-letter",
            run: || stale().requeued(3),
            call: |subject, uid, _| {
                let report =
                    subject.reap(&Request { only: Some(vec![uid as u64]), ..request(5) })?;
                assert!(report.requeued.is_empty() && passed_over(&report), "{report:?}");
                Ok(report.dead_lettered.len() == 1)
            },
            effect: |database, uid| database.get(uid, "termination_reason") == "retries_exhausted",
        },
        Operation {
            name: "failUndispatched",
            run: Run::queued,
            call: |subject, uid, _| subject.fail_undispatched(uid, 0, "E"),
            effect: |database, uid| database.get(uid, "termination_reason") == "provider_failed",
        },
        Operation {
            name: "cancelRun",
            run: held,
            call: |subject, _, uuid| subject.cancel(uuid),
            effect: |database, uid| database.get(uid, "status") == "cancelled",
        },
        Operation {
            name: "leaseState",
            run: held,
            call: |subject, uid, _| {
                assert_eq!(subject.lease_state(uid, OWNER)?, "held");
                Ok(false)
            },
            effect: |_, _| false,
        },
    ]
}

/// Those that write.
fn writing_operations() -> impl Iterator<Item = Operation> {
    operations().into_iter().filter(|operation| operation.name != "leaseState")
}

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

/// After a fault, the session must answer about other runs as if nothing had been.
fn next_questions(subject: &mut Subject, database: &mut Database, why: &str) {
    let held = database.insert(&Run::running(OWNER, LEASE));
    let taken = database.insert(&Run::running(OTHER, LEASE));
    let queued = database.insert(&Run::queued());
    assert_eq!(subject.lease_state(taken, OWNER).unwrap(), "taken", "{why}");
    assert_eq!(subject.lease_state(held, OWNER).unwrap(), "held", "{why}");
    assert!(!subject.renew(taken, OWNER, LEASE).unwrap(), "{why}");
    assert!(subject.renew(held, OWNER, LEASE).unwrap(), "{why}");
    assert!(subject.claim(queued, OWNER, LEASE).unwrap(), "{why}");
    assert!(!subject.claim(queued, OTHER, LEASE).unwrap(), "{why}");
    assert_eq!(database.get(queued, "claimed_by"), OWNER, "{why}");
}

/// How many commands an operation sends on a connection that is new, or used already.
fn commands(proxy: &Proxy, database: &mut Database, operation: &Operation, warm: bool) -> usize {
    let mut subject = Subject::through(proxy, database);
    if warm {
        let uid = database.insert(&Run::queued());
        assert_eq!(subject.lease_state(uid, OWNER).unwrap(), "requeued");
    }
    let (uid, uuid) = target(database, operation);
    let before = proxy.count();
    (operation.call)(&mut subject, uid, &uuid).unwrap();
    proxy.count().since(before).round_trips
}

fn target(database: &mut Database, operation: &Operation) -> (i64, String) {
    let uid = database.insert(&(operation.run)());
    (uid, database.get(uid, "uuid"))
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
    let mut subject = Subject::limits(proxy.endpoint(), database.name(), 5_000, 4_000);
    if warm {
        let uid = database.insert(&Run::queued());
        subject.lease_state(uid, OWNER).unwrap();
    }
    let (uid, uuid) = target(database, operation);
    proxy.clear_log();
    let rule = proxy.rule(When::any_command().nth(nth), fault.clone());
    let outcome = (operation.call)(&mut subject, uid, &uuid);
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
    next_questions(&mut subject, database, why);
}

#[test]
fn p14_a_fault_at_any_command_never_makes_a_wrong_answer() {
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
fn p14_what_happened_is_confirmed_by_reading_back() {
    let mut database = Database::new();
    for operation in writing_operations() {
        for fault in [Fault::CutAfter, Fault::CutBefore] {
            let why = format!("{}, {fault:?} at its write", operation.name);
            let proxy = Proxy::start(database.endpoint());
            let mut subject = Subject::through(&proxy, &database);
            let (uid, uuid) = target(&mut database, &operation);
            let rule = proxy.rule(operation.write(), fault);
            let done = (operation.call)(&mut subject, uid, &uuid)
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
fn p14_a_confirmed_outcome_says_so() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let mut subject = Subject::through(&proxy, &database);
    let commit = || When::command(|command| command.sql == "COMMIT");

    let uids = database.insert_all(&[stale(), stale().requeued(3)]);
    proxy.rule(commit(), Fault::CutAfter);
    let report = subject.reap_all(5);
    assert_eq!((report.requeued.len(), report.dead_lettered.len()), (1, 1));
    assert!(report.requeued[0].confirmed && report.dead_lettered[0].confirmed);
    assert_eq!(report.requeued[0].requeue_count, 1);
    assert_eq!(
        (database.get(uids[0], "requeue_count"), database.get(uids[1], "requeue_count")),
        ("1".to_owned(), "3".to_owned())
    );

    let uid = database.insert(&held());
    proxy.rule(commit(), Fault::CutAfter);
    let recovery = subject.recover(uid, OWNER, FailureClass::Connection, "E").unwrap();
    assert!(
        matches!(
            recovery,
            Recovery::Requeued { confirmed: true, requeue_count: 1, delay_ms: 30_000, .. }
        ),
        "{recovery:?}"
    );

    let uid = database.insert(&held().requeued(3));
    proxy.rule(commit(), Fault::CutAfter);
    let recovery = subject.recover(uid, OWNER, FailureClass::Connection, "E").unwrap();
    assert!(
        matches!(recovery, Recovery::DeadLettered { confirmed: true, requeue_count: 3, .. }),
        "{recovery:?}"
    );

    // Without a fault nothing has to be confirmed.
    database.insert(&stale());
    assert!(!subject.reap_all(5).requeued[0].confirmed);
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
            let mut subject = Subject::through(&proxy, &database);
            let opened = database.insert(&Run::queued());
            assert_eq!(subject.lease_state(opened, OWNER).unwrap(), "requeued");
            if lost {
                proxy.rule(operation.write(), Fault::CutAfter);
            } else {
                // Without the reply's text every write is read back.
                proxy.info(Info::Drop);
            }
            let (uid, uuid) = target(&mut database, &operation);
            proxy.clear_log();
            assert!(
                (operation.call)(&mut subject, uid, &uuid).unwrap(),
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
fn p14_on_a_cluster_reading_back_waits_for_what_the_lost_node_had_committed() {
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
        proxy.rule(When::statement("SHOW VARIABLES").always(), Fault::Instead(variables));
        let waits = proxy.rule(
            When::statement("SET SESSION wsrep_sync_wait = 1").always(),
            Fault::Instead("DO 0".to_owned()),
        );
        let mut subject = Subject::through(&proxy, &database);
        let (uid, uuid) = target(&mut database, &operation);
        let lost = proxy.rule(operation.write(), Fault::CutAfter);
        assert!((operation.call)(&mut subject, uid, &uuid).unwrap(), "{}", operation.name);
        // What may simply be repeated is not read back.
        let repeated = operation.may_be_repeated();
        assert_eq!((lost.hits(), waits.hits()), (1, usize::from(!repeated)), "{}", operation.name);
        assert!((operation.call)(&mut subject, uid, &uuid).is_ok());
        assert_eq!(waits.hits(), usize::from(!repeated), "{}: once a connection", operation.name);
        next_questions(&mut subject, &mut database, operation.name);
    }
}

#[test]
fn p14_what_cannot_be_read_back_is_a_connection_error() {
    let mut database = Database::new();
    for operation in writing_operations() {
        let proxy = Proxy::start(database.endpoint());
        let mut subject = Subject::through(&proxy, &database);
        let (uid, uuid) = target(&mut database, &operation);
        proxy.rule(operation.write(), Fault::CutAfter);
        let opened = database.insert(&Run::queued());
        assert_eq!(subject.lease_state(opened, OWNER).unwrap(), "requeued");
        proxy.welcome(Welcome::Cut, 20);
        let error = error_of(Kind::Connection, (operation.call)(&mut subject, uid, &uuid));
        let idempotent = operation.may_be_repeated();
        assert!(error.outcome_unknown() || idempotent, "{}: {error:?}", operation.name);
        proxy.heal();
        next_questions(&mut subject, &mut database, operation.name);
    }
}

#[test]
fn p14_a_run_that_moved_on_meanwhile_is_not_claimed() {
    // The reply to a claim is lost, and before the row is read back somebody else has requeued and claimed the run.
    let mut database = Database::new();
    let uid = database.insert(&Run::queued());
    let proxy = Proxy::start(database.endpoint());
    let mut subject = Subject::through(&proxy, &database);
    let mut peer = Peer::of(&database);
    assert_eq!(subject.lease_state(uid, OWNER).unwrap(), "requeued");
    proxy.rule(When::statement("UPDATE "), Fault::CutAfter);
    let again = proxy.rule(When::statement("FOR UPDATE"), Fault::HoldRequest);
    let claimed = std::thread::scope(|scope| {
        let claiming = scope.spawn(|| subject.claim(uid, OWNER, LEASE));
        again.wait();
        peer.requeue_stale(uid, LEASE + 1).unwrap();
        peer.claim(uid, OTHER, LEASE, NOW).unwrap();
        again.release();
        claiming.join().unwrap()
    });
    assert!(!claimed.unwrap());
    assert_eq!(database.get(uid, "claimed_by"), OTHER);
}

#[test]
fn p09_a_deadlock_of_a_single_statement_is_tried_again() {
    let mut database = Database::new();
    for operation in operations() {
        let part = if operation.name == "leaseState" { "SELECT status" } else { "UPDATE " };
        let write = || {
            When::command(move |command| command.is_statement() && command.sql.starts_with(part))
        };
        for code in [1213, 1020] {
            let why = format!("{}, {code}", operation.name);
            let proxy = Proxy::start(database.endpoint());
            let mut subject = Subject::through(&proxy, &database);
            let (uid, uuid) = target(&mut database, &operation);
            let rule = proxy.rule(write().times(2), Fault::Refuse(code));
            let done = (operation.call)(&mut subject, uid, &uuid)
                .unwrap_or_else(|error| panic!("{why}: {error:?}"));
            assert_eq!((rule.hits(), done), (2, (operation.effect)(&mut database, uid)), "{why}");
            assert!(done || operation.name == "leaseState", "{why}");

            // It is tried a few times and not for ever, and whatever comes of it is told.
            let (uid, uuid) = target(&mut database, &operation);
            let rule = proxy.rule(write().always(), Fault::Refuse(code));
            let outcome = (operation.call)(&mut subject, uid, &uuid);
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
            next_questions(&mut subject, &mut database, &why);
        }
    }
}

#[test]
fn a_reply_that_cannot_be_read_is_not_taken_for_the_one_before() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let mut subject = Subject::through(&proxy, &database);
    let held = database.insert(&held());
    let taken = database.insert(&Run::running(OTHER, LEASE));
    for payload in [vec![0x00], vec![0x00, 0xFE, 0xFF], vec![0x00; 3]] {
        assert!(subject.renew(held, OWNER, LEASE).unwrap());
        // The driver keeps the last OK packet that it could read: "Rows matched: 1".
        let rule = proxy.rule(When::statement("UPDATE "), Fault::Payload(payload));
        assert!(!subject.renew(taken, OWNER, LEASE).is_ok_and(|renewed| renewed));
        assert_eq!(rule.hits(), 1);
    }
}

#[test]
fn an_ok_packet_is_no_answer_to_a_question() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let mut subject = Subject::through(&proxy, &database);
    let uid = database.insert(&held());
    assert_eq!(subject.lease_state(uid, OWNER).unwrap(), "held");
    // Once: the question is asked again on a new connection. Always: an error, and not "gone".
    let ok = || Fault::Payload(b"\0\x01\0\x02\0\0\0".to_vec());
    proxy.rule(When::statement("SELECT status"), ok());
    assert_eq!(subject.lease_state(uid, OWNER).unwrap(), "held");
    proxy.rule(When::statement("SELECT status").always(), ok());
    error_of(Kind::Connection, subject.lease_state(uid, OWNER));
}

#[test]
fn p21_a_silent_server_costs_the_time_limit_and_the_connection() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let mut subject = Subject::limits(proxy.endpoint(), database.name(), 1_500, 1_000);
    let uid = database.insert(&held());
    let answer = |subject: &mut Subject| subject.renew(uid, OWNER, LEASE);

    proxy.welcome(Welcome::Silence, 1);
    let (error, took) = timed(|| error_of(Kind::Connection, answer(&mut subject)));
    assert!(error.message.contains("connectTimeoutMs"), "{error}");
    assert!((1_500..10_000).contains(&took), "{took} ms");

    assert!(answer(&mut subject).unwrap());
    let rule = proxy.rule(When::statement("UPDATE "), Fault::Silence);
    let (error, took) = timed(|| error_of(Kind::Connection, answer(&mut subject)));
    assert!(error.message.contains("queryTimeoutMs"), "{error}");
    assert!((1_000..10_000).contains(&took), "{took} ms");
    assert_eq!(rule.hits(), 1, "not asked a second time: the time is up");
    assert!(answer(&mut subject).unwrap());
    assert_eq!(proxy.connections(), 3);
}

#[test]
fn p21_a_slow_network_is_no_error() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let mut subject = Subject::limits(proxy.endpoint(), database.name(), 10_000, 10_000);
    let delay = std::time::Duration::from_millis(20);
    proxy.rule(When::any_command().times(10), Fault::DelayRequest(delay));
    proxy.rule(When::any_command().always(), Fault::DelayReply(delay));
    for operation in operations() {
        let (uid, uuid) = target(&mut database, &operation);
        let done = (operation.call)(&mut subject, uid, &uuid)
            .unwrap_or_else(|error| panic!("{}: {error:?}", operation.name));
        assert_eq!(done, (operation.effect)(&mut database, uid), "{}", operation.name);
    }
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn p21_a_late_reply_is_never_the_answer_to_the_next_question() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let mut subject = Subject::limits(proxy.endpoint(), database.name(), 3_000, 1_000);
    let held = database.insert(&held());
    let taken = database.insert(&Run::running(OTHER, LEASE));
    assert!(subject.renew(held, OWNER, LEASE).unwrap());
    let rule = proxy.rule(When::statement("UPDATE "), Fault::HoldReply);
    error_of(Kind::Connection, subject.renew(held, OWNER, LEASE));
    // The reply "one row matched" is on its way now.
    rule.release();
    assert!(!subject.renew(taken, OWNER, LEASE).unwrap());
    assert_eq!(subject.lease_state(taken, OWNER).unwrap(), "taken");
}

#[test]
fn p21_a_claim_whose_client_gave_up_never_takes_effect_later() {
    let server = Server::start(&[]);
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&Run::queued());
    let mut peer = Peer::of(&database);
    for query_ms in [300, 1_000, 1_500, 2_500] {
        let mut subject = Subject::limits(database.endpoint(), database.name(), 3_000, query_ms);
        assert_eq!(subject.lease_state(uid, OWNER).unwrap(), "requeued");
        peer.hold(uid);
        let (error, took) = timed(|| error_of(Kind::Connection, subject.claim(uid, OWNER, LEASE)));
        assert!(took < query_ms as u128 + 6_000, "{took} ms of {query_ms}");
        peer.let_go();
        // Nothing of the claim is left on the server that could still happen: then the row cannot change any more.
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
        // And the next call gives the right answer.
        assert!(subject.claim(uid, OWNER, LEASE).unwrap());
        assert!(subject.requeue(uid, OWNER).unwrap());
    }
}

#[test]
fn p21_every_operation_goes_on_when_the_idle_connection_was_closed() {
    let mut database = Database::new();
    for operation in operations() {
        let proxy = Proxy::start(database.endpoint());
        let mut subject = Subject::through(&proxy, &database);
        let opened = database.insert(&Run::queued());
        assert_eq!(subject.lease_state(opened, OWNER).unwrap(), "requeued");
        proxy.cut_all();
        let (uid, uuid) = target(&mut database, &operation);
        let done = (operation.call)(&mut subject, uid, &uuid)
            .unwrap_or_else(|error| panic!("{}: {error}", operation.name));
        assert_eq!(done, operation.name != "leaseState", "{}", operation.name);
        assert_eq!(done, (operation.effect)(&mut database, uid), "{}", operation.name);
        assert_eq!(proxy.connections(), 2, "{}", operation.name);
    }
}

#[test]
fn p21_a_vanished_server_is_reconnected_once_and_with_the_sessions_settings() {
    let server = Server::start(&["--autocommit=0", "--sql-mode="]);
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&held());
    let mut subject = Subject::on(&database);
    let own = database.client().id();
    for round in 0..3 {
        assert!(subject.renew(uid, OWNER, LEASE + round).unwrap());
        assert_eq!(database.get(uid, "lease_expires"), (LEASE + round).to_string(), "committed");
        // The site's administrator ends the connection between two calls.
        let mut others = server.connections();
        others.retain(|other| other.id != own && other.database == database.name());
        assert_eq!(others.len(), 1, "{others:?}");
        database.client().run(&format!("KILL {}", others[0].id));
    }
    assert!(subject.renew(uid, OWNER, LEASE).unwrap());
    assert_eq!(subject.session.generation(), 4, "one connection after the other");
}

/// Settings of the subject's own session, as the server has them.
fn session_variables(subject: &mut Subject) -> Vec<String> {
    let isolation = if wants_mysql() { "transaction_isolation" } else { "tx_isolation" };
    let limit = if wants_mysql() { "max_execution_time / 1000" } else { "max_statement_time" };
    let sql = format!(
        "SELECT CONCAT_WS('|', @@session.autocommit + 0, @@session.{isolation}, @@session.sql_mode, @@session.innodb_lock_wait_timeout, \
         @@session.{limit}, @@session.character_set_client)"
    );
    let mut rows = subject
        .run(async |session, _| session.query(&sql, mysql_async::Params::Empty).await)
        .unwrap();
    let row: String = rows.remove(0).take(0).unwrap();
    row.split('|').map(str::to_owned).collect()
}

#[test]
fn p21_every_session_has_its_own_settings_whatever_the_sites_are() {
    let hostile: &[&str] = &[
        "--autocommit=0",
        "--sql-mode=ANSI_QUOTES",
        "--transaction-isolation=SERIALIZABLE",
        "--innodb-lock-wait-timeout=3000",
        "--character-set-server=latin1",
    ];
    for (options, isolation) in [
        (hostile.to_vec(), "READ-COMMITTED"),
        (
            [hostile, &["--log-bin=binlog", "--server-id=1", "--binlog-format=STATEMENT"]].concat(),
            "REPEATABLE-READ",
        ),
    ] {
        let server = Server::start(&options);
        let database = Database::on(&server, &Shape::default());
        for query_ms in [400, 3_500, 30_000] {
            let mut subject =
                Subject::limits(database.endpoint(), database.name(), 10_000, query_ms);
            for connection in 0..2 {
                let variables = session_variables(&mut subject);
                assert_eq!(variables[0], "1", "autocommit of connection {connection}");
                assert_eq!(variables[1], isolation, "isolation of connection {connection}");
                assert_eq!(variables[2], "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION");
                let (lock_wait, statement): (f64, f64) =
                    (variables[3].parse().unwrap(), variables[4].parse().unwrap());
                let client = query_ms as f64 / 1_000.0;
                assert!(
                    lock_wait <= client.max(1.0),
                    "a row lock is waited for {lock_wait} s, the client waits {client} s"
                );
                assert!(
                    statement > 0.0 && statement < client,
                    "a statement has {statement} s, the client waits {client} s"
                );
                assert_eq!(variables[5], "utf8mb4");
                subject.session.discard();
            }
        }
    }
}

#[test]
fn p21_wait_timeout_between_two_calls_is_no_error() {
    let server = Server::start(&["--wait-timeout=1", "--interactive-timeout=1"]);
    let mut database = Database::on(&server, &Shape::default());
    database.client().run("SET SESSION wait_timeout = 600");
    let uid = database.insert(&Run::queued());
    let mut subject = Subject::on(&database);
    assert_eq!(subject.lease_state(uid, OWNER).unwrap(), "requeued");
    let own = database.client().id();
    // The server says when it has closed the idle connection.
    let gone = std::time::Instant::now();
    while server
        .connections()
        .iter()
        .any(|connection| connection.database == database.name() && connection.id != own)
    {
        assert!(gone.elapsed() < crate::support::PATIENCE);
    }
    assert!(subject.claim(uid, OWNER, LEASE).unwrap());
    assert_eq!(database.get(uid, "claimed_by"), OWNER);
}

#[test]
fn p21_a_server_that_is_not_the_primary_costs_the_connection() {
    let mut database = Database::new();
    for code in [1290, 1836, 1792, 1047] {
        let proxy = Proxy::start(database.endpoint());
        let mut subject = Subject::through(&proxy, &database);
        let uid = database.insert(&held());
        assert!(subject.renew(uid, OWNER, LEASE).unwrap());
        proxy.rule(When::statement("UPDATE "), Fault::Refuse(code));
        let error = error_of(Kind::Connection, subject.renew(uid, OWNER, LEASE));
        assert_eq!(error.code, code);
        assert!(
            subject.renew(uid, OWNER, LEASE).unwrap(),
            "{code}: the next connection may reach the primary"
        );
        assert_eq!(proxy.connections(), 2, "{code}");
    }
}

#[test]
fn p21_a_read_only_server_is_a_connection_error() {
    let server = Server::start(&[]);
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&held());
    // Accounts with many privileges may write all the same.
    let mut admin = server.client();
    admin.run(&format!(
        "CREATE USER 'site'@'127.0.0.1' IDENTIFIED BY 'site-Passw0rd'; GRANT SELECT, INSERT, UPDATE, DELETE ON {}.* TO 'site'@'127.0.0.1'",
        database.name()
    ));
    let endpoint = Endpoint {
        user: "site".to_owned(),
        password: "site-Passw0rd".to_owned(),
        ..server.endpoint().clone()
    };
    let mut subject = Subject::at(&endpoint, database.name(), Options::default());
    assert!(subject.renew(uid, OWNER, LEASE).unwrap());
    admin.run("SET GLOBAL read_only = ON");
    assert_eq!(error_of(Kind::Connection, subject.renew(uid, OWNER, LEASE)).code, 1290);
    assert_eq!(subject.lease_state(uid, OWNER).unwrap(), "held", "reading goes on");
    admin.run("SET GLOBAL read_only = OFF");
    assert!(subject.renew(uid, OWNER, LEASE).unwrap());
}

#[test]
fn p21_a_refused_statement_is_a_query_error_and_the_connection_stays() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let mut subject = Subject::through(&proxy, &database);
    let uid = database.insert(&held());
    for (code, kind) in [
        (1064, Kind::Query),
        (1461, Kind::Query),
        (1142, Kind::Query),
        (1146, Kind::Configuration),
        (1054, Kind::Configuration),
    ] {
        assert!(subject.renew(uid, OWNER, LEASE).unwrap());
        proxy
            .rule(When::command(|command| command.sql.starts_with("UPDATE ")), Fault::Refuse(code));
        assert_eq!(error_of(kind, subject.renew(uid, OWNER, LEASE)).code, code);
    }
    assert!(subject.renew(uid, OWNER, LEASE).unwrap());
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn p21_a_server_that_cannot_be_reached_says_where_it_was_looked_for() {
    let mut database = Database::new();
    let uid = database.insert(&held());
    let proxy = Proxy::start(database.endpoint());
    proxy.welcome(Welcome::Refuse(1040), 1);
    let error =
        error_of(Kind::Connection, Subject::through(&proxy, &database).renew(uid, OWNER, LEASE));
    assert_eq!(error.code, 1040);
    for welcome in [
        Welcome::Cut,
        Welcome::CutAtLogin,
        Welcome::Garbage(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
    ] {
        proxy.welcome(welcome.clone(), 1);
        let mut subject = Subject::limits(proxy.endpoint(), database.name(), 1_500, 1_500);
        error_of(Kind::Connection, subject.renew(uid, OWNER, LEASE));
        assert!(subject.renew(uid, OWNER, LEASE).unwrap(), "after {welcome:?}");
    }
    let nowhere = proxy.endpoint().clone();
    drop(proxy);
    let error = error_of(
        Kind::Connection,
        Subject::at(&nowhere, database.name(), Options::default()).renew(uid, OWNER, LEASE),
    );
    assert!(error.message.contains(&nowhere.port.to_string()), "{error}");
    for (user, database_name) in
        [("nobody", database.name()), (nowhere.user.as_str(), "no_such_database")]
    {
        let endpoint = Endpoint {
            user: user.to_owned(),
            password: "hidden-Passw0rd".to_owned(),
            ..database.endpoint().clone()
        };
        let error = Subject::at(&endpoint, database_name, Options::default())
            .renew(uid, OWNER, LEASE)
            .unwrap_err();
        assert!(!format!("{error:?} {error}").contains("hidden-Passw0rd"), "{error}");
    }
}

#[test]
fn p20_one_connection_and_a_handful_of_statements_for_a_whole_life() {
    let server = Server::start(&[]);
    let mut database = Database::on(&server, &Shape::default());
    let proxy = Proxy::start(database.endpoint());
    let mut subject = Subject::through(&proxy, &database);
    let uids = database.insert_all(
        &(0..30).map(|number| Run::running(&format!("worker:{number}"), LEASE)).collect::<Vec<_>>(),
    );
    for tick in 0..3_000_usize {
        let number = tick % uids.len();
        assert!(
            subject.renew(uids[number], &format!("worker:{number}"), LEASE + tick as i64).unwrap()
        );
        if tick % 30 == 0 {
            // Reports of all sizes: no statement's text may depend on them and stay prepared.
            let runs = vec![stale(); 1 + tick / 30];
            database.insert_all(&runs);
            assert_eq!(subject.reap_all(1_000).requeued.len(), runs.len());
        }
    }
    assert_eq!((proxy.connections(), proxy.open_connections()), (1, 1));
    assert_eq!(subject.session.generation(), 1);
    let count = proxy.count();
    let held = count.prepares - count.closed_statements;
    assert!(held <= 8, "{held} prepared statements");
    // Those of the proxy's connection, and one of the test's own.
    assert!(server.prepared_statements() <= held as u64 + 4, "{}", server.prepared_statements());
}

#[test]
fn p20_few_prepared_statements_allowed_by_the_server() {
    let server = Server::start(&["--max-prepared-stmt-count=12"]);
    let mut database = Database::on(&server, &Shape::default());
    let mut subject = Subject::on(&database);
    for operation in operations() {
        let (uid, uuid) = target(&mut database, &operation);
        (operation.call)(&mut subject, uid, &uuid)
            .unwrap_or_else(|error| panic!("{}: {error:?}", operation.name));
    }
}

#[test]
fn p22_awkward_credentials_work_and_are_never_shown() {
    let server = Server::start(&[]);
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&held());
    let password = "p@ss:w/o#rd?%41&+ \u{fc}'\"\\`";
    let mut admin = server.client();
    admin.run(&format!(
        "CREATE USER 'o''brien \u{e4}'@'127.0.0.1' IDENTIFIED BY '{}'",
        password.replace('\\', "\\\\").replace('\'', "''")
    ));
    admin.run(&format!(
        "GRANT SELECT, UPDATE ON {}.* TO 'o''brien \u{e4}'@'127.0.0.1'",
        database.name()
    ));
    let endpoint = Endpoint {
        user: "o'brien \u{e4}".to_owned(),
        password: password.to_owned(),
        ..server.endpoint().clone()
    };
    let settings = crate::subject::settings(&endpoint, database.name());
    assert!(!format!("{settings:?}").contains("p@ss"), "{settings:?}");
    let mut subject = Subject::of(settings, Options::default());
    assert!(subject.renew(uid, OWNER, LEASE).unwrap());
    admin.run("SET GLOBAL read_only = ON");
    let error = subject.renew(uid, OWNER, LEASE).unwrap_err();
    assert!(!format!("{error:?} {error}").contains("p@ss"), "{error:?}");
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, u128) {
    let start = std::time::Instant::now();
    let value = work();
    (value, start.elapsed().as_millis())
}
