//! Queued runs: when they are due (the backoff with its jitter, from the row alone), and those that nothing woke.

use std::collections::BTreeMap;
use std::sync::{Arc, Barrier};
use std::thread;

use nrllm_runtime::config::options::{Clock, Options};
use nrllm_runtime::error::Kind;
use nrllm_runtime::ops::due_runs::{self, DueRun};
use nrllm_runtime::ops::recover_failure::Recovery;
use nrllm_runtime::ops::stranded_runs::{self, Stranded};

use crate::subject::{LEASE, NOW, Subject, error_of};
use crate::support::database::{Database, MESSAGES, RUNS, Run, Shape, assert_row, changed};
use crate::support::peer::Peer;
use crate::support::proxy::{Fault, Proxy, When};
use crate::support::server::{Server, shared};
use crate::wakeup::{messages, recover_waking, sweep, template};

fn due_at(subject: &mut Subject, limit: u64, now: i64) -> Vec<DueRun> {
    subject
        .run(async |session, context| due_runs::due_runs(session, context, limit, Some(now)).await)
        .unwrap()
}

fn due_uids(subject: &mut Subject, limit: u64, now: i64) -> Vec<i64> {
    due_at(subject, limit, now).iter().map(|run| i64::try_from(run.uid).unwrap()).collect()
}

fn swept_uids(swept: &[Stranded]) -> Vec<i64> {
    swept.iter().map(|run| i64::try_from(run.uid).unwrap()).collect()
}

/// A uuid of version 4 from a counter (SplitMix64): the same in every run of the test, and spread as random ones are.
fn uuid(number: u64) -> String {
    let mix = |seed: u64| {
        let mut z = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    let (high, low) = (mix(2 * number + 1), mix(2 * number + 2));
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xFFFF,
        high & 0xFFF,
        0x8000 | ((low >> 48) & 0x3FFF),
        low & 0xFFFF_FFFF_FFFF
    )
}

#[test]
fn p13_a_thousand_failures_in_one_second_come_back_spread_out() {
    let mut database = Database::with(&Shape::default().queued_at());
    let mut options = Options::default();
    options.backoff.base_ms = 600_000;
    options.backoff.jitter = 0.2;
    let runs: Vec<Run> = (0..1_000)
        .map(|number| Run::running("worker:web-01:4711:c0ffee", LEASE).uuid(&uuid(number)))
        .collect();
    let uids = database.insert_all(&runs);
    let mut subject = Subject::with(&database, options);
    for &uid in &uids {
        let recovery = recover_waking(&mut subject, uid, Some(&template())).unwrap();
        let Recovery::Requeued { requeue_count: 1, delay_ms, woken_up: true, confirmed: false } =
            recovery
        else {
            panic!("{recovery:?}")
        };
        assert!((600_000..=720_000).contains(&delay_ms), "{delay_ms}");
    }
    let mut by_second: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    let mut buckets: BTreeMap<i64, usize> = BTreeMap::new();
    for message in messages(&mut database) {
        let delay = message.available - NOW;
        assert!((600..=720).contains(&delay), "{message:?}");
        *buckets.entry(delay / 2).or_default() += 1;
        by_second.entry(message.available).or_default().push(message.uuid);
    }
    assert_eq!(by_second.values().map(Vec::len).sum::<usize>(), 1_000);
    let fullest = buckets.values().max().unwrap();
    assert!(*fullest <= 40, "a bucket of two seconds holds {fullest} of 1 000");
    // The table alone says the same, second by second.
    let mut expected: Vec<String> = Vec::new();
    for now in NOW..=NOW + 721 {
        expected.extend(by_second.remove(&now).unwrap_or_default());
        expected.sort();
        let mut due: Vec<String> =
            due_at(&mut subject, 2_000, now).into_iter().map(|run| run.uuid).collect();
        due.sort();
        assert_eq!(due, expected, "at {} s", now - NOW);
    }
    assert_eq!(expected.len(), 1_000);
}

