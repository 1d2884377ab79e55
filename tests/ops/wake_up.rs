//! The option `wakeUp`: messages in the transaction of the requeue (rule 13), and reports after a
//! lost reply (rule 14).

use std::collections::BTreeMap;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Instant;

use nrllm_runtime::config::options::{Clock, Options};
use nrllm_runtime::config::requests::{ReapRequest, WakeUp};
use nrllm_runtime::domain::status::Reason;
use nrllm_runtime::error::{Kind, Result};
use nrllm_runtime::ops::recover_failure::Recovery;
use nrllm_runtime::ops::{due_runs, status};

use crate::support::client::Client;
use crate::support::database::{Database, MESSAGES, RUNS, Run, Shape};
use crate::support::harness::{
    Harness, LEASE, NOW, OWNER, error_of, reasons, request, settings, uids,
};
use crate::support::legacy_php_worker::LegacyPhpWorker;
use crate::support::proxy::{Fault, Kind as Command, Proxy, Welcome, When};
use crate::support::server::Server;
use crate::support::wake_up::{
    BODY, Message, PLACEHOLDER, commit, messages, reap_with_wake_up, recover_with_wake_up, sweep,
    table, template,
};

fn stale(crdate: i64) -> Run {
    Run::running("worker:gone:1:dead", NOW - 10).crdate(crdate)
}

#[test]
fn p13_reap_writes_one_message_per_requeue() {
    for collation in
        ["utf8mb4_unicode_ci", "utf8mb4_bin", "utf8mb3_general_ci", "latin1_swedish_ci"]
    {
        let mut database = Database::with(&Shape::default().collation(collation).queued_at());
        let requeued: Vec<i64> = (0..20).map(|number| database.insert(&stale(number))).collect();
        let ended = [
            database.insert(&stale(1).requeued(3)),
            database.insert(&stale(1).write_fence("non_idempotent_write")),
            database.insert(&stale(1).without_request()),
        ];
        let live = database.insert(&Run::running(OWNER, LEASE));
        let queued = database.insert(&Run::queued());
        let mut harness = Harness::on(&database);
        let report = harness.reap(&reap_with_wake_up(50)).unwrap();
        assert_eq!(uids(&report.requeued), requeued, "{collation}");
        assert!(report.requeued.iter().all(|entry| entry.woken_up && !entry.confirmed));
        assert_eq!(uids(&report.dead_lettered), ended);
        assert!(report.dead_lettered.iter().all(|entry| !entry.woken_up));
        let expected: Vec<Message> = requeued
            .iter()
            .map(|&uid| Message { uuid: database.get(uid, "uuid"), created: NOW, available: NOW })
            .collect();
        assert_eq!(messages(&mut database), expected);
        assert_eq!(
            (database.get(live, "status").as_str(), database.get(queued, "status").as_str()),
            ("running", "queued")
        );

        // A dry run and a tick without anything to do write none.
        database.insert(&stale(1));
        assert_eq!(
            harness
                .reap(&ReapRequest { dry_run: true, ..reap_with_wake_up(50) })
                .unwrap()
                .requeued
                .len(),
            1
        );
        assert_eq!(messages(&mut database).len(), 20);
        assert_eq!(harness.reap(&reap_with_wake_up(50)).unwrap().requeued.len(), 1);
        assert_eq!(harness.reap(&reap_with_wake_up(50)).unwrap().requeued.len(), 0);
        assert_eq!(messages(&mut database).len(), 21);
    }
}

#[test]
fn p13_recovery_message_is_available_when_the_run_is_due() {
    for (base_ms, count, delay_ms, seconds) in [
        (30_000, 0, 30_000, 30),
        (30_000, 2, 120_000, 120),
        (1_500, 0, 1_500, 2),
        (1_001, 0, 1_001, 2),
        (1, 0, 1, 1),
        (0, 0, 0, 0),
    ] {
        let mut database = Database::new();
        let uid = database.insert(&Run::running(OWNER, LEASE).requeued(count));
        let mut options = Options::default();
        options.backoff.base_ms = base_ms;
        let mut harness = Harness::with(&database, options);
        let recovery = recover_with_wake_up(&mut harness, uid, Some(&template())).unwrap();
        let requeue_count = u32::try_from(count + 1).unwrap();
        assert_eq!(
            recovery,
            Recovery::Requeued { requeue_count, delay_ms, woken_up: true, confirmed: false }
        );
        let uuid = database.get(uid, "uuid");
        assert_eq!(
            messages(&mut database),
            [Message { uuid, created: NOW, available: NOW + seconds }]
        );
        let due = |harness: &mut Harness, now: i64| {
            harness
                .run(async |session, context| {
                    nrllm_runtime::ops::due_runs::due_runs(session, context, 5, Some(now)).await
                })
                .unwrap()
                .len()
        };
        assert_eq!(
            (due(&mut harness, NOW + seconds - 1), due(&mut harness, NOW + seconds)),
            (0, 1),
            "{base_ms} {count}"
        );
    }
}

#[test]
fn p13_dead_letter_and_lost_lease_write_no_message() {
    let mut database = Database::new();
    let mut harness = Harness::on(&database);
    let spent = database.insert(&Run::running(OWNER, LEASE).requeued(3));
    let recovery = recover_with_wake_up(&mut harness, spent, Some(&template())).unwrap();
    assert_eq!(
        recovery,
        Recovery::DeadLettered {
            reason: Reason::RetriesExhausted,
            requeue_count: 3,
            confirmed: false
        }
    );
    let other = database.insert(&Run::running("worker:other:1", LEASE));
    assert_eq!(
        recover_with_wake_up(&mut harness, other, Some(&template())).unwrap(),
        Recovery::LeaseLost
    );
    assert_eq!(messages(&mut database), []);
    // Without a template no message is written either, and that is reported.
    let mine = database.insert(&Run::running(OWNER, LEASE));
    let recovery = recover_with_wake_up(&mut harness, mine, None).unwrap();
    assert_eq!(
        recovery,
        Recovery::Requeued {
            requeue_count: 1,
            delay_ms: 30_000,
            woken_up: false,
            confirmed: false
        }
    );
    assert_eq!(messages(&mut database), []);
}

