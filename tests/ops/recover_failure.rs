//! `recoverFailure()`: the decision after a failure with every column compared, and what is stored
//! of the error (rule 27).

use nrllm_runtime::domain::failure::{Classification, Failure, FailureClass};
use nrllm_runtime::domain::holder::Holder;
use nrllm_runtime::domain::status::Reason;
use nrllm_runtime::error::Kind;
use nrllm_runtime::ops::due_runs;
use nrllm_runtime::ops::recover_failure::{self, Recovery};

use crate::support::database::{Database, Run, Shape, assert_row, changed};
use crate::support::harness::{Harness, LEASE, NOW, OWNER, error_of};
use crate::support::legacy_php_worker::LegacyPhpWorker;
use crate::support::operation::{ALLOWED, COUNTS, Expected, FORBIDDEN, PAYLOADS};
use crate::support::proxy::{Fault, Proxy, When};
use crate::support::wake_up::template;

const ERROR: &str = "Vendor\\Provider\\TimeoutException";

fn dead_letter(reason: Reason, requeue_count: u32) -> Recovery {
    Recovery::DeadLettered { reason, requeue_count, confirmed: false }
}

/// The write fences, in the order of the columns of [`CLASSES`].
const EFFECTS: [&str; 4] = ["", "idempotent_write", "non_idempotent_write", "NON_IDEMPOTENT_WRITE"];
/// Every class of failure, with the decisions by write fence.
const CLASSES: [(FailureClass, [[[Expected; 4]; 3]; 4]); 8] = [
    (FailureClass::Connection, [ALLOWED, ALLOWED, FORBIDDEN, ALLOWED]),
    (FailureClass::RateLimit, [ALLOWED, ALLOWED, FORBIDDEN, ALLOWED]),
    (FailureClass::ServerError, [ALLOWED, ALLOWED, FORBIDDEN, ALLOWED]),
    (FailureClass::CircuitOpen, [ALLOWED, ALLOWED, FORBIDDEN, ALLOWED]),
    (FailureClass::Auth, [FORBIDDEN, FORBIDDEN, FORBIDDEN, FORBIDDEN]),
    (FailureClass::Configuration, [FORBIDDEN, FORBIDDEN, FORBIDDEN, FORBIDDEN]),
    (FailureClass::ClientError, [FORBIDDEN, FORBIDDEN, FORBIDDEN, FORBIDDEN]),
    (FailureClass::Unknown, [FORBIDDEN, FORBIDDEN, FORBIDDEN, FORBIDDEN]),
];

#[test]
fn every_class_of_failure_is_in_the_table() {
    for class in FailureClass::ALL {
        assert_eq!(CLASSES.iter().filter(|(known, _)| *known == class).count(), 1, "{class:?}");
    }
}

#[test]
fn decision_after_a_failure_with_every_column() {
    for queued_at in [false, true] {
        let shape = if queued_at { Shape::default().queued_at() } else { Shape::default() };
        let mut database = Database::with(&shape);
        let mut harness = Harness::on(&database);
        let now = NOW.to_string();
        for (class, decisions) in CLASSES {
            for (effect, decisions) in EFFECTS.into_iter().zip(decisions) {
                for (payload, decisions) in PAYLOADS.into_iter().zip(decisions) {
                    for ((count, more, delay_ms), decision) in COUNTS.into_iter().zip(decisions) {
                        let mut run = Run::running(OWNER, LEASE)
                            .write_fence(effect)
                            .requeued(u64::from(count));
                        run = match payload {
                            Some(payload) => run.request(payload),
                            None => run.without_request(),
                        };
                        let uid = database.insert(&run);
                        let before = database.row(uid);
                        let why =
                            format!("{class:?}, {effect:?}, {count} requeues, request {payload:?}");
                        let reason = match decision {
                            Expected::Requeue => None,
                            Expected::Exhausted => Some(Reason::RetriesExhausted),
                            Expected::Final => Some(Reason::NotRetryable),
                        };
                        let recovery = harness.recover_failure(uid, OWNER, class, ERROR).unwrap();
                        let mut changes = vec![
                            ("claimed_by", ""),
                            ("lease_expires", "0"),
                            ("tstamp", now.as_str()),
                        ];
                        match reason {
                            None => {
                                let expected = Recovery::Requeued {
                                    requeue_count: count + 1,
                                    delay_ms,
                                    woken_up: false,
                                    confirmed: false,
                                };
                                assert_eq!(recovery, expected, "{why}");
                                changes.extend([
                                    ("status", "queued"),
                                    ("requeue_count", more),
                                    ("pending_effect", ""),
                                ]);
                                if queued_at {
                                    changes.push(("queued_at", &now));
                                }
                            }
                            Some(reason) => {
                                assert_eq!(recovery, dead_letter(reason, count), "{why}");
                                changes.extend([
                                    ("status", "failed"),
                                    ("termination_reason", reason.as_str()),
                                    ("error_class", ERROR),
                                    ("iterations", "0"),
                                    ("truncated", "0"),
                                    ("total_prompt_tokens", "0"),
                                    ("total_completion_tokens", "0"),
                                    ("total_tokens", "0"),
                                    ("estimated_cost", "0.000000"),
                                    ("suspended_state", ""),
                                    ("queued_request", ""),
                                    ("finished_at", &now),
                                ]);
                            }
                        }
                        assert_row(&database.row(uid), &changed(&before, &changes), &why);
                    }
                }
            }
        }
    }
}