#[test]
fn p13_server_and_caller_compute_the_same_delay_for_any_count_and_any_share() {
    let mut database = Database::new();
    let counts = [1, 2, 3, 5, 6, 40, 41, 42, 64, 65, 2_000, u32::MAX - 1, u32::MAX];
    let runs: Vec<Run> = (0..400)
        .map(|number| {
            Run::queued()
                .uuid(&uuid(number))
                .requeued(u64::from(counts[usize::try_from(number).unwrap() % counts.len()]))
                .tstamp(NOW)
        })
        .collect();
    database.insert_all(&runs);
    let rows = database.all();
    for (base_ms, cap_ms) in [
        (30_000, 600_000),
        (1, 2_592_000_000),
        (7, 7),
        (2_592_000_000, 2_592_000_000),
        (0, 5),
        (1_500, 0),
    ] {
        for jitter in [0.0, 1e-9, 0.1, 0.2, 1.0 / 3.0, 0.999_999, 1.0] {
            let mut options = Options::default();
            (options.backoff.base_ms, options.backoff.cap_ms, options.backoff.jitter) =
                (base_ms, cap_ms, jitter);
            let backoff = options.backoff;
            let mut subject = Subject::with(&database, options);
            let delay = |row: &crate::support::database::RunRow| {
                let text = |column: &str| String::from_utf8(row[column].clone().unwrap()).unwrap();
                backoff.delay_ms(text("uuid").as_bytes(), text("requeue_count").parse().unwrap())
            };
            let mut seconds: Vec<u64> = rows.iter().map(|row| delay(row).div_ceil(1_000)).collect();
            seconds.sort_unstable();
            let some: Vec<u64> = [0, 1, 100, 200, 300, 399].map(|index| seconds[index]).to_vec();
            for second in some {
                for now in [second.saturating_sub(1), second] {
                    let due = due_at(&mut subject, 1_000, NOW + i64::try_from(now).unwrap()).len();
                    let expected = seconds.iter().filter(|&&due| due <= now).count();
                    assert_eq!(
                        due, expected,
                        "base {base_ms}, cap {cap_ms}, jitter {jitter}, {now} s"
                    );
                }
            }
        }
    }
}

#[test]
fn p13_who_is_due_and_in_which_order() {
    for queued_at in [false, true] {
        let mut database = Database::with(&if queued_at {
            Shape::default().queued_at()
        } else {
            Shape::default()
        });
        let mut subject = Subject::on(&database);
        let first = database.insert(&Run::queued().crdate(NOW - 50).tstamp(NOW - 40));
        let third = database.insert(&Run::queued().crdate(NOW - 30).tstamp(NOW));
        let second = database.insert(&Run::queued().crdate(NOW - 40).tstamp(NOW - 30).requeued(1));
        let fourth = database.insert(&Run::queued().crdate(NOW - 30).tstamp(NOW));
        // Not these: not due yet, without a request, not queued, of tomorrow.
        database.insert(&Run::queued().crdate(1).tstamp(NOW - 29).requeued(1));
        database.insert(&Run::queued().crdate(1).tstamp(NOW - 59).requeued(2));
        database.insert(&Run::queued().crdate(1).without_request());
        database.insert(&Run::queued().crdate(1).request(""));
        database.insert(&Run::queued().crdate(1).tstamp(NOW + 1));
        for status in [
            "running",
            "waiting_for_approval",
            "waiting_for_input",
            "completed",
            "failed",
            "cancelled",
            "queued_for_review",
        ] {
            database.insert(&Run::in_status(status).crdate(1));
        }
        let before = database.all();
        assert_eq!(due_uids(&mut subject, 10, NOW), [first, second, third, fourth]);
        assert_eq!(due_uids(&mut subject, 3, NOW), [first, second, third]);
        assert_eq!(
            due_at(&mut subject, 2, NOW),
            [(first, 0, 40), (second, 1, 30)].map(|(uid, requeue_count, queued_seconds)| DueRun {
                uid: uid as u64,
                uuid: database.get(uid, "uuid"),
                requeue_count,
                queued_seconds
            })
        );
        assert_eq!(due_uids(&mut subject, 10, 0), Vec::<i64>::new());
        assert_eq!(due_uids(&mut subject, 10, 4_294_967_295).len(), 7);
        assert_eq!(database.all(), before, "nothing is written");
        if queued_at {
            // The later column counts where it is known: a sweep that marked the run does not put it off.
            database.set(second, "queued_at", NOW - 40);
            database.set(second, "tstamp", NOW);
            database.set(third, "queued_at", NOW + 5);
            assert_eq!(due_uids(&mut subject, 10, NOW), [first, second, fourth]);
            assert_eq!(due_at(&mut subject, 2, NOW)[1].queued_seconds, 40);
        }
    }
}