/// All three operations with this template, on runs that they would write; the error of each.
fn refusals(
    database: &mut Database,
    options: &Options,
    dbname: &str,
    wake_up: &WakeUp,
) -> Vec<String> {
    let runs = [
        database.insert(&stale(1)),
        database.insert(&Run::running(OWNER, LEASE)),
        database.insert(&Run::queued()),
    ];
    let before: Vec<_> = runs.iter().map(|&uid| database.row(uid)).collect();
    let mut harness = Harness::of(settings(database.endpoint(), dbname), options.clone());
    let reap = harness.reap(&ReapRequest { wake_up: Some(wake_up.clone()), ..request(5) });
    let recovered = recover_with_wake_up(&mut harness, runs[1], Some(wake_up));
    let swept = sweep(&mut harness, 60, 5, Some(wake_up.clone()));
    let reported = vec![
        error_of(Kind::Configuration, reap).message,
        error_of(Kind::Configuration, recovered).message,
        error_of(Kind::Configuration, swept).message,
    ];
    let after: Vec<_> = runs.iter().map(|&uid| database.row(uid)).collect();
    assert_eq!(after, before, "nothing was written");
    database.client().run(&format!("DELETE FROM {RUNS}"));
    reported
}

#[test]
fn p13_setup_without_one_transaction_is_refused() {
    let mut database = Database::new();
    let here = database.name().to_owned();
    let client = database.client();
    client.run(&format!("CREATE TABLE unsafe_messages LIKE {MESSAGES}"));
    client.run("ALTER TABLE unsafe_messages ENGINE = MyISAM");
    client.run(&format!("CREATE TABLE short_messages LIKE {MESSAGES}"));
    client.run("ALTER TABLE short_messages DROP COLUMN available_at, DROP COLUMN headers");
    client.run(&format!("CREATE VIEW view_messages AS SELECT * FROM {MESSAGES}"));
    client.run(&format!("CREATE DATABASE {here}_other"));
    client.run(&format!("CREATE TABLE {here}_other.{MESSAGES} LIKE {MESSAGES}"));
    client.run(&format!("CREATE TABLE unsafe_runs LIKE {RUNS}"));
    client.run("ALTER TABLE unsafe_runs ENGINE = MyISAM");

    let with = |name: &str| WakeUp { table: table(name), ..template() };
    let default = Options::default();
    for (wake_up, parts) in [
        (with("no_such_table"), vec!["the table `no_such_table` does not exist"]),
        (
            with("no_such_database.sys_messenger_messages"),
            vec!["does not exist", "no_such_database"],
        ),
        (
            with("short_messages"),
            vec!["lacks the columns headers, available_at", "`short_messages`"],
        ),
        (with(&format!("{here}_other.{MESSAGES}")), vec!["own database", here.as_str()]),
        (with("unsafe_messages"), vec!["MyISAM", "transactions"]),
        (with("view_messages"), vec!["VIEW", "transactions"]),
    ] {
        for message in refusals(&mut database, &default, &here, &wake_up) {
            assert!(
                message.contains("wakeUp") && parts.iter().all(|part| message.contains(part)),
                "{message}"
            );
        }
    }

    // The runs are in another database than the connection's, where an unqualified message table
    // would be looked for.
    let qualified = Options { table: table(&format!("{here}.{RUNS}")), ..Options::default() };
    for message in refusals(&mut database, &qualified, &format!("{here}_other"), &template()) {
        assert!(message.contains("own database"), "{message}");
    }
    // No database is chosen at all.
    for message in refusals(&mut database, &qualified, "", &template()) {
        assert!(message.contains("names no database"), "{message}");
    }
    // The run table itself has no transactions.
    let unsafe_runs = Options { table: table("unsafe_runs"), ..Options::default() };
    for message in refusals(&mut database, &unsafe_runs, &here, &template()) {
        assert!(message.contains("`unsafe_runs` is MyISAM"), "{message}");
    }

    // What is right in another spelling works.
    for (options, dbname, wake_up) in [
        (&default, here.as_str(), with(&format!("{here}.{MESSAGES}"))),
        (&qualified, here.as_str(), template()),
        (&qualified, "", with(&format!("{here}.{MESSAGES}"))),
    ] {
        let uid = database.insert(&stale(1));
        let mut harness = Harness::of(settings(database.endpoint(), dbname), options.clone());
        let report = harness.reap(&ReapRequest { wake_up: Some(wake_up), ..request(5) }).unwrap();
        assert_eq!((uids(&report.requeued), report.requeued[0].woken_up), (vec![uid], true));
    }
    assert_eq!(messages(&mut database).len(), 3);
    database.client().run(&format!("DROP DATABASE {here}_other"));
}

#[test]
fn p13_renamed_message_table_is_looked_up_again() {
    let mut database = Database::new();
    let mut harness = Harness::on(&database);
    database.insert(&stale(1));
    assert_eq!(harness.reap(&reap_with_wake_up(5)).unwrap().requeued.len(), 1);
    let uid = database.insert(&stale(1));
    let before = database.row(uid);
    database.client().run(&format!("RENAME TABLE {MESSAGES} TO away"));
    error_of(Kind::Configuration, harness.reap(&reap_with_wake_up(5)));
    let reported = error_of(Kind::Configuration, harness.reap(&reap_with_wake_up(5)));
    assert!(reported.message.contains("wakeUp['table']"), "{reported:?}");
    assert_eq!(database.row(uid), before);
    database.client().run(&format!("RENAME TABLE away TO {MESSAGES}"));
    assert_eq!(uids(&harness.reap(&reap_with_wake_up(5)).unwrap().requeued), [uid]);
    assert_eq!(messages(&mut database).len(), 2);
}

