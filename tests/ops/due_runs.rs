//! `dueRuns()`: when a queued run is due, computed from its row alone, jitter included (rules 6 and
//! 13).

use std::collections::BTreeMap;

use nrllm_runtime::config::options::Options;
use nrllm_runtime::ops::due_runs::{self, DueRun};
use nrllm_runtime::ops::recover_failure::Recovery;

use crate::support::database::{Database, RUNS, Run, Shape};
use crate::support::harness::{Harness, LEASE, NOW};
use crate::support::legacy_php_worker::LegacyPhpWorker;
use crate::support::proxy::Proxy;
use crate::support::server::shared;
use crate::support::wake_up::{messages, recover_with_wake_up, sweep, swept_uids, template, uuid};

fn due_at(harness: &mut Harness, limit: u64, now: i64) -> Vec<DueRun> {
    harness
        .run(async |session, context| due_runs::due_runs(session, context, limit, Some(now)).await)
        .unwrap()
}

fn due_uids(harness: &mut Harness, limit: u64, now: i64) -> Vec<i64> {
    due_at(harness, limit, now).iter().map(|run| i64::try_from(run.uid).unwrap()).collect()
}

#[test]
fn p13_jitter_spreads_a_thousand_failures() {
    let mut database = Database::with(&Shape::default().queued_at());
    let mut options = Options::default();
    options.backoff.base_ms = 600_000;
    options.backoff.jitter = 0.2;
    let runs: Vec<Run> = (0..1_000)
        .map(|number| Run::running("worker:web-01:4711:c0ffee", LEASE).uuid(&uuid(number)))
        .collect();
    let uids = database.insert_all(&runs);
    let mut harness = Harness::with(&database, options);
    for &uid in &uids {
        let recovery = recover_with_wake_up(&mut harness, uid, Some(&template())).unwrap();
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
    // The table alone gives the same result, second by second.
    let mut expected: Vec<String> = Vec::new();
    for now in NOW..=NOW + 721 {
        expected.extend(by_second.remove(&now).unwrap_or_default());
        expected.sort();
        let mut due: Vec<String> =
            due_at(&mut harness, 2_000, now).into_iter().map(|run| run.uuid).collect();
        due.sort();
        assert_eq!(due, expected, "at {} s", now - NOW);
    }
    assert_eq!(expected.len(), 1_000);
}

#[test]
fn p13_sql_and_rust_compute_the_same_delay() {
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
            let mut harness = Harness::with(&database, options);
            let delay = |row: &crate::support::database::RunRow| {
                let text = |column: &str| String::from_utf8(row[column].clone().unwrap()).unwrap();
                backoff.delay_ms(text("uuid").as_bytes(), text("requeue_count").parse().unwrap())
            };
            let mut seconds: Vec<u64> = rows.iter().map(|row| delay(row).div_ceil(1_000)).collect();
            seconds.sort_unstable();
            let some: Vec<u64> = [0, 1, 100, 200, 300, 399].map(|index| seconds[index]).to_vec();
            for second in some {
                for now in [second.saturating_sub(1), second] {
                    let due = due_at(&mut harness, 1_000, NOW + i64::try_from(now).unwrap()).len();
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
fn p13_due_runs_in_order() {
    for queued_at in [false, true] {
        let mut database = Database::with(&if queued_at {
            Shape::default().queued_at()
        } else {
            Shape::default()
        });
        let mut harness = Harness::on(&database);
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
        assert_eq!(due_uids(&mut harness, 10, NOW), [first, second, third, fourth]);
        assert_eq!(due_uids(&mut harness, 3, NOW), [first, second, third]);
        assert_eq!(
            due_at(&mut harness, 2, NOW),
            [(first, 0, 40), (second, 1, 30)].map(|(uid, requeue_count, queued_seconds)| DueRun {
                uid: uid as u64,
                uuid: database.get(uid, "uuid"),
                requeue_count,
                queued_seconds
            })
        );
        assert_eq!(due_uids(&mut harness, 10, 0), Vec::<i64>::new());
        assert_eq!(due_uids(&mut harness, 10, 4_294_967_295).len(), 7);
        assert_eq!(database.all(), before, "nothing is written");
        if queued_at {
            // The later column counts where it is known: a sweep that marked the run does not put
            // it off.
            database.set(second, "queued_at", NOW - 40);
            database.set(second, "tstamp", NOW);
            database.set(third, "queued_at", NOW + 5);
            assert_eq!(due_uids(&mut harness, 10, NOW), [first, second, fourth]);
            assert_eq!(due_at(&mut harness, 2, NOW)[1].queued_seconds, 40);
        }
    }
}

#[test]
fn p13_due_runs_are_listed_behind_runs_not_due() {
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
    let mut harness = Harness::through(&proxy, &database);
    assert_eq!(due_uids(&mut harness, 2, NOW), due[..2]);
    let statements: Vec<String> = proxy
        .log()
        .iter()
        .filter(|exchange| exchange.command.sql.contains(RUNS))
        .map(|e| e.command.sql.clone())
        .collect();
    let [sql] = statements.as_slice() else { panic!("one query: {statements:?}") };
    assert!(!sql.contains("UPDATE") && !sql.contains("LOCK"), "{sql}");
    // By the key over (status, crdate), so in order, and the payload of a due run alone is touched.
    // (The plan is MariaDB's.)
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
fn p06_due_runs_do_not_wait_for_locks() {
    let mut database = Database::new();
    let uid = database.insert(&Run::queued().tstamp(NOW));
    let mut php_worker = LegacyPhpWorker::of(&database);
    php_worker.lock_row(uid);
    let mut harness = Harness::limits(database.endpoint(), database.name(), 3_000, 2_000);
    assert_eq!(due_uids(&mut harness, 5, NOW), [uid]);
    // A sweep skips a run that another transaction locks, and continues with the next.
    let next = database.insert(&Run::queued().tstamp(NOW - 10).crdate(2_000));
    harness.time = NOW + 120;
    assert_eq!(swept_uids(&sweep(&mut harness, 60, 1, None).unwrap()), [next]);
    php_worker.unlock();
    assert_eq!(swept_uids(&sweep(&mut harness, 60, 1, None).unwrap()), [uid]);
}