#[test]
fn p13_runs_that_are_not_due_yet_hide_no_due_one_and_cost_no_payload() {
    let mut database = Database::new();
    // Older and not due: ten thousand, with a megabyte each in the first hundred.
    let mut runs: Vec<Run> =
        (0..10_000).map(|number| Run::queued().crdate(number).tstamp(NOW).requeued(3)).collect();
    let payload = "x".repeat(1 << 20);
    for run in runs.iter_mut().take(100) {
        *run = run.clone().request(&payload);
    }
    database.insert_all(&runs);
    let due: Vec<i64> = (0..3)
        .map(|number| database.insert(&Run::queued().crdate(20_000 + number).tstamp(NOW)))
        .collect();
    let without: Vec<Run> = (0..50)
        .map(|number| Run::queued().crdate(10_000 + number).tstamp(NOW).without_request())
        .collect();
    database.insert_all(&without);
    let proxy = Proxy::start(database.endpoint());
    let mut subject = Subject::through(&proxy, &database);
    assert_eq!(due_uids(&mut subject, 2, NOW), due[..2]);
    let statements: Vec<String> = proxy
        .log()
        .iter()
        .filter(|exchange| exchange.command.sql.contains(RUNS))
        .map(|e| e.command.sql.clone())
        .collect();
    let [sql] = statements.as_slice() else { panic!("one query: {statements:?}") };
    assert!(!sql.contains("UPDATE") && !sql.contains("LOCK"), "{sql}");
    // By the key over (status, crdate), so in order, and the payload of a due run alone is touched. (The plan is MariaDB's.)
    let plan = database.client().maps(&format!("EXPLAIN FORMAT=TRADITIONAL {sql}"));
    let column = |row: usize, name: &str| {
        String::from_utf8_lossy(plan[row][name].as_deref().unwrap_or_default()).into_owned()
    };
    assert_eq!(column(plan.len() - 1, "key"), "PRIMARY", "{plan:?}");
    if shared().is_mariadb() {
        assert_eq!((plan.len(), column(0, "key").as_str()), (2, "status_lookup"), "{plan:?}");
        assert!(
            !column(0, "Extra").contains("filesort") && !column(0, "Extra").contains("temporary"),
            "{plan:?}"
        );
    }
}

#[test]
fn p06_due_runs_wait_for_no_lock() {
    let mut database = Database::new();
    let uid = database.insert(&Run::queued().tstamp(NOW));
    let mut peer = Peer::of(&database);
    peer.hold(uid);
    let mut subject = Subject::limits(database.endpoint(), database.name(), 3_000, 2_000);
    assert_eq!(due_uids(&mut subject, 5, NOW), [uid]);
    // A sweep passes over a run that somebody is claiming, and goes on behind it.
    let next = database.insert(&Run::queued().tstamp(NOW - 10).crdate(2_000));
    subject.time = NOW + 120;
    assert_eq!(swept_uids(&sweep(&mut subject, 60, 1, None).unwrap()), [next]);
    peer.let_go();
    assert_eq!(swept_uids(&sweep(&mut subject, 60, 1, None).unwrap()), [uid]);
}

#[test]
fn p13_a_sweep_claims_each_stranded_run_once_within_the_time() {
    for queued_at in [false, true] {
        let mut database = Database::with(&if queued_at {
            Shape::default().queued_at()
        } else {
            Shape::default()
        });
        let mut subject = Subject::on(&database);
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
        let swept = sweep(&mut subject, 300, 2, None).unwrap();
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
        assert_eq!(swept_uids(&sweep(&mut subject, 300, 50, None).unwrap()), [third]);
        assert_eq!(sweep(&mut subject, 300, 50, None).unwrap(), []);
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
        // Still nobody took them: they are told again when the time is over once more.
        subject.time = NOW + 300;
        let again = swept_uids(&sweep(&mut subject, 300, 50, None).unwrap());
        assert!(
            !again.contains(&first) && !again.contains(&second) && !again.contains(&third),
            "{again:?}"
        );
        subject.time = NOW + 331;
        assert_eq!(
            swept_uids(&sweep(&mut subject, 300, 50, None).unwrap()),
            [first, second, third]
        );
        assert_eq!(messages(&mut database), []);
    }
}