#[test]
fn p13_run_with_an_unfit_uuid_stops_no_other() {
    let odd = [
        "",
        "short",
        "0e12362e-cbf0-4052-a2e9-f3c849a50b\u{e9}x",
        "0e12362e-cbf0-4052-a2e9-f3c849a50bc\"",
        "0e12362e-cbf0-4052-a2e9-f3c849a50bc\\",
    ];
    let mut database = Database::new();
    let mut harness = Harness::on(&database);
    let left: Vec<i64> = odd.iter().map(|uuid| database.insert(&stale(1).uuid(uuid))).collect();
    let spent = database.insert(&stale(2).uuid("spent").requeued(3));
    let good = database.insert(&stale(3));
    let before: Vec<_> = left.iter().map(|&uid| database.row(uid)).collect();
    for dry_run in [true, false] {
        let report = harness.reap(&ReapRequest { dry_run, ..reap_with_wake_up(2) }).unwrap();
        assert_eq!(
            (uids(&report.skipped), reasons(&report.skipped)),
            (left.clone(), vec!["unwakeable"; 5]),
            "dry run: {dry_run}"
        );
        assert_eq!(
            (uids(&report.requeued), uids(&report.dead_lettered)),
            (vec![good], vec![spent]),
            "dry run: {dry_run}"
        );
    }
    assert_eq!(left.iter().map(|&uid| database.row(uid)).collect::<Vec<_>>(), before);
    assert_eq!(messages(&mut database).len(), 1);
    // Without a message every uuid fits.
    assert_eq!(uids(&harness.reap(&request(10)).unwrap().requeued), left);

    let mine = database.insert(&Run::running(OWNER, LEASE).uuid("short too"));
    let before = database.row(mine);
    let reported =
        error_of(Kind::Configuration, recover_with_wake_up(&mut harness, mine, Some(&template())));
    assert!(
        reported.message.contains("'short too'")
            && reported.message.contains("nothing was written"),
        "{reported:?}"
    );
    assert_eq!(database.row(mine), before);
    assert!(matches!(
        recover_with_wake_up(&mut harness, mine, None).unwrap(),
        Recovery::Requeued { woken_up: false, .. }
    ));

    // The sweep with messages leaves them to one without, and they hide no other run from it.
    harness.time = NOW + 3_600;
    let swept = sweep(&mut harness, 60, 1, Some(template())).unwrap();
    assert_eq!(
        swept.iter().map(|run| (run.uid, run.woken_up)).collect::<Vec<_>>(),
        [(good as u64, true)]
    );
    assert_eq!(sweep(&mut harness, 60, 50, Some(template())).unwrap(), []);
    assert_eq!(sweep(&mut harness, 60, 50, None).unwrap().len(), 6);
}

#[test]
fn p23_message_uses_the_database_clock_in_any_time_zone() {
    let server = Server::start(&["--default-time-zone=+05:30"]);
    let mut database = Database::on(&server, &Shape::default());
    let options = Options { clock: Clock::Database, ..Options::default() };
    let mut harness = Harness::with(&database, options);
    // The caller's clock is years behind.
    let (failed, stale) =
        (database.insert(&Run::running(OWNER, LEASE)), database.insert(&stale(1)));
    let began = database.client().number("SELECT UNIX_TIMESTAMP()");
    recover_with_wake_up(&mut harness, failed, Some(&template())).unwrap();
    harness
        .reap(&ReapRequest {
            now: Some(NOW),
            only: Some(vec![stale as u64]),
            ..reap_with_wake_up(5)
        })
        .unwrap();
    let ended = database.client().number("SELECT UNIX_TIMESTAMP()");
    let requeued: i64 = database.get(failed, "tstamp").parse().unwrap();
    let found = messages(&mut database);
    assert!((began..=ended).contains(&requeued), "{began} {requeued} {ended}");
    assert_eq!((found[0].created, found[0].available), (requeued, requeued + 30));
    assert!((began..=ended).contains(&found[1].available), "{found:?}");
    // And by the caller's where that is asked for, whatever the server's zone.
    let uid = database.insert(&Run::running(OWNER, LEASE));
    recover_with_wake_up(&mut Harness::on(&database), uid, Some(&template())).unwrap();
    assert_eq!(messages(&mut database)[2].available, NOW + 30);
}

#[test]
fn p09_deadlock_at_the_message_repeats_the_chunk() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    for code in [1213, 1020] {
        let runs: Vec<i64> = (0..5).map(|_| database.insert(&stale(1))).collect();
        let before = messages(&mut database).len();
        let rule = proxy.rule(
            When::statement(&format!("INSERT INTO `{MESSAGES}`")).times(2),
            Fault::Refuse(code),
        );
        let report = harness.reap(&reap_with_wake_up(50)).unwrap();
        assert_eq!((rule.hits(), uids(&report.requeued)), (2, runs));
        assert!(report.requeued.iter().all(|entry| entry.woken_up && entry.requeue_count == 1));
        assert_eq!(messages(&mut database).len(), before + 5);

        let uid = database.insert(&Run::running(OWNER, LEASE));
        proxy.rule(
            When::statement(&format!("INSERT INTO `{MESSAGES}`")).times(2),
            Fault::Refuse(code),
        );
        let recovery = recover_with_wake_up(&mut harness, uid, Some(&template())).unwrap();
        assert_eq!(
            recovery,
            Recovery::Requeued {
                requeue_count: 1,
                delay_ms: 30_000,
                woken_up: true,
                confirmed: false
            }
        );
        assert_eq!(messages(&mut database).len(), before + 6);
    }
}

/// The COMMIT of a reaper's chunk, if `refused` holds for the runs that it locked. Their number is
/// appended to `sizes` at every attempt.
fn commit_of(
    refused: impl Fn(&[i64]) -> bool + Send + 'static,
    sizes: &Arc<Mutex<Vec<usize>>>,
) -> When {
    let (locked, sizes) = (Mutex::new(Vec::new()), Arc::clone(sizes));
    When::command(move |command| {
        let mut locked = locked.lock().unwrap();
        if command.sql.ends_with(" FOR UPDATE SKIP LOCKED") {
            let list =
                command.sql.split(" IN (").nth(1).and_then(|rest| rest.split(')').next()).unwrap();
            *locked = list.split(',').map(|uid| uid.trim().parse().unwrap()).collect();
        }
        if command.sql != "COMMIT" {
            return false;
        }
        sizes.lock().unwrap().push(locked.len());
        refused(&locked)
    })
}

/// Ten stale runs of which two, the third and the last, can only be dead-lettered.
fn ten_stale_runs(database: &mut Database) -> Vec<i64> {
    (0..10)
        .map(|number| {
            let run = stale(number);
            database.insert(&match number {
                2 => run.requeued(3),
                9 => run.write_fence("non_idempotent_write"),
                _ => run,
            })
        })
        .collect()
}

