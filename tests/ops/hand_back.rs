//! `handBack()`: a run goes back to the queue without spending its retry budget (rule 37).

use nrllm_runtime::config::options::{Clock, Options};
use nrllm_runtime::error::Kind;
use nrllm_runtime::ops::due_runs;

use crate::support::database::{Database, Run, Shape, assert_row, changed};
use crate::support::harness::{Harness, LEASE, NOW, OWNER, error_of};
use crate::support::legacy_php_worker::LegacyPhpWorker;
use crate::support::proxy::{Fault, Proxy, When};
use crate::support::wake_up::template;

fn held() -> Run {
    Run::running(OWNER, LEASE).set("queued_request", "nrv1:request")
}

/// Not the session's own settings, which name READ-COMMITTED.
fn commit() -> When {
    When::command(|command| command.sql == "COMMIT")
}

fn due_uids(harness: &mut Harness, now: Option<i64>) -> Vec<u64> {
    let due = harness
        .run(async |session, context| due_runs::due_runs(session, context, 10, now).await)
        .unwrap();
    due.into_iter().map(|run| run.uid).collect()
}

#[test]
fn p37_hand_back_keeps_the_counter_and_the_payload() {
    for queued_at in [false, true] {
        let shape = if queued_at { Shape::default().queued_at() } else { Shape::default() };
        let mut database = Database::with(&shape);
        let run = held().write_fence("idempotent_write");
        let uids = database.insert_all(&[run.clone(), run.requeued(2)]);
        let mut harness = Harness::on(&database);
        for (uid, backoff) in uids.into_iter().zip([0, 60]) {
            let before = database.row(uid);
            assert!(!harness.hand_back(uid, "worker:other", None).unwrap());
            assert_row(&database.row(uid), &before, "a hand-back by another worker");
            assert!(harness.hand_back(uid, OWNER, None).unwrap());
            let (now, since) = (NOW.to_string(), (NOW - backoff).to_string());
            let mut changes = vec![
                ("status", "queued"),
                ("claimed_by", ""),
                ("lease_expires", "0"),
                ("pending_effect", ""),
                ("tstamp", &now),
            ];
            if queued_at {
                changes.push(("queued_at", &since));
            }
            assert_row(&database.row(uid), &changed(&before, &changes), "a hand-back");
            assert!(!harness.hand_back(uid, OWNER, None).unwrap(), "it is done");
        }
    }
}

#[test]
fn p37_hand_back_is_refused_by_write_fence_and_request() {
    let mut database = Database::new();
    let mut harness = Harness::on(&database);
    for (run, why) in [
        (held().write_fence("non_idempotent_write"), "the write fence forbids another attempt"),
        (held().without_request(), "no request is stored"),
        (held().request(""), "the request is empty"),
        (held().owner("WORKER:WEB-01:4711:C0FFEE"), "another owner that collates equal"),
        (Run::queued().owner(OWNER), "queued"),
        (Run::in_status("waiting_for_approval").owner(OWNER), "waiting"),
        (Run::in_status("completed").owner(OWNER), "completed"),
    ] {
        let uid = database.insert(&run);
        let before = database.row(uid);
        assert!(!harness.hand_back(uid, OWNER, Some(&template())).unwrap(), "{why}");
        assert_row(&database.row(uid), &before, why);
    }
    assert!(!harness.hand_back(4_000_000_000, OWNER, None).unwrap(), "no such run");
    assert!(database.messages().is_empty());
}

#[test]
fn p37_handed_back_run_is_due_at_once_and_notified_at_once() {
    for clock in [Clock::Caller, Clock::Database] {
        for requeues in [0, 1, 3] {
            let mut database = Database::with(&Shape::default().queued_at());
            let uid = database.insert(&held().requeued(requeues));
            let mut options = Options { clock, ..Options::default() };
            options.backoff.jitter = 0.5;
            let mut harness = Harness::with(&database, options);
            assert!(harness.hand_back(uid, OWNER, Some(&template())).unwrap());
            assert_eq!(due_uids(&mut harness, None), [uid as u64], "{clock:?}, {requeues}");
            let sql = "SELECT TIMESTAMPDIFF(SECOND, created_at, available_at) FROM \
                       sys_messenger_messages";
            assert_eq!(database.client().number(sql), 0, "available at once");
        }
    }
}

#[test]
fn p37_without_queued_at_the_table_shows_the_backoff() {
    let mut database = Database::new();
    let first = database.insert(&held());
    let second = database.insert(&held().requeued(1));
    let mut harness = Harness::on(&database);
    for uid in [first, second] {
        assert!(harness.hand_back(uid, OWNER, None).unwrap());
    }
    assert_eq!(due_uids(&mut harness, Some(NOW)), [first as u64]);
    assert_eq!(due_uids(&mut harness, Some(NOW + 30)), [first as u64, second as u64]);
}

#[test]
fn p14_hand_back_with_a_lost_reply_is_confirmed_by_the_row() {
    for claimed_since in [false, true] {
        let mut database = Database::new();
        let uid = database.insert(&held().requeued(1));
        let proxy = Proxy::start(database.endpoint());
        let mut harness = Harness::through(&proxy, &database);
        proxy.rule(commit(), Fault::CutAfter);
        let read_back =
            proxy.rule(When::statement("SELECT status, requeue_count"), Fault::HoldRequest);
        let mut php_worker = LegacyPhpWorker::of(&database);
        let handed_back = std::thread::scope(|scope| {
            let call = scope.spawn(|| harness.hand_back(uid, OWNER, Some(&template())));
            read_back.wait();
            if claimed_since {
                assert_eq!(php_worker.claim(uid, "worker:php", LEASE, NOW).unwrap().affected, 1);
            }
            read_back.release();
            call.join().unwrap().unwrap()
        });
        assert!(handed_back, "claimed since: {claimed_since}");
        assert_eq!(database.messages().len(), 1, "written once");
        assert_eq!(database.get(uid, "requeue_count"), "1");
    }
}

#[test]
fn p14_reaped_in_place_of_a_lost_hand_back_is_reported_as_lost() {
    let mut database = Database::new();
    let uid = database.insert(&held());
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    proxy.rule(commit(), Fault::CutBefore);
    let read_back = proxy.rule(When::statement("SELECT status, requeue_count"), Fault::HoldRequest);
    let mut php_worker = LegacyPhpWorker::of(&database);
    let handed_back = std::thread::scope(|scope| {
        let call = scope.spawn(|| harness.hand_back(uid, OWNER, None));
        read_back.wait();
        php_worker.requeue_stale(uid, LEASE + 1).unwrap();
        read_back.release();
        call.join().unwrap().unwrap()
    });
    assert!(!handed_back);
    assert_eq!(database.get(uid, "requeue_count"), "1", "counted by the reaper");
}

#[test]
fn unfit_uuid_is_an_error_only_with_a_wake_up() {
    let mut database = Database::new();
    let uid = database.insert(&held().uuid("short"));
    let before = database.row(uid);
    let mut harness = Harness::on(&database);
    let error = error_of(Kind::Configuration, harness.hand_back(uid, OWNER, Some(&template())));
    assert!(error.message.contains("'short'"), "{error}");
    assert_row(&database.row(uid), &before, "nothing was written");
    assert!(harness.hand_back(uid, OWNER, None).unwrap());
}