#[test]
fn p13_the_time_that_judges_is_the_time_that_marks() {
    // A caller's own `now`, of the past or of the future: the second sweep at the same time finds nothing.
    for now in [5_000, NOW, 4_000_000_000] {
        for clock in [Clock::Caller, Clock::Database] {
            let mut database = Database::new();
            let options = Options { clock, ..Options::default() };
            let mut subject = Subject::with(&database, options);
            subject.time = if clock == Clock::Database {
                database.client().number("SELECT UNIX_TIMESTAMP()")
            } else {
                NOW
            };
            let uid = database.insert(&Run::queued().tstamp(now - 400));
            let at = |subject: &mut Subject, now: i64| {
                let request = stranded_runs::Request {
                    older_than_seconds: 300,
                    limit: 5,
                    now: Some(now),
                    wake_up: Some(template()),
                };
                swept_uids(
                    &subject
                        .run(async |session, context| {
                            stranded_runs::stranded_runs(session, context, &request).await
                        })
                        .unwrap(),
                )
            };
            assert_eq!(at(&mut subject, now), [uid], "{now} {clock:?}");
            assert_eq!(at(&mut subject, now), Vec::<i64>::new(), "{now} {clock:?}");
            let mark: i64 = database.get(uid, "tstamp").parse().unwrap();
            assert!((now..now + 60).contains(&mark), "{now} {clock:?}: {mark}");
            // The message does not wait for a time that is not now.
            let available = messages(&mut database)[0].available;
            assert!(
                (subject.time..subject.time + 60).contains(&available),
                "{now} {clock:?}: {available}"
            );
            assert_eq!(at(&mut subject, 0), Vec::<i64>::new(), "nothing at 0");
        }
    }
}

#[test]
fn p07_sweeps_at_once_share_the_stranded_runs() {
    let mut database = Database::new();
    for wake in [false, true, false, true] {
        let runs: Vec<i64> = (0..90)
            .map(|number| database.insert(&Run::queued().crdate(number).tstamp(NOW - 900)))
            .collect();
        let barrier = Arc::new(Barrier::new(3));
        let sweeps: Vec<_> = (0..3)
            .map(|_| {
                let (barrier, mut subject) = (Arc::clone(&barrier), Subject::on(&database));
                thread::spawn(move || {
                    barrier.wait();
                    sweep(&mut subject, 60, 90, wake.then(template)).unwrap()
                })
            })
            .collect();
        let mut told: Vec<i64> = Vec::new();
        for swept in sweeps.into_iter().map(|sweep| sweep.join().unwrap()) {
            assert!(swept.iter().all(|run| run.woken_up == wake));
            told.extend(swept_uids(&swept));
        }
        told.sort_unstable();
        assert_eq!(told, runs, "each run once");
        assert_eq!(messages(&mut database).len(), if wake { 90 } else { 0 });
        database.client().run(&format!("DELETE FROM {RUNS}"));
        database.client().run(&format!("DELETE FROM {MESSAGES}"));
    }
}

#[test]
fn p13_a_run_that_is_claimed_between_listing_and_mark_is_not_told() {
    let mut database = Database::new();
    let (taken, requeued, left) = (
        database.insert(&Run::queued().crdate(1).tstamp(NOW - 900)),
        database.insert(&Run::queued().crdate(2).tstamp(NOW - 900)),
        database.insert(&Run::queued().crdate(3).tstamp(NOW - 900)),
    );
    let proxy = Proxy::start(database.endpoint());
    let held = proxy.rule(When::statement("START TRANSACTION"), Fault::HoldRequest);
    let mut subject = Subject::through(&proxy, &database);
    let worker = thread::spawn(move || sweep(&mut subject, 60, 50, Some(template())).unwrap());
    held.wait();
    let mut peer = Peer::of(&database);
    peer.claim(taken, "worker:b", LEASE, NOW).unwrap();
    // Claimed and requeued again: queued as before, and freshly so.
    peer.claim(requeued, "worker:b", NOW - 1, NOW).unwrap();
    peer.requeue_stale(requeued, NOW).unwrap();
    let before = (database.row(taken), database.row(requeued));
    held.release();
    assert_eq!(swept_uids(&worker.join().unwrap()), [left]);
    assert_eq!((database.row(taken), database.row(requeued)), before);
    assert_eq!(messages(&mut database).len(), 1);
}