/// As on Galera: the cluster certifies at the commit, answers 1213 and has rolled back by then.
#[test]
fn p09_chunk_refused_at_commit_is_halved_to_single_runs() {
    let mut database = Database::new();
    let runs = ten_stale_runs(&mut database);
    let proxy = Proxy::start(database.endpoint());
    let sizes = Arc::default();
    let refusals =
        proxy.rule(commit_of(|locked| locked.len() > 1, &sizes).always(), Fault::Refuse(1213));
    let report = Harness::through(&proxy, &database).reap(&reap_with_wake_up(50)).unwrap();

    let mut requeued = runs.clone();
    requeued.retain(|uid| ![runs[2], runs[9]].contains(uid));
    assert_eq!(
        (uids(&report.requeued), uids(&report.dead_lettered), report.skipped.len()),
        (requeued, vec![runs[2], runs[9]], 0)
    );
    assert!(
        report
            .requeued
            .iter()
            .all(|entry| entry.woken_up && entry.requeue_count == 1 && !entry.confirmed)
    );
    assert_eq!(reasons(&report.dead_lettered), ["retries_exhausted", "not_retryable"]);
    assert!(!report.has_more);
    // Five attempts of each chunk of more than one run, first half first; of each run alone one.
    let halves = [10, 5, 2, 1, 1, 3, 1, 2, 1, 1, 5, 2, 1, 1, 3, 1, 2, 1, 1];
    let expected: Vec<usize> =
        halves.into_iter().flat_map(|size| vec![size; if size == 1 { 1 } else { 5 }]).collect();
    assert_eq!((sizes.lock().unwrap().clone(), refusals.hits()), (expected, 45));
    // Every run and message once.
    let reported = "SELECT GROUP_CONCAT(CONCAT_WS(' ', status, requeue_count, claimed_by = '', lease_expires) ORDER BY uid) FROM tx_nrllm_agentrun";
    let [again, ended, forbidden] = ["queued 1 1 0", "failed 3 1 0", "failed 0 1 0"];
    let rows = [again, again, ended, again, again, again, again, again, again, forbidden].join(",");
    assert_eq!(database.client().text(reported), rows);
    let notified: Vec<String> =
        messages(&mut database).into_iter().map(|message| message.uuid).collect();
    assert_eq!(
        notified,
        report.requeued.iter().map(|entry| entry.uuid.clone()).collect::<Vec<_>>()
    );
}

#[test]
fn p09_run_refused_at_every_commit_stops_no_other() {
    let mut database = Database::new();
    let runs = ten_stale_runs(&mut database);
    let before = database.row(runs[4]);
    let proxy = Proxy::start(database.endpoint());
    let (bad, sizes) = (runs[4], Arc::default());
    let refusals = proxy
        .rule(commit_of(move |locked| locked.contains(&bad), &sizes).always(), Fault::Refuse(1213));
    let report = Harness::through(&proxy, &database).reap(&reap_with_wake_up(50)).unwrap();
    assert_eq!((uids(&report.skipped), reasons(&report.skipped)), (vec![bad], vec!["contended"]));
    assert_eq!((report.requeued.len(), report.dead_lettered.len()), (7, 2));
    assert_eq!(database.row(bad), before);
    assert_eq!(database.client().number("SELECT SUM(requeue_count) FROM tx_nrllm_agentrun"), 7 + 3);
    let notified: Vec<String> =
        messages(&mut database).into_iter().map(|message| message.uuid).collect();
    assert_eq!(
        notified,
        report.requeued.iter().map(|entry| entry.uuid.clone()).collect::<Vec<_>>()
    );
    // 10, 5, 3, 2 and 1 runs, five times each.
    assert_eq!(refusals.hits(), 25);

    // The run itself is fine: without the refusals it is requeued as the others were.
    refusals.cancel();
    let report = Harness::through(&proxy, &database).reap(&reap_with_wake_up(50)).unwrap();
    assert_eq!((uids(&report.requeued), report.requeued[0].requeue_count), (vec![bad], 1));
}

#[test]
fn p09_locked_message_table_costs_one_wait() {
    let mut database = Database::new();
    let runs: Vec<i64> = (0..60).map(|_| database.insert(&stale(1))).collect();
    let mine = database.insert(&Run::running(OWNER, LEASE));
    let before = database.all();
    let mut other = database.connect();
    other.run(&format!("LOCK TABLES {MESSAGES} WRITE"));
    let mut harness = Harness::limits(database.endpoint(), database.name(), 3_000, 1_500);
    for _ in 0..2 {
        let started = Instant::now();
        let reported = error_of(Kind::Connection, harness.reap(&reap_with_wake_up(60)));
        assert!(reported.message.contains(MESSAGES) && reported.code == 1205, "{reported:?}");
        assert!(
            started.elapsed().as_secs() < 10,
            "it was waited for once, not once per run: {:?}",
            started.elapsed()
        );
        error_of(Kind::Connection, recover_with_wake_up(&mut harness, mine, Some(&template())));
    }
    assert_eq!(database.all(), before);
    other.run("UNLOCK TABLES");
    assert_eq!(uids(&harness.reap(&reap_with_wake_up(60)).unwrap().requeued), runs);
    assert_eq!(messages(&mut database).len(), 60);
}

#[test]
fn p13_fewer_messages_than_runs_rolls_back() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let runs: Vec<i64> = (0..3).map(|_| database.insert(&stale(1))).collect();
    let before = database.all();
    let mut harness = Harness::through(&proxy, &database);
    harness.reap(&ReapRequest { dry_run: true, ..reap_with_wake_up(5) }).unwrap();
    // An OK packet for two records in place of the one for three.
    let info = b"Records: 2  Duplicates: 0  Warnings: 0";
    let mut payload = vec![0x00, 2, 1, 3, 0, 0, 0, info.len() as u8];
    payload.extend_from_slice(info);
    proxy.rule(When::statement(&format!("INSERT INTO `{MESSAGES}`")), Fault::Payload(payload));
    let reported = error_of(Kind::Connection, harness.reap(&reap_with_wake_up(5)));
    assert!(reported.message.contains("wrote 2"), "{reported:?}");
    assert_eq!(database.all(), before);
    assert_eq!(messages(&mut database), []);
    assert_eq!(uids(&harness.reap(&reap_with_wake_up(5)).unwrap().requeued), runs);
}