#[test]
fn only_the_owner_recovers() {
    let mut database = Database::new();
    let mut harness = Harness::on(&database);
    for run in [
        Run::running("worker:other", LEASE),
        Run::running("WORKER:WEB-01:4711:C0FFEE", LEASE),
        Run::running(&format!("{OWNER} "), LEASE),
        Run::running("", 0),
        Run::queued(),
        Run::in_status("completed").owner(OWNER),
        Run::in_status("failed").owner(OWNER),
        Run::in_status("cancelled").owner(OWNER),
    ] {
        let uid = database.insert(&run);
        let before = database.row(uid);
        for class in [FailureClass::Connection, FailureClass::Unknown] {
            assert_eq!(
                harness.recover_failure(uid, OWNER, class, ERROR).unwrap(),
                Recovery::LeaseLost,
                "{before:?}"
            );
            assert_row(&database.row(uid), &before, "nothing is written");
        }
    }
    assert_eq!(
        harness.recover_failure(4_000_000_000, OWNER, FailureClass::Unknown, ERROR).unwrap(),
        Recovery::LeaseLost,
        "no such run"
    );
}

#[test]
fn expired_lease_without_a_new_owner_recovers() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running(OWNER, NOW - 1_000));
    let recovery = Harness::on(&database)
        .recover_failure(uid, OWNER, FailureClass::ServerError, ERROR)
        .unwrap();
    assert!(matches!(recovery, Recovery::Requeued { requeue_count: 1, .. }), "{recovery:?}");
}

#[test]
fn reap_between_failure_and_recovery_wins() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running(OWNER, NOW - 1));
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    let mut php_worker = LegacyPhpWorker::of(&database);
    let begun = proxy.rule(When::statement("START TRANSACTION"), Fault::HoldReply);
    let recovery = std::thread::scope(|scope| {
        let recovering =
            scope.spawn(|| harness.recover_failure(uid, OWNER, FailureClass::Connection, ERROR));
        begun.wait();
        php_worker.requeue_stale(uid, NOW).unwrap();
        begun.release();
        recovering.join().unwrap().unwrap()
    });
    assert_eq!(recovery, Recovery::LeaseLost);
    assert_eq!(database.get(uid, "requeue_count"), "1", "counted once");
}

#[test]
fn p36_a_failure_s_own_waiting_time_delays_wake_up_and_row() {
    // Requeued so often before, waiting time of the failure, expected delay: 30 s and 120 s are the
    // backoffs.
    for (requeues, retry_after, delay) in [
        (0, None, 30),
        (0, Some(10), 30),
        (0, Some(90), 90),
        (2, Some(90), 120),
        (2, Some(121), 121),
        (0, Some(3_600), 3_600),
        (0, Some(7_200), 3_600),
        (0, Some(u64::MAX), 3_600),
    ] {
        let case = format!("{requeues} requeues, {retry_after:?}");
        let mut database = Database::with(&Shape::default().queued_at());
        let uid = database.insert(&Run::running(OWNER, LEASE).requeued(requeues));
        let mut harness = Harness::on(&database);
        let classification = Classification {
            retry_after_seconds: retry_after,
            ..Classification::of(FailureClass::CircuitOpen)
        };
        let failure = Failure { classification, error_class: ERROR.to_owned() };
        let holder = Holder { run_uid: uid as u64, owner: OWNER };
        let recovery = harness.run(async |session, context| {
            let wake_up = template();
            let wake_up = Some(&wake_up);
            recover_failure::recover_failure(session, context, holder, &failure, wake_up).await
        });
        let Recovery::Requeued { delay_ms, woken_up: true, .. } = recovery.unwrap() else {
            panic!("{case}: not requeued")
        };
        assert_eq!(delay_ms, delay * 1_000, "{case}");
        let sql =
            "SELECT TIMESTAMPDIFF(SECOND, created_at, available_at) FROM sys_messenger_messages";
        assert_eq!(database.client().number(sql), delay as i64, "{case}: the wake-up");
        assert_eq!(database.get(uid, "tstamp"), NOW.to_string(), "{case}");
        let mut due = |now| {
            harness
                .run(async |session, context| {
                    due_runs::due_runs(session, context, 10, Some(now)).await
                })
                .unwrap()
                .len()
        };
        let at = NOW + delay as i64;
        assert_eq!((due(at - 1), due(at)), (0, 1), "{case}: dueRuns");
    }
}