#[test]
fn p13_many_stranded_runs_are_marked_in_few_statements() {
    let mut database = Database::new();
    let runs: Vec<Run> =
        (0..1_000).map(|number| Run::queued().crdate(number).tstamp(NOW - 900)).collect();
    let uids = database.insert_all(&runs);
    let proxy = Proxy::start(database.endpoint());
    let mut subject = Subject::through(&proxy, &database);
    assert_eq!(swept_uids(&sweep(&mut subject, 60, 1_000, Some(template())).unwrap()), uids);
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
    let stranded = |subject: &mut Subject, now: i64| {
        subject
            .run(async |session, context| {
                nrllm_runtime::ops::status::status(session, context, Some(now), None).await
            })
            .unwrap()
            .stranded
    };
    assert_eq!((stranded(&mut subject, NOW + 300), stranded(&mut subject, NOW + 301)), (0, 1_000));
}

#[test]
fn p09_a_sweep_goes_on_after_deadlocks_and_lost_connections() {
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
            sweep(&mut Subject::through(&proxy, &database), 60, 50, Some(template())).unwrap();
        assert_eq!((rule.hits(), swept_uids(&swept)), (1, uids), "{statement} {fault:?}");
        assert_eq!(messages(&mut database).len(), 4, "{statement} {fault:?}");
        database.client().run(&format!("DELETE FROM {RUNS}"));
        database.client().run(&format!("DELETE FROM {MESSAGES}"));
    }
}

#[test]
fn p14_what_was_claimed_before_an_error_is_told() {
    let mut database = Database::new();
    let runs: Vec<Run> =
        (0..400).map(|number| Run::queued().crdate(number).tstamp(NOW - 900)).collect();
    let uids = database.insert_all(&runs);
    let proxy = Proxy::start(database.endpoint());
    proxy.rule(When::statement("UPDATE `").nth(2), Fault::Refuse(1142));
    let swept = sweep(&mut Subject::through(&proxy, &database), 60, 1_000, None).unwrap();
    assert_eq!(
        swept_uids(&swept),
        uids[..300],
        "the first chunk, whose waking the caller has to do"
    );
    proxy.rule(When::statement("UPDATE `"), Fault::Refuse(1142));
    error_of(Kind::Query, sweep(&mut Subject::through(&proxy, &database), 60, 1_000, None));
    assert_eq!(
        swept_uids(&sweep(&mut Subject::on(&database), 60, 1_000, None).unwrap()),
        uids[300..]
    );
}

#[test]
fn p06_a_sweep_works_where_the_binary_log_holds_statements() {
    let server = Server::start(&["--log-bin", "--binlog-format=STATEMENT", "--server-id=1"]);
    let mut database = Database::on(&server, &Shape::default());
    let runs: Vec<Run> =
        (0..120).map(|number| Run::queued().crdate(number).tstamp(NOW - 900)).collect();
    let uids = database.insert_all(&runs);
    let stale: Vec<Run> = (0..120).map(|_| Run::running("worker:a", NOW - 1)).collect();
    let stale = database.insert_all(&stale);
    let mut subject = Subject::on(&database);
    assert_eq!(swept_uids(&sweep(&mut subject, 60, 1_000, Some(template())).unwrap()), uids);
    let report = subject
        .reap(&nrllm_runtime::ops::reap::Request {
            wake_up: Some(template()),
            ..crate::subject::request(500)
        })
        .unwrap();
    assert_eq!(report.requeued.len(), stale.len());
    assert_eq!(messages(&mut database).len(), 240);
}

#[test]
fn a_table_without_the_counter_is_named() {
    let mut database = Database::with(&Shape::default().without("requeue_count"));
    database.insert(&Run::queued().unset("requeue_count"));
    let mut subject = Subject::on(&database);
    let told = error_of(Kind::Configuration, sweep(&mut subject, 60, 5, None));
    assert!(told.message.contains("requeue_count"), "{told:?}");
    let told = error_of(
        Kind::Configuration,
        subject.run(async |session, context| due_runs::due_runs(session, context, 5, None).await),
    );
    assert!(told.message.contains("requeue_count"), "{told:?}");
}
