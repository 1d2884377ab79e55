//! `strandedRuns()`: the sweep reports each stranded run once (rules 6, 7, 9, 13 and 14).

use std::collections::BTreeMap;
use std::sync::{Arc, Barrier};
use std::thread;

use nrllm_runtime::config::options::{Clock, Options};
use nrllm_runtime::config::requests::SweepRequest;
use nrllm_runtime::error::Kind;
use nrllm_runtime::ops::due_runs;
use nrllm_runtime::ops::stranded_runs::{self, Stranded};

use crate::support::database::{Database, MESSAGES, RUNS, Run, Shape, assert_row, changed};
use crate::support::harness::{Harness, LEASE, NOW, error_of};
use crate::support::legacy_php_worker::LegacyPhpWorker;
use crate::support::proxy::{Fault, Proxy, When};
use crate::support::server::Server;
use crate::support::wake_up::{messages, sweep, swept_uids, template};

#[test]
fn p13_sweep_claims_each_stranded_run_once() {
    for queued_at in [false, true] {
        let mut database = Database::with(&if queued_at {
            Shape::default().queued_at()
        } else {
            Shape::default()
        });
        let mut harness = Harness::on(&database);
        let second = database.insert(&Run::queued().crdate(20).tstamp(NOW - 301));
        let first = database.insert(&Run::queued().crdate(10).tstamp(NOW - 331).requeued(1));
        let third = database.insert(&Run::queued().crdate(20).tstamp(NOW - 1_000));
        let mut others = vec![
            database.insert(&Run::queued().crdate(1).tstamp(NOW - 300)),
            database.insert(&Run::queued().crdate(1).tstamp(NOW - 330).requeued(1)),
            database.insert(&Run::queued().crdate(1).tstamp(1).without_request()),
            database.insert(&Run::running("worker:a", NOW - 1_000).crdate(1)),
            database.insert(&Run::in_status("waiting_for_input").crdate(1)),
        ];
        if queued_at {
            // Requeued by a newer release, which wrote both; the later one counts.
            others.push(
                database.insert(&Run::queued().crdate(1).tstamp(1).set("queued_at", NOW - 300)),
            );
            others.push(
                database.insert(&Run::queued().crdate(1).tstamp(NOW - 300).set("queued_at", 1)),
            );
            database.set(second, "queued_at", NOW - 302);
        }
        let before: BTreeMap<i64, _> = [first, second, third]
            .iter()
            .chain(&others)
            .map(|&uid| (uid, database.row(uid)))
            .collect();
        let seconds = if queued_at { 302 } else { 301 };
        let swept = sweep(&mut harness, 300, 2, None).unwrap();
        let expected =
            [(first, 1, 331), (second, 0, seconds)].map(|(uid, requeue_count, queued_seconds)| {
                Stranded {
                    uid: uid as u64,
                    uuid: database.get(uid, "uuid"),
                    requeue_count,
                    queued_seconds,
                    woken_up: false,
                }
            });
        assert_eq!(swept, expected);
        assert_eq!(swept_uids(&sweep(&mut harness, 300, 50, None).unwrap()), [third]);
        assert_eq!(sweep(&mut harness, 300, 50, None).unwrap(), []);
        for uid in [first, second, third] {
            assert_row(
                &database.row(uid),
                &changed(&before[&uid], &[("tstamp", &NOW.to_string())]),
                "a mark and nothing else",
            );
        }
        for uid in others {
            assert_row(&database.row(uid), &before[&uid], "left alone");
        }
        // No worker took them: they are reported again after the same time.
        harness.time = NOW + 300;
        let again = swept_uids(&sweep(&mut harness, 300, 50, None).unwrap());
        assert!(
            !again.contains(&first) && !again.contains(&second) && !again.contains(&third),
            "{again:?}"
        );
        harness.time = NOW + 331;
        assert_eq!(
            swept_uids(&sweep(&mut harness, 300, 50, None).unwrap()),
            [first, second, third]
        );
        assert_eq!(messages(&mut database), []);
    }
}