#[test]
fn p14_lost_commit_is_read_back_with_its_message() {
    for (fault, confirmed) in [
        (Fault::CutAfter, true),
        (Fault::CutWithin(3), true),
        (Fault::RefuseAfter(1180), true),
        (Fault::CutBefore, false),
    ] {
        let mut database = Database::new();
        let proxy = Proxy::start(database.endpoint());
        let mut harness = Harness::through(&proxy, &database);
        let runs: Vec<i64> = (0..5).map(|_| database.insert(&stale(1))).collect();
        let spent = database.insert(&stale(1).requeued(3));
        let mine = database.insert(&Run::running(OWNER, LEASE));
        let rule = proxy.rule(commit(), fault.clone());
        let report = harness.reap(&reap_with_wake_up(50)).unwrap();
        assert_eq!(
            (rule.hits(), uids(&report.requeued), uids(&report.dead_lettered)),
            (1, runs, vec![spent]),
            "{fault:?}"
        );
        assert!(
            report.requeued.iter().all(|entry| entry.woken_up && entry.confirmed == confirmed),
            "{fault:?}: {report:?}"
        );
        assert!(
            report
                .dead_lettered
                .iter()
                .all(|entry| !entry.woken_up && entry.confirmed == confirmed),
            "{fault:?}: {report:?}"
        );
        assert_eq!(messages(&mut database).len(), 5, "{fault:?}");

        proxy.rule(commit(), fault.clone());
        let recovery = recover_with_wake_up(&mut harness, mine, Some(&template())).unwrap();
        assert_eq!(
            recovery,
            Recovery::Requeued { requeue_count: 1, delay_ms: 30_000, woken_up: true, confirmed },
            "{fault:?}"
        );
        assert_eq!(messages(&mut database).len(), 6, "{fault:?}");

        harness.time = NOW + 3_600;
        proxy.rule(commit(), fault.clone());
        let swept = sweep(&mut harness, 60, 50, Some(template())).unwrap();
        assert_eq!(
            (swept.len(), swept.iter().all(|run| run.woken_up)),
            (6, true),
            "{fault:?}: {swept:?}"
        );
        assert_eq!(messages(&mut database).len(), 12, "{fault:?}");
        assert_eq!(sweep(&mut harness, 60, 50, Some(template())).unwrap(), []);
    }
}

#[test]
fn p14_refused_commit_is_an_error() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    let (stale, mine) = (database.insert(&stale(1)), database.insert(&Run::running(OWNER, LEASE)));
    let before = database.all();
    proxy.rule(commit().times(2), Fault::Refuse(1030));
    assert_eq!(error_of(Kind::Query, harness.reap(&reap_with_wake_up(5))).code, 1030);
    assert_eq!(
        error_of(Kind::Query, recover_with_wake_up(&mut harness, mine, Some(&template()))).code,
        1030
    );
    assert_eq!((database.all(), messages(&mut database)), (before, vec![]));
    // The session is left without a transaction of its own.
    assert_eq!(uids(&harness.reap(&reap_with_wake_up(5)).unwrap().requeued), [stale]);
    assert_eq!(messages(&mut database).len(), 1);
}

/// A reap whose commit loses its reply, with an act of another party before the reading back.
/// Returns whether it was confirmed, reported as notified, and whether its message is there.
fn meanwhile(fault: Fault, act: impl FnOnce(&mut Database, &[i64])) -> (bool, bool, bool) {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let runs = [database.insert(&stale(1)), database.insert(&Run::running(OWNER, NOW - 10))];
    let mut harness = Harness::through(&proxy, &database);
    // The schema of the table is cached, so that the first locking statement on the new connection
    // is the reading back.
    harness.reap(&ReapRequest { dry_run: true, ..reap_with_wake_up(5) }).unwrap();
    proxy.rule(commit(), fault);
    let held = proxy.rule(When::statement("termination_reason FROM"), Fault::HoldRequest);
    let worker = thread::spawn(move || {
        let report = harness
            .reap(&ReapRequest { only: Some(vec![runs[0] as u64]), ..reap_with_wake_up(5) })
            .unwrap();
        (report.requeued, harness)
    });
    held.wait();
    act(&mut database, &runs);
    held.release();
    let (requeued, _harness) = worker.join().unwrap();
    assert_eq!(uids(&requeued), runs[..1]);
    let pending =
        messages(&mut database).iter().any(|message| message.uuid == database.get(runs[0], "uuid"));
    (requeued[0].confirmed, requeued[0].woken_up, pending)
}

#[test]
fn p14_reported_wake_up_is_true() {
    let nothing = |_: &mut Database, _: &[i64]| {};
    assert_eq!(meanwhile(Fault::CutAfter, nothing), (true, true, true));
    assert_eq!(meanwhile(Fault::CutBefore, nothing), (false, true, true));
    // A consumer took the message, and a worker the run: it was notified, and the message is gone.
    let consumed = |database: &mut Database, runs: &[i64]| {
        database.client().run(&format!("DELETE FROM {MESSAGES}"));
        LegacyPhpWorker::of(database).claim(runs[0], "worker:b", LEASE, NOW).unwrap();
    };
    assert_eq!(meanwhile(Fault::CutAfter, consumed), (true, true, false));
    // Another reaper requeued it without a message before this commit was rolled back: it has no
    // wake-up yet.
    let requeued = |database: &mut Database, runs: &[i64]| {
        LegacyPhpWorker::of(database).requeue_stale(runs[0], NOW).unwrap();
    };
    assert_eq!(meanwhile(Fault::CutBefore, requeued), (true, false, false));
}

/// The report of a reap of three runs whose commit is lost before the server has it, while another
/// reaper without an outbox handles `theirs` of them before the rows are read back.
fn partly_handled(theirs: &[usize]) -> (Database, Vec<i64>, nrllm_runtime::ops::reap::Report) {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let runs: Vec<i64> = (0..3).map(|number| database.insert(&stale(number))).collect();
    let mut harness = Harness::through(&proxy, &database);
    harness.reap(&ReapRequest { dry_run: true, ..reap_with_wake_up(5) }).unwrap();
    proxy.rule(commit(), Fault::CutBefore);
    let held = proxy.rule(When::statement("termination_reason FROM"), Fault::HoldRequest);
    let reaping = thread::spawn(move || harness.reap(&reap_with_wake_up(5)).unwrap());
    held.wait();
    for &index in theirs {
        LegacyPhpWorker::of(&database).requeue_stale(runs[index], NOW).unwrap();
    }
    held.release();
    (database, runs, reaping.join().unwrap())
}