/// The character set of a column changes while a connection is open, in both directions.
#[test]
fn p30_changed_character_set_is_seen_by_the_next_call() {
    let mut database = Database::new();
    let mut harness = Harness::on(&database);
    let holder = "worker:\u{3c9}";
    for (collation, stored) in [
        ("utf8mb4_unicode_ci", "Vendor\\\u{3c9}Error"),
        ("latin1_swedish_ci", "Vendor\\?Error"),
        ("utf8mb4_unicode_ci", "Vendor\\\u{3c9}Error"),
    ] {
        let charset = collation.split('_').next().unwrap();
        database.client().run("DELETE FROM tx_nrllm_agentrun");
        let table = "ALTER TABLE tx_nrllm_agentrun CONVERT TO CHARACTER SET";
        database.client().run(&format!("{table} {charset} COLLATE {collation}"));
        let uid = database.insert(&Run::running(OWNER, LEASE));
        let queued = database.insert(&Run::queued());
        assert_eq!(
            harness
                .recover_failure(uid, OWNER, FailureClass::Unknown, "Vendor\\\u{3c9}Error")
                .unwrap(),
            dead_letter(Reason::NotRetryable, 0),
            "{collation}"
        );
        assert_eq!(database.get(uid, "error_class"), stored, "{collation}");
        assert!(harness.fail_undispatched(queued, 0, "Vendor\\\u{3c9}Error").unwrap());
        assert_eq!(database.get(queued, "error_class"), stored, "{collation}");
        let free = database.insert(&Run::queued());
        let claimed = harness.claim_queued(free, holder, LEASE);
        if charset == "latin1" {
            error_of(Kind::Argument, claimed);
        } else {
            assert!(claimed.unwrap(), "{collation}");
            assert!(harness.renew_lease(free, holder, LEASE + 1).unwrap(), "{collation}");
        }
    }
}

#[test]
fn p27_every_error_class_can_be_stored() {
    let long = format!("Vendor\\{}", "\u{1f600}".repeat(300));
    for (collation, error_class, stored) in [
        ("utf8mb4_unicode_ci", "Vendor\\\u{1f600}\u{e4}Error", "Vendor\\\u{1f600}\u{e4}Error"),
        ("utf8mb3_general_ci", "Vendor\\\u{1f600}\u{e4}Error", "Vendor\\?\u{e4}Error"),
        ("latin1_swedish_ci", "Vendor\\\u{1f600}\u{e4}\u{3c9}Error", "Vendor\\?\u{e4}?Error"),
        ("ascii_general_ci", "Vendor\\\u{e4}Error", "Vendor\\?Error"),
        ("utf8mb4_bin", "", ""),
    ] {
        let mut database = Database::with(&Shape::default().collation(collation));
        let mut harness = Harness::on(&database);
        let uid = database.insert(&Run::running(OWNER, LEASE));
        assert_eq!(
            harness.recover_failure(uid, OWNER, FailureClass::Unknown, error_class).unwrap(),
            dead_letter(Reason::NotRetryable, 0)
        );
        assert_eq!(database.get(uid, "error_class"), stored, "{collation}");
        let queued = database.insert(&Run::queued());
        assert!(harness.fail_undispatched(queued, 0, error_class).unwrap());
        assert_eq!(database.get(queued, "error_class"), stored, "{collation}");
    }
    let mut database = Database::new();
    let mut harness = Harness::on(&database);
    let uid = database.insert(&Run::running(OWNER, LEASE));
    let cut = nrllm_runtime::domain::failure::error_class(long.as_bytes());
    assert_eq!(
        harness.recover_failure(uid, OWNER, FailureClass::Unknown, &cut).unwrap(),
        dead_letter(Reason::NotRetryable, 0)
    );
    assert_eq!(database.get(uid, "error_class").chars().count(), 255);
}