#[test]
fn p13_sweep_compares_and_marks_with_one_clock() {
    // A caller's own `now`, of the past or of the future: the second sweep at the same time finds
    // nothing.
    for now in [5_000, NOW, 4_000_000_000] {
        for clock in [Clock::Caller, Clock::Database] {
            let mut database = Database::new();
            let options = Options { clock, ..Options::default() };
            let mut harness = Harness::with(&database, options);
            harness.time = if clock == Clock::Database {
                database.client().number("SELECT UNIX_TIMESTAMP()")
            } else {
                NOW
            };
            let uid = database.insert(&Run::queued().tstamp(now - 400));
            let at = |harness: &mut Harness, now: i64| {
                let request = SweepRequest {
                    older_than_seconds: 300,
                    limit: 5,
                    now: Some(now),
                    wake_up: Some(template()),
                };
                swept_uids(
                    &harness
                        .run(async |session, context| {
                            stranded_runs::stranded_runs(session, context, &request).await
                        })
                        .unwrap(),
                )
            };
            assert_eq!(at(&mut harness, now), [uid], "{now} {clock:?}");
            assert_eq!(at(&mut harness, now), Vec::<i64>::new(), "{now} {clock:?}");
            let mark: i64 = database.get(uid, "tstamp").parse().unwrap();
            assert!((now..now + 60).contains(&mark), "{now} {clock:?}: {mark}");
            // The message does not wait for a time that is not now.
            let available = messages(&mut database)[0].available;
            assert!(
                (harness.time..harness.time + 60).contains(&available),
                "{now} {clock:?}: {available}"
            );
            assert_eq!(at(&mut harness, 0), Vec::<i64>::new(), "nothing at 0");
        }
    }
}

#[test]
fn p07_concurrent_sweeps_share_the_stranded_runs() {
    let mut database = Database::new();
    for with_wake_up in [false, true, false, true] {
        let runs: Vec<i64> = (0..90)
            .map(|number| database.insert(&Run::queued().crdate(number).tstamp(NOW - 900)))
            .collect();
        let barrier = Arc::new(Barrier::new(3));
        let sweeps: Vec<_> = (0..3)
            .map(|_| {
                let (barrier, mut harness) = (Arc::clone(&barrier), Harness::on(&database));
                thread::spawn(move || {
                    barrier.wait();
                    sweep(&mut harness, 60, 90, with_wake_up.then(template)).unwrap()
                })
            })
            .collect();
        let mut reported: Vec<i64> = Vec::new();
        for swept in sweeps.into_iter().map(|sweep| sweep.join().unwrap()) {
            assert!(swept.iter().all(|run| run.woken_up == with_wake_up));
            reported.extend(swept_uids(&swept));
        }
        reported.sort_unstable();
        assert_eq!(reported, runs, "each run once");
        assert_eq!(messages(&mut database).len(), if with_wake_up { 90 } else { 0 });
        database.client().run(&format!("DELETE FROM {RUNS}"));
        database.client().run(&format!("DELETE FROM {MESSAGES}"));
    }
}

#[test]
fn p13_run_claimed_before_the_mark_is_not_reported() {
    let mut database = Database::new();
    let (taken, requeued, left) = (
        database.insert(&Run::queued().crdate(1).tstamp(NOW - 900)),
        database.insert(&Run::queued().crdate(2).tstamp(NOW - 900)),
        database.insert(&Run::queued().crdate(3).tstamp(NOW - 900)),
    );
    let proxy = Proxy::start(database.endpoint());
    let held = proxy.rule(When::statement("START TRANSACTION"), Fault::HoldRequest);
    let mut harness = Harness::through(&proxy, &database);
    let worker = thread::spawn(move || sweep(&mut harness, 60, 50, Some(template())).unwrap());
    held.wait();
    let mut php_worker = LegacyPhpWorker::of(&database);
    php_worker.claim(taken, "worker:b", LEASE, NOW).unwrap();
    // Claimed and requeued again: queued as before, and freshly so.
    php_worker.claim(requeued, "worker:b", NOW - 1, NOW).unwrap();
    php_worker.requeue_stale(requeued, NOW).unwrap();
    let before = (database.row(taken), database.row(requeued));
    held.release();
    assert_eq!(swept_uids(&worker.join().unwrap()), [left]);
    assert_eq!((database.row(taken), database.row(requeued)), before);
    assert_eq!(messages(&mut database).len(), 1);
}