#[test]
fn p14_run_of_another_reaper_in_a_lost_chunk() {
    for theirs in [&[0][..], &[1], &[0, 2]] {
        let (mut database, runs, report) = partly_handled(theirs);
        let ours: Vec<i64> =
            (0..3).filter(|index| !theirs.contains(index)).map(|index| runs[index]).collect();
        assert_eq!(uids(&report.requeued), ours, "{report:?}");
        assert!(
            report.requeued.iter().all(|entry| entry.woken_up && !entry.confirmed),
            "{report:?}"
        );
        assert_eq!(reasons(&report.skipped), vec!["renewed"; theirs.len()]);
        assert_eq!(messages(&mut database).len(), ours.len(), "each with its message");
        for uid in runs {
            assert_eq!(
                (database.get(uid, "status"), database.get(uid, "requeue_count")),
                ("queued".to_owned(), "1".to_owned())
            );
        }
    }
    // All of them: the effect may be the other reaper's, so no wake-up is reported.
    let (mut database, _, report) = partly_handled(&[0, 1, 2]);
    assert!(report.requeued.iter().all(|entry| entry.confirmed && !entry.woken_up), "{report:?}");
    assert_eq!(messages(&mut database), []);
}

#[test]
fn p14_run_of_another_sweep_in_a_lost_chunk() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let runs: Vec<i64> = (0..3)
        .map(|number| database.insert(&Run::queued().crdate(number).tstamp(NOW - 900)))
        .collect();
    let mut harness = Harness::through(&proxy, &database);
    assert!(sweep(&mut harness, 900, 50, Some(template())).unwrap().is_empty());
    proxy.rule(commit(), Fault::CutBefore);
    let held = proxy.rule(When::statement("SELECT uid, tstamp FROM"), Fault::HoldRequest);
    let sweeping = thread::spawn(move || sweep(&mut harness, 60, 50, Some(template())).unwrap());
    held.wait();
    // In the same second.
    assert_eq!(sweep(&mut Harness::on(&database), 60, 1, None).unwrap().len(), 1);
    held.release();
    let swept = sweeping.join().unwrap();
    assert_eq!(swept.iter().map(|run| run.uid as i64).collect::<Vec<_>>(), runs[1..]);
    assert!(swept.iter().all(|run| run.woken_up), "{swept:?}");
    assert_eq!(messages(&mut database).len(), 2);
}

#[test]
fn p14_unknown_chunk_is_reported_after_a_handled_one() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let runs = database.insert_all(&vec![stale(1); 501]);
    let mut harness = Harness::through(&proxy, &database);
    let lost = proxy.rule(commit().nth(2), Fault::CutAfter);
    proxy.rule(When::statement("termination_reason FROM").always(), Fault::CutBefore);
    let report = harness.reap(&request(501)).unwrap();
    assert_eq!((lost.hits(), report.requeued.len(), report.has_more), (1, 500, true));
    assert_eq!(
        (uids(&report.skipped), reasons(&report.skipped)),
        (runs[500..].to_vec(), vec!["unknown"])
    );
    assert_eq!(database.get(runs[500], "status"), "queued", "as it may be");
}

#[test]
fn p21_closed_idle_connection_is_reopened_with_wake_up() {
    let mut database = Database::new();
    for (number, round) in rounds().into_iter().enumerate() {
        let proxy = Proxy::start(database.endpoint());
        let mut harness = Harness::through(&proxy, &database);
        let opened = database.insert(&Run::running(OWNER, LEASE));
        assert!(harness.renew_lease(opened, OWNER, LEASE).unwrap());
        let runs = (round.prepare)(&mut database);
        proxy.cut_all();
        let reported = (round.call)(&mut harness, &runs)
            .unwrap_or_else(|error| panic!("{}: {error}", round.name));
        assert!(
            reported.values().any(|&(done, notified)| done && notified),
            "{}: {reported:?}",
            round.name
        );
        assert_eq!(proxy.connections(), 2, "{number}: {}", round.name);
        proxy.cut_all();
        harness
            .run(async |session, context| due_runs::due_runs(session, context, 10, None).await)
            .unwrap();
        proxy.cut_all();
        harness
            .run(async |session, context| status::status(session, context, Some(NOW), None).await)
            .unwrap();
    }
}

/// One round of the fault tests: an operation with messages on runs of its own, broken at one
/// exchange.
struct Round {
    name: &'static str,
    prepare: fn(&mut Database) -> Vec<i64>,
    call: fn(&mut Harness, &[i64]) -> Result<Reported>,
}

/// The report for each run: whether it was requeued (or marked), and whether its wake-up was
/// written.
type Reported = BTreeMap<u64, (bool, bool)>;

fn reported(report: &nrllm_runtime::ops::reap::Report) -> Reported {
    let requeued = report.requeued.iter().map(|entry| (entry.uid, (true, entry.woken_up)));
    requeued.chain(report.dead_lettered.iter().map(|entry| (entry.uid, (false, false)))).collect()
}

fn rounds() -> [Round; 3] {
    [
        Round {
            name: "reap",
            prepare: |database| {
                vec![
                    database.insert(&stale(1)),
                    database.insert(&stale(2).requeued(1)),
                    database.insert(&stale(3).requeued(3)),
                    database.insert(&stale(4)),
                ]
            },
            call: |harness, _| Ok(reported(&harness.reap(&reap_with_wake_up(50))?)),
        },
        Round {
            name: "recovery",
            prepare: |database| vec![database.insert(&Run::running(OWNER, NOW - 10))],
            call: |harness, runs| {
                Ok(match recover_with_wake_up(harness, runs[0], Some(&template()))? {
                    Recovery::Requeued { woken_up, .. } => {
                        BTreeMap::from([(runs[0] as u64, (true, woken_up))])
                    }
                    other => panic!("{other:?}"),
                })
            },
        },
        Round {
            name: "sweep",
            prepare: |database| {
                (0..3)
                    .map(|number| database.insert(&Run::queued().crdate(number).tstamp(NOW - 900)))
                    .collect()
            },
            call: |harness, _| {
                Ok(sweep(harness, 60, 50, Some(template()))?
                    .into_iter()
                    .map(|run| (run.uid, (true, run.woken_up)))
                    .collect())
            },
        },
    ]
}