#[test]
fn p13_many_stranded_runs_need_few_statements() {
    let mut database = Database::new();
    let runs: Vec<Run> =
        (0..1_000).map(|number| Run::queued().crdate(number).tstamp(NOW - 900)).collect();
    let uids = database.insert_all(&runs);
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    assert_eq!(swept_uids(&sweep(&mut harness, 60, 1_000, Some(template())).unwrap()), uids);
    let writes = proxy
        .log()
        .iter()
        .filter(|exchange| {
            exchange.command.is_statement() && exchange.command.sql.starts_with("UPDATE")
        })
        .count();
    assert_eq!(writes, 4, "one a chunk");
    assert_eq!(messages(&mut database).len(), 1_000);
    // The status report counts the same way.
    let stranded = |harness: &mut Harness, now: i64| {
        harness
            .run(async |session, context| {
                nrllm_runtime::ops::status::status(session, context, Some(now), None).await
            })
            .unwrap()
            .stranded
    };
    assert_eq!((stranded(&mut harness, NOW + 300), stranded(&mut harness, NOW + 301)), (0, 1_000));
}

#[test]
fn p09_sweep_continues_after_deadlocks_and_lost_connections() {
    let mut database = Database::new();
    for (statement, fault) in [
        ("UPDATE", Fault::Refuse(1213)),
        ("INSERT INTO", Fault::Refuse(1213)),
        ("FOR UPDATE", Fault::Refuse(1205)),
        ("FOR UPDATE", Fault::Refuse(1064)),
        ("STRAIGHT_JOIN", Fault::CutBefore),
    ] {
        let uids: Vec<i64> = (0..4)
            .map(|number| database.insert(&Run::queued().crdate(number).tstamp(NOW - 900)))
            .collect();
        let proxy = Proxy::start(database.endpoint());
        let rule = proxy.rule(When::statement(statement), fault.clone());
        let swept =
            sweep(&mut Harness::through(&proxy, &database), 60, 50, Some(template())).unwrap();
        assert_eq!((rule.hits(), swept_uids(&swept)), (1, uids), "{statement} {fault:?}");
        assert_eq!(messages(&mut database).len(), 4, "{statement} {fault:?}");
        database.client().run(&format!("DELETE FROM {RUNS}"));
        database.client().run(&format!("DELETE FROM {MESSAGES}"));
    }
}

#[test]
fn p14_runs_claimed_before_an_error_are_reported() {
    let mut database = Database::new();
    let runs: Vec<Run> =
        (0..400).map(|number| Run::queued().crdate(number).tstamp(NOW - 900)).collect();
    let uids = database.insert_all(&runs);
    let proxy = Proxy::start(database.endpoint());
    proxy.rule(When::statement("UPDATE `").nth(2), Fault::Refuse(1142));
    let swept = sweep(&mut Harness::through(&proxy, &database), 60, 1_000, None).unwrap();
    assert_eq!(
        swept_uids(&swept),
        uids[..300],
        "the first chunk, of which the caller has to notify workers"
    );
    proxy.rule(When::statement("UPDATE `"), Fault::Refuse(1142));
    error_of(Kind::Query, sweep(&mut Harness::through(&proxy, &database), 60, 1_000, None));
    assert_eq!(
        swept_uids(&sweep(&mut Harness::on(&database), 60, 1_000, None).unwrap()),
        uids[300..]
    );
}

#[test]
fn p06_sweep_with_statement_based_logging() {
    let server = Server::start(&["--log-bin", "--binlog-format=STATEMENT", "--server-id=1"]);
    let mut database = Database::on(&server, &Shape::default());
    let runs: Vec<Run> =
        (0..120).map(|number| Run::queued().crdate(number).tstamp(NOW - 900)).collect();
    let uids = database.insert_all(&runs);
    let stale: Vec<Run> = (0..120).map(|_| Run::running("worker:a", NOW - 1)).collect();
    let stale = database.insert_all(&stale);
    let mut harness = Harness::on(&database);
    assert_eq!(swept_uids(&sweep(&mut harness, 60, 1_000, Some(template())).unwrap()), uids);
    let report = harness
        .reap(&nrllm_runtime::config::requests::ReapRequest {
            wake_up: Some(template()),
            ..crate::support::harness::request(500)
        })
        .unwrap();
    assert_eq!(report.requeued.len(), stale.len());
    assert_eq!(messages(&mut database).len(), 240);
}

#[test]
fn missing_counter_column_is_named() {
    let mut database = Database::with(&Shape::default().without("requeue_count"));
    database.insert(&Run::queued().unset("requeue_count"));
    let mut harness = Harness::on(&database);
    let reported = error_of(Kind::Configuration, sweep(&mut harness, 60, 5, None));
    assert!(reported.message.contains("requeue_count"), "{reported:?}");
    let reported = error_of(
        Kind::Configuration,
        harness.run(async |session, context| due_runs::due_runs(session, context, 5, None).await),
    );
    assert!(reported.message.contains("requeue_count"), "{reported:?}");
}