/// Checks the tables after the server has ended what a cut connection had begun: no run is queued
/// without a message, no message is there for a run that is not queued, no run is lost, and the
/// runs of one operation were written together or not at all.
fn check_invariants(database: &mut Database, round: &Round, runs: &[i64], why: &str) -> Vec<bool> {
    database.client().run("START TRANSACTION");
    database.client().rows(&format!("SELECT uid FROM {RUNS} FORCE INDEX (PRIMARY) FOR UPDATE"));
    database.client().run("COMMIT");
    let mut sent: BTreeMap<String, usize> = BTreeMap::new();
    for message in messages(database) {
        *sent.entry(message.uuid).or_default() += 1;
    }
    let written: Vec<bool> = runs
        .iter()
        .map(|&uid| {
            let row = database.find(uid).unwrap_or_else(|| panic!("{why}: run {uid} is lost"));
            let text = |column: &str| String::from_utf8(row[column].clone().unwrap()).unwrap();
            let messages = sent.remove(&text("uuid")).unwrap_or(0);
            match (text("status").as_str(), round.name) {
                ("running", "reap" | "recovery") => {
                    assert_eq!(
                        (messages, text("lease_expires")),
                        (0, (NOW - 10).to_string()),
                        "{why}: a message for a run that is not queued"
                    );
                    false
                }
                ("failed", "reap") => {
                    assert_eq!(
                        (messages, text("termination_reason").as_str()),
                        (0, "retries_exhausted"),
                        "{why}"
                    );
                    true
                }
                ("queued", "reap" | "recovery") => {
                    assert_eq!(messages, 1, "{why}: a queued run without its message, or with two");
                    true
                }
                ("queued", "sweep") => {
                    let marked = text("tstamp") == NOW.to_string();
                    assert_eq!(messages, usize::from(marked), "{why}: marked {marked}");
                    marked
                }
                (status, name) => panic!("{why}: a {name} left a run {status}"),
            }
        })
        .collect();
    assert!(sent.is_empty(), "{why}: messages without a run: {sent:?}");
    assert!(
        written.iter().all(|&one| one == written[0]),
        "{why}: one transaction, but {written:?}"
    );
    written
}

/// The commands of a healthy operation, session set-up included.
fn commands_of(round: &Round) -> usize {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let runs = (round.prepare)(&mut database);
    (round.call)(&mut Harness::through(&proxy, &database), &runs).unwrap();
    proxy
        .log()
        .iter()
        .filter(|exchange| {
            !matches!(exchange.command.kind, Command::CloseStatement | Command::Quit)
        })
        .count()
}

#[test]
fn p13_process_killed_at_any_statement_strands_no_run() {
    let mut database = Database::new();
    let mut played = 0;
    for round in rounds() {
        let commands = commands_of(&round);
        assert!(commands >= 8, "{} sends {commands} commands", round.name);
        for command in 1..=commands {
            for fault in [Fault::CutBefore, Fault::CutAfter, Fault::CutWithin(3)] {
                // Once as a process that is killed, with no further connection, and once as
                // a connection that is lost, with a new one.
                for killed in [true, false] {
                    let why = format!(
                        "{}, {fault:?} at command {command} of {commands}, killed: {killed}",
                        round.name
                    );
                    let proxy = Proxy::start(database.endpoint());
                    if killed {
                        proxy.welcome(Welcome::Serve, 1);
                        proxy.welcome(Welcome::Cut, 1_000);
                    }
                    let runs = (round.prepare)(&mut database);
                    let rule = proxy.rule(When::any_command().nth(command), fault.clone());
                    let outcome = (round.call)(&mut Harness::through(&proxy, &database), &runs);
                    assert_eq!(rule.hits(), 1, "{why}: the fault did not happen");
                    drop(proxy);
                    let written = check_invariants(&mut database, &round, &runs, &why);
                    match &outcome {
                        // The report and the rows agree. (A run may be skipped that the reaper's
                        // own lost transaction still locked.)
                        Ok(reported) if reported.is_empty() => {
                            assert!(!killed && !written[0], "{why}: nothing reported, {written:?}")
                        }
                        Ok(reported) => {
                            assert!(
                                written[0] && reported.len() == runs.len(),
                                "{why}: {reported:?}"
                            );
                            assert!(
                                reported.values().all(|&(requeued, woken_up)| requeued == woken_up),
                                "{why}: {reported:?}"
                            );
                        }
                        Err(error) => {
                            assert!(matches!(error.kind, Kind::Connection), "{why}: {error:?}")
                        }
                    }
                    // The next call handles what is left.
                    let mut next = Harness::on(&database);
                    match round.name {
                        "sweep" => drop(sweep(&mut next, 60, 50, Some(template())).unwrap()),
                        _ => drop(next.reap(&reap_with_wake_up(50)).unwrap()),
                    }
                    let written = check_invariants(&mut database, &round, &runs, &why);
                    assert!(written.iter().all(|&one| one), "{why}: left undone: {written:?}");
                    database.client().run(&format!("DELETE FROM {RUNS}"));
                    database.client().run(&format!("DELETE FROM {MESSAGES}"));
                    played += 1;
                }
            }
        }
    }
    println!("{played} rounds");
    assert!(played >= 200, "{played} rounds");
}

#[test]
fn p14_second_fault_while_reading_back_strands_no_run() {
    let mut database = Database::new();
    for round in rounds() {
        for first in [Fault::CutAfter, Fault::CutBefore] {
            // The commands of the second connection: its set-up, the reading back, and the second
            // attempt.
            for command in 1.. {
                let why = format!(
                    "{}, {first:?} at the commit, then at command {command} of the next connection",
                    round.name
                );
                let proxy = Proxy::start(database.endpoint());
                proxy.welcome(Welcome::Serve, 2);
                proxy.welcome(Welcome::Cut, 1_000);
                let runs = (round.prepare)(&mut database);
                proxy.rule(commit(), first.clone());
                let answered = |kind| !matches!(kind, Command::CloseStatement | Command::Quit);
                let second =
                    When::command(move |command| command.connection == 1 && answered(command.kind))
                        .nth(command);
                let rule = proxy.rule(
                    second,
                    if command % 2 == 0 { Fault::CutAfter } else { Fault::CutBefore },
                );
                let outcome = (round.call)(&mut Harness::through(&proxy, &database), &runs);
                let hits = rule.hits();
                drop(proxy);
                let written = check_invariants(&mut database, &round, &runs, &why);
                if hits > 0
                    && let Err(error) = &outcome
                {
                    assert!(error.kind == Kind::Connection, "{why}: {error:?}");
                } else {
                    let reported = outcome.unwrap();
                    assert!(written[0] != reported.is_empty(), "{why}: {reported:?}, {written:?}");
                }
                database.client().run(&format!("DELETE FROM {RUNS}"));
                database.client().run(&format!("DELETE FROM {MESSAGES}"));
                if hits == 0 {
                    assert!(command > 4, "{why}: no command was left to break");
                    break;
                }
            }
        }
    }
}

#[test]
fn p07_three_concurrent_reapers_share_sixty_runs() {
    let mut database = Database::new();
    for limit in [60, 25, 60, 60, 60, 60, 60, 60, 60, 60] {
        let runs: Vec<i64> = (0..60).map(|number| database.insert(&stale(number))).collect();
        let barrier = Arc::new(Barrier::new(3));
        let reapers: Vec<_> = (0..3)
            .map(|_| {
                let (barrier, mut harness) = (Arc::clone(&barrier), Harness::on(&database));
                thread::spawn(move || {
                    barrier.wait();
                    harness.reap(&reap_with_wake_up(limit)).unwrap()
                })
            })
            .collect();
        let mut requeued = Vec::new();
        for reaper in reapers {
            let report = reaper.join().unwrap();
            assert!(
                report
                    .requeued
                    .iter()
                    .all(|entry| entry.woken_up && entry.requeue_count == 1 && !entry.confirmed)
            );
            assert!(report.dead_lettered.is_empty());
            requeued.extend(uids(&report.requeued));
        }
        requeued.sort_unstable();
        assert_eq!(requeued, runs, "limit {limit}: each run once");
        let mut notified: Vec<String> =
            messages(&mut database).into_iter().map(|message| message.uuid).collect();
        let mut expected: Vec<String> = runs.iter().map(|&uid| database.get(uid, "uuid")).collect();
        notified.sort();
        expected.sort();
        assert_eq!(notified, expected, "limit {limit}: one message each");
        database.client().run(&format!("DELETE FROM {RUNS}"));
        database.client().run(&format!("DELETE FROM {MESSAGES}"));
    }
}

#[test]
fn p13_many_messages_need_few_statements() {
    let mut database = Database::new();
    let runs: Vec<Run> = (0..1_100).map(stale).collect();
    database.insert_all(&runs);
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    let report = harness.reap(&reap_with_wake_up(1_100)).unwrap();
    assert_eq!(report.requeued.len(), 1_100);
    let inserts = proxy
        .log()
        .iter()
        .filter(|exchange| {
            exchange.command.is_statement() && exchange.command.sql.starts_with("INSERT")
        })
        .count();
    assert_eq!(inserts, 3, "one per chunk");
    let mut notified: Vec<String> =
        messages(&mut database).into_iter().map(|message| message.uuid).collect();
    notified.sort();
    notified.dedup();
    assert_eq!(notified.len(), 1_100);
}

#[test]
fn p13_concurrent_consumers_and_reapers_lose_nothing() {
    let mut database = Database::new();
    let total = 300;
    let runs: Vec<Run> = (0..total).map(stale).collect();
    database.insert_all(&runs);
    let barrier = Arc::new(Barrier::new(5));
    let reapers: Vec<_> = (0..2)
        .map(|_| {
            let (barrier, mut harness) = (Arc::clone(&barrier), Harness::on(&database));
            thread::spawn(move || {
                barrier.wait();
                let mut requeued = 0;
                loop {
                    let report = harness.reap(&reap_with_wake_up(20)).unwrap();
                    requeued += report.requeued.len();
                    if report.requeued.is_empty() && !report.has_more {
                        return requeued;
                    }
                }
            })
        })
        .collect();
    // As the doctrine transport does it: delete what was acknowledged, take the next, acknowledge
    // it.
    let taken = Arc::new(std::sync::Mutex::new(Vec::new()));
    let consumers: Vec<_> = (0..3)
        .map(|_| {
            let (barrier, mut client, taken) =
                (Arc::clone(&barrier), database.connect(), Arc::clone(&taken));
            thread::spawn(move || {
                barrier.wait();
                let started = Instant::now();
                while taken.lock().unwrap().len() < total as usize {
                    assert!(started.elapsed().as_secs() < 60, "the messages come");
                    if let Some(uuid) = consume(&mut client) {
                        taken.lock().unwrap().push(uuid);
                    }
                }
            })
        })
        .collect();
    let requeued: usize = reapers.into_iter().map(|reaper| reaper.join().unwrap()).sum();
    for consumer in consumers {
        consumer.join().unwrap();
    }
    assert_eq!(requeued, total as usize);
    let mut taken = taken.lock().unwrap().clone();
    taken.sort();
    taken.dedup();
    assert_eq!(taken.len(), total as usize, "each run's message was taken");
}

/// Takes one message; returns `None` where consumers deadlock with each other.
fn consume(client: &mut Client) -> Option<String> {
    let _ = client
        .try_run(&format!("DELETE FROM {MESSAGES} WHERE delivered_at = '9999-12-31 23:59:59'"));
    let mut take = || -> std::result::Result<Option<(String, String)>, mysql_async::Error> {
        client.try_run("START TRANSACTION")?;
        let rows = client.try_rows(&format!(
            "SELECT id, body FROM {MESSAGES} WHERE queue_name = 'default' AND delivered_at IS NULL AND available_at <= UTC_TIMESTAMP() \
             ORDER BY available_at LIMIT 1 FOR UPDATE"
        ))?;
        let found = rows.first().map(|row| {
            let text = |index: usize| String::from_utf8(row[index].clone().unwrap()).unwrap();
            (text(0), text(1))
        });
        if let Some((id, _)) = &found {
            client.try_run(&format!(
                "UPDATE {MESSAGES} SET delivered_at = '9999-12-31 23:59:59' WHERE id = {id}"
            ))?;
        }
        client.try_run("COMMIT")?;
        Ok(found)
    };
    match take() {
        Ok(found) => found.map(|(_, body)| {
            let start = BODY.find(PLACEHOLDER).unwrap();
            body[start..start + 36].to_owned()
        }),
        Err(_) => {
            client.run("ROLLBACK");
            None
        }
    }
}
