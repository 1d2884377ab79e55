//! `reap()`: the decision table on a real server, and reaping beside live workers (rules 4 and 6 to
//! 12).

use nrllm_runtime::config::requests::ReapRequest;
use nrllm_runtime::error::Kind;
use nrllm_runtime::ops::reap::Report;

use crate::support::database::{Database, Run, Shape, assert_row, changed};
use crate::support::harness::{Harness, LEASE, NOW, error_of, reasons, request, uids};
use crate::support::legacy_php_worker::LegacyPhpWorker;
use crate::support::operation::{ALLOWED, COUNTS, Expected, FORBIDDEN, PAYLOADS};
use crate::support::proxy::{Fault, Outcome, Proxy, When};
use crate::support::server::{Server, wants_mysql};

const DEAD: &str = "worker:dead:1:beef";

/// A run whose lease had expired at [`NOW`]; the smaller the number, the longer ago.
fn stale(number: i64) -> Run {
    Run::running(DEAD, NOW - 100_000 + number)
}

fn stale_runs(database: &mut Database, count: i64) -> Vec<i64> {
    let runs: Vec<Run> = (0..count).map(stale).collect();
    database.insert_all(&runs)
}

fn handled(report: &Report) -> usize {
    report.requeued.len() + report.dead_lettered.len()
}

/// Which chunk statements were sent: how many values the longest `IN` list had, and how many
/// statements there were in all.
fn longest_list(statements: &[String]) -> usize {
    let lists = statements
        .iter()
        .flat_map(|sql| sql.split(" IN (").skip(1).filter_map(|rest| rest.split(')').next()));
    lists.map(|list| list.split(',').count()).max().unwrap_or(0)
}

#[test]
fn p06_p10_decision_table_with_every_column() {
    let effects = [
        ("", ALLOWED),
        ("read_only", ALLOWED),
        ("idempotent_write", ALLOWED),
        ("non_idempotent_write", FORBIDDEN),
        ("NON_IDEMPOTENT_WRITE", ALLOWED),
        ("non_idempotent_write ", ALLOWED),
        (" non_idempotent_write", ALLOWED),
        ("non_idempotent_writ\u{e9}", ALLOWED),
        ("non_idempotent_write\0", ALLOWED),
        ("an_effect_of_a_later_release", ALLOWED),
    ];
    let now = NOW.to_string();
    for queued_at in [false, true] {
        let shape = if queued_at { Shape::default().queued_at() } else { Shape::default() };
        let mut database = Database::with(&shape);
        let mut expected = Vec::new();
        let mut number = 0;
        for (effect, decisions) in effects {
            for (payload, decisions) in PAYLOADS.into_iter().zip(decisions) {
                for ((count, more, _), decision) in COUNTS.into_iter().zip(decisions) {
                    number += 1;
                    let mut run = stale(number)
                        .write_fence(effect)
                        .requeued(u64::from(count))
                        .set("error_class", "Old\\Error")
                        .set("termination_reason", "");
                    run = match payload {
                        Some(payload) => run.request(payload),
                        None => run.without_request(),
                    };
                    let uid = database.insert(&run);
                    let before = database.row(uid);
                    let reason = match decision {
                        Expected::Requeue => None,
                        Expected::Exhausted => Some("retries_exhausted"),
                        Expected::Final => Some("not_retryable"),
                    };
                    let mut changes =
                        vec![("claimed_by", ""), ("lease_expires", "0"), ("tstamp", now.as_str())];
                    match reason {
                        None => {
                            changes.extend([
                                ("status", "queued"),
                                ("requeue_count", more),
                                ("pending_effect", ""),
                            ]);
                            if queued_at {
                                changes.push(("queued_at", &now));
                            }
                        }
                        Some(reason) => changes.extend([
                            ("status", "failed"),
                            ("termination_reason", reason),
                            ("error_class", ""),
                            ("suspended_state", ""),
                            ("queued_request", ""),
                            ("finished_at", &now),
                        ]),
                    }
                    expected.push((
                        uid,
                        changed(&before, &changes),
                        reason,
                        format!("{effect:?}, {count} requeues, request {payload:?}"),
                    ));
                }
            }
        }
        assert_eq!(expected.len(), 120);
        let report = Harness::on(&database).reap_all(1_000);
        for (uid, row, reason, why) in &expected {
            assert_row(&database.row(*uid), row, why);
            let entries = if reason.is_some() { &report.dead_lettered } else { &report.requeued };
            let entry = entries
                .iter()
                .find(|entry| entry.uid == *uid as u64)
                .unwrap_or_else(|| panic!("{why} is reported"));
            assert_eq!(entry.reason, *reason, "{why}");
            let count = String::from_utf8(row["requeue_count"].clone().unwrap()).unwrap();
            assert_eq!(
                entry.requeue_count.to_string(),
                count,
                "{why}: the counter as the row has it now"
            );
            assert_eq!(
                (entry.claimed_by.as_str(), entry.lease_expires < NOW),
                (DEAD, true),
                "{why}: as the reaper found them"
            );
        }
        assert_eq!(
            (handled(&report), report.skipped.len(), report.has_more),
            (expected.len(), 0, false)
        );
    }
}

#[test]
fn p10_last_attempt_is_requeued() {
    // A counter that is incremented before it is compared would end the run one attempt early.
    let mut database = Database::new();
    let uid = database.insert(&stale(1));
    let mut harness = Harness::on(&database);
    for count in 1..=3_u32 {
        let report = harness.reap_all(1);
        assert_eq!((uids(&report.requeued), report.requeued[0].requeue_count), (vec![uid], count));
        assert!(harness.claim_queued(uid, DEAD, NOW - 1).unwrap());
    }
    assert_eq!(reasons(&harness.reap_all(1).dead_lettered), ["retries_exhausted"]);
    assert_eq!(database.get(uid, "requeue_count"), "3");
}

#[test]
fn retry_budget_is_an_option() {
    let mut database = Database::new();
    for (budget, count, requeued) in [
        (0, 0, false),
        (1, 0, true),
        (1, 1, false),
        (5, 4, true),
        (u32::MAX, 4_294_967_294_u64, true),
        (u32::MAX, 4_294_967_295, false),
    ] {
        database.insert(&stale(1).requeued(count));
        let mut harness = Harness::on(&database);
        harness.options.max_requeues = budget;
        let report = harness.reap_all(1);
        assert_eq!(report.requeued.len() == 1, requeued, "{budget} {count}");
        assert_eq!(handled(&report), 1);
    }
}

#[test]
fn oldest_lease_first_then_uid() {
    let mut database = Database::new();
    let leases = [NOW - 5, NOW - 50, NOW - 5, NOW - 500, NOW - 50, NOW, NOW + 50, 0];
    let runs: Vec<Run> = leases.iter().map(|lease| Run::running(DEAD, *lease)).collect();
    let all = database.insert_all(&runs);
    let mut harness = Harness::on(&database);
    let expected = [3, 1, 4, 0, 2].map(|index: usize| all[index]);
    for part in [&expected[..2], &expected[2..3], &expected[3..5]] {
        let report = harness.reap_all(part.len() as u64);
        assert_eq!(uids(&report.requeued), part);
        assert_eq!(report.has_more, part.len() < 2 || part[0] == expected[0], "{part:?}");
    }
    assert_eq!(handled(&harness.reap_all(10)), 0);
    assert_eq!(database.get(all[5], "status"), "running", "a lease that ends now has not expired");
    assert_eq!(database.get(all[7], "status"), "running", "a lease of 0 never expires");
}

#[test]
fn p04_now_of_zero_handles_nothing() {
    let mut database = Database::new();
    let before = stale_runs(&mut database, 3);
    let report = Harness::on(&database).reap(&ReapRequest { now: Some(0), ..request(10) }).unwrap();
    assert_eq!((handled(&report), report.skipped.len()), (0, 0));
    assert!(before.into_iter().all(|uid| database.get(uid, "status") == "running"));
    let report = Harness::on(&database)
        .reap(&ReapRequest { now: Some(4_294_967_295), ..request(10) })
        .unwrap();
    assert_eq!(handled(&report), 3);
}

/// Puts runs back into the state that [`stale`] makes.
fn make_stale_again(database: &mut Database, uids: &[i64]) {
    let list = uids.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    database.client().run(&format!(
        "UPDATE tx_nrllm_agentrun SET status = 'running', claimed_by = '{DEAD}', lease_expires = {} + uid, requeue_count = 0, \
         pending_effect = '', queued_request = 'nrv1:request' WHERE uid IN ({list})",
        NOW - 100_000
    ));
}

#[test]
fn p06_heartbeat_never_waits_for_a_reaper() {
    let server = Server::start(&[]);
    for key in [false, true] {
        let shape = if key { Shape::default().lease_key() } else { Shape::default() };
        let mut database = Database::on(&server, &shape);
        let workers: Vec<String> = (0..120).map(|number| format!("worker:{number}")).collect();
        // Dead and live ones alternate, in every index.
        let mut dead = Vec::new();
        let mut live = Vec::new();
        for worker in &workers {
            dead.push(database.insert(&stale(1).write_fence(if dead.len() % 3 == 0 {
                "non_idempotent_write"
            } else {
                ""
            })));
            live.push(database.insert(&Run::running(worker, LEASE)));
        }
        let proxy = Proxy::start(database.endpoint());
        let mut reaper = Harness::through(&proxy, &database);
        assert_eq!(handled(&reaper.reap_all(1_000)), dead.len());
        let before = proxy.count();
        make_stale_again(&mut database, &dead);
        assert_eq!(handled(&reaper.reap_all(1_000)), dead.len());
        let statements = proxy.count().since(before).statements;
        assert!(statements >= 3, "a listing, a lock and a write at least");

        let mut php = LegacyPhpWorker::of(&database);
        php.client.run("SET innodb_lock_wait_timeout = 1");
        let mut harness = Harness::on(&database);
        let waited = server.row_lock_waits();
        for nth in 1..=statements {
            make_stale_again(&mut database, &dead);
            let queued = database.insert(&Run::queued());
            // The server has executed the reaper's nth statement and holds every lock that it
            // takes.
            let rule = proxy.rule(When::any_statement().nth(nth), Fault::HoldReply);
            std::thread::scope(|scope| {
                let reaping = scope.spawn(|| reaper.reap_all(1_000));
                rule.wait();
                let tick = NOW + nth as i64;
                for (uid, worker) in live.iter().zip(&workers) {
                    assert_eq!(
                        php.renew(*uid, worker, LEASE + tick, tick).unwrap().affected,
                        1,
                        "a heartbeat of PHP, statement {nth}"
                    );
                    assert!(
                        harness.renew_lease(*uid, worker, LEASE + nth as i64).unwrap(),
                        "a heartbeat, statement {nth}"
                    );
                }
                assert_eq!(
                    php.claim(queued, "worker:php", LEASE, NOW).unwrap().affected,
                    1,
                    "a claim, statement {nth}"
                );
                let started = database.insert(&Run::running("worker:new", LEASE));
                assert!(
                    harness.mark_pending_effect(started, "worker:new", "read_only", LEASE).unwrap()
                );
                assert_eq!(
                    php.complete(queued, "worker:php", NOW).unwrap().affected,
                    1,
                    "a completion, statement {nth}"
                );
                rule.release();
                assert_eq!(handled(&reaping.join().unwrap()), dead.len());
            });
        }
        assert_eq!(
            server.row_lock_waits(),
            waited,
            "no transaction waited for a row lock (with the additional key: {key})"
        );
    }
}

#[test]
fn p06_at_most_six_statements_per_chunk() {
    let mut database = Database::new();
    // Every decision, in every chunk.
    let runs: Vec<Run> = (0..1_500_i64)
        .map(|number| match number % 4 {
            0 => stale(number).write_fence("non_idempotent_write"),
            1 => stale(number).requeued(3),
            2 => stale(number).without_request(),
            _ => stale(number),
        })
        .collect();
    database.insert_all(&runs);
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    // The first call connects and reads the schema of the table.
    assert_eq!(handled(&harness.reap_all(1)), 1);
    let before = proxy.count();
    proxy.clear_log();
    let report = harness.reap_all(2_000);
    assert_eq!((handled(&report), report.has_more), (1_499, false));
    let statements = proxy.statements();
    let chunks = statements.iter().filter(|sql| sql.contains("FOR UPDATE")).count();
    assert!((2..=15).contains(&chunks), "{chunks} chunks");
    let count = proxy.count().since(before);
    assert!(
        count.statements <= 6 * chunks + 2,
        "{} statements for {chunks} chunks: {statements:#?}",
        count.statements
    );
    let longest = longest_list(&statements);
    assert!(
        (100..1_000).contains(&longest),
        "MariaDB turns a list of {longest} into a derived table"
    );
}

#[test]
fn p06_locking_read_uses_the_primary_key_in_order() {
    let mut database = Database::new();
    // The oldest lease has the largest uid.
    let runs: Vec<Run> = (0..20).map(|number| stale(100 - number)).collect();
    let mut all = database.insert_all(&runs);
    let proxy = Proxy::start(database.endpoint());
    let report = Harness::through(&proxy, &database).reap_all(100);
    all.reverse();
    assert_eq!(uids(&report.requeued), all, "reported by lease");
    let statements = proxy.statements();
    for sql in
        statements.iter().filter(|sql| sql.contains("FOR UPDATE") || sql.starts_with("UPDATE"))
    {
        assert!(sql.contains("FORCE INDEX (PRIMARY)"), "{sql}");
        let list: Vec<i64> = sql
            .split(" IN (")
            .nth(1)
            .unwrap()
            .split(')')
            .next()
            .unwrap()
            .split(',')
            .map(|uid| uid.trim().parse().unwrap())
            .collect();
        assert!(list.is_sorted(), "locked by uid: {sql}");
        assert!(
            sql.contains("lease_expires") && sql.contains("'running'"),
            "the guard is repeated: {sql}"
        );
    }
    let locking = statements.iter().filter(|sql| sql.contains("SKIP LOCKED")).count();
    assert_eq!(locking, 1);
    let listing = statements.iter().find(|sql| sql.contains("ORDER BY")).unwrap();
    assert!(!listing.contains("FOR UPDATE") && !listing.contains("suspended_state"), "{listing}");
}

#[test]
fn p06_statement_based_logging_uses_repeatable_read() {
    let server = Server::start(&["--log-bin=binlog", "--server-id=1", "--binlog-format=STATEMENT"]);
    let mut database = Database::on(&server, &Shape::default());
    assert_eq!(database.client().text("SELECT @@global.binlog_format"), "STATEMENT");
    assert_eq!(database.client().number("SELECT @@global.log_bin"), 1);
    stale_runs(&mut database, 120);
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    let report = harness.reap_all(1_000);
    assert_eq!(report.requeued.len(), 120);
    // The other writes need no particular level.
    let uid = database.insert(&Run::queued());
    assert!(
        harness.claim_queued(uid, DEAD, LEASE).unwrap()
            && harness.renew_lease(uid, DEAD, LEASE).unwrap()
            && harness.requeue(uid, DEAD).unwrap()
    );
    let log = proxy.log();
    assert!(
        !log.iter().any(|exchange| exchange.outcome == Outcome::Refused(1665)),
        "asked once, not tried"
    );
}

#[test]
fn p07_two_reapers_share_the_work() {
    let mut database = Database::new();
    for round in 0..3 {
        let expected = stale_runs(&mut database, 300);
        let reports: Vec<Report> = std::thread::scope(|scope| {
            let reapers: Vec<_> = (0..3)
                .map(|_| {
                    let mut harness = Harness::on(&database);
                    scope.spawn(move || harness.reap_all(300))
                })
                .collect();
            reapers.into_iter().map(|reaper| reaper.join().unwrap()).collect()
        });
        let mut all: Vec<i64> = reports.iter().flat_map(|report| uids(&report.requeued)).collect();
        all.sort_unstable();
        assert_eq!(all, expected, "every run exactly once, round {round}");
        assert_eq!(database.client().number("SELECT COUNT(*) FROM tx_nrllm_agentrun WHERE requeue_count <> 1 OR status <> 'queued'"), 0);
        for entry in reports.iter().flat_map(|report| &report.skipped) {
            assert!(matches!(entry.reason, Some("contended" | "renewed")), "{entry:?}");
        }
    }
}

#[test]
fn p08_unhandled_runs_do_not_count_against_the_limit() {
    let mut database = Database::new();
    let all = stale_runs(&mut database, 40);
    let mut php_worker = LegacyPhpWorker::of(&database);
    php_worker.lock_rows(&all[..10]);
    let mut harness = Harness::on(&database);
    let except: Vec<u64> = all[10..15].iter().map(|uid| *uid as u64).collect();
    for tick in 0..2 {
        let report = harness.reap(&ReapRequest { except: except.clone(), ..request(10) }).unwrap();
        let expected = &all[15 + 10 * tick..25 + 10 * tick];
        assert_eq!(
            uids(&report.requeued),
            expected,
            "tick {tick}: as many as were asked for, behind the others"
        );
        let mut skipped: Vec<(i64, &str)> =
            uids(&report.skipped).into_iter().zip(reasons(&report.skipped)).collect();
        skipped.sort_unstable();
        let contended = all[..10].iter().map(|uid| (*uid, "contended"));
        let excepted = all[10..15].iter().map(|uid| (*uid, "excepted"));
        assert_eq!(skipped, contended.chain(excepted).collect::<Vec<_>>(), "tick {tick}");
        assert!(report.has_more);
    }
    php_worker.unlock();
    let report = harness.reap(&ReapRequest { except, ..request(100) }).unwrap();
    assert_eq!(uids(&report.requeued), [&all[..10], &all[35..]].concat());
    assert!(!report.has_more);
}

#[test]
fn p08_listing_examines_at_most_ten_times_the_limit() {
    let mut database = Database::new();
    let all = stale_runs(&mut database, 60);
    let mut php_worker = LegacyPhpWorker::of(&database);
    php_worker.lock_rows(&all[..50]);
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    let report = harness.reap_all(2);
    assert_eq!(
        (handled(&report), report.skipped.len(), report.has_more),
        (0, 20, true),
        "twenty examined, all of them locked"
    );
    let report = harness.reap_all(5);
    assert_eq!((handled(&report), report.skipped.len(), report.has_more), (0, 50, true));
    let report = harness.reap_all(6);
    assert_eq!(uids(&report.requeued), &all[50..56]);
    php_worker.unlock();
}

#[test]
fn p08_renewed_and_contended_runs_are_distinguished() {
    let mut database = Database::new();
    let all = stale_runs(&mut database, 4);
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    let mut php_worker = LegacyPhpWorker::of(&database);
    let mut locker = LegacyPhpWorker::of(&database);
    locker.lock_row(all[3]);
    // Between the listing and the lock, a worker renews one run and completes another.
    let listed = proxy.rule(When::statement("ORDER BY lease_expires"), Fault::HoldReply);
    let report = std::thread::scope(|scope| {
        let reaping = scope.spawn(|| harness.reap_all(10));
        listed.wait();
        php_worker.renew(all[0], DEAD, LEASE, NOW).unwrap();
        php_worker.complete(all[1], DEAD, NOW).unwrap();
        listed.release();
        reaping.join().unwrap()
    });
    locker.unlock();
    assert_eq!(uids(&report.requeued), [all[2]]);
    let skipped: Vec<(i64, &str)> =
        uids(&report.skipped).into_iter().zip(reasons(&report.skipped)).collect();
    assert_eq!(skipped, [(all[0], "renewed"), (all[1], "renewed"), (all[3], "contended")]);
    assert_eq!(database.get(all[0], "lease_expires"), LEASE.to_string());
    assert_eq!(database.get(all[1], "status"), "completed");
}

#[test]
fn p09_transient_error_is_retried() {
    for code in [1205, 1213, 1020] {
        for statement in [
            "START TRANSACTION",
            "FOR UPDATE",
            "SET status = 'queued',",
            "SET status = 'failed',",
            "COMMIT",
        ] {
            let mut database = Database::new();
            let mut all = stale_runs(&mut database, 6);
            all.push(database.insert(&stale(50).requeued(3)));
            let proxy = Proxy::start(database.endpoint());
            let when = When::command(move |command| {
                command.is_statement()
                    && (command.sql == statement || command.sql.contains(&format!("{statement} ")))
            });
            let rule = proxy.rule(when, Fault::Refuse(code));
            let report = Harness::through(&proxy, &database).reap_all(10);
            assert_eq!(rule.hits(), 1, "{code} at {statement}");
            assert_eq!(
                (uids(&report.requeued), uids(&report.dead_lettered)),
                (all[..6].to_vec(), all[6..].to_vec()),
                "{code} at {statement}"
            );
            assert_eq!(report.skipped, [], "{code} at {statement}");
            let wrong = database
                .client()
                .number("SELECT COUNT(*) FROM tx_nrllm_agentrun WHERE (status, requeue_count) NOT IN (('queued', 1), ('failed', 3))");
            assert_eq!(wrong, 0, "every run once, {code} at {statement}");
        }
    }
}

#[test]
fn p09_always_failing_run_is_reported_others_handled() {
    for code in [1205, 1213, 1020] {
        let mut database = Database::new();
        let all = stale_runs(&mut database, 9);
        let proxy = Proxy::start(database.endpoint());
        let bad = all[4].to_string();
        let touches = move |command: &crate::support::proxy::Command| {
            let list = command.sql.split(" IN (").nth(1).and_then(|rest| rest.split(')').next());
            command.is_statement()
                && command.sql.starts_with("UPDATE")
                && list.is_some_and(|list| list.split(',').any(|uid| uid.trim() == bad))
        };
        proxy.rule(When::command(touches).always(), Fault::Refuse(code));
        let report = Harness::through(&proxy, &database).reap_all(20);
        let others: Vec<i64> = all.iter().copied().filter(|uid| *uid != all[4]).collect();
        let mut requeued = uids(&report.requeued);
        requeued.sort_unstable();
        assert_eq!(requeued, others, "{code}");
        assert_eq!(
            (uids(&report.skipped), reasons(&report.skipped)),
            (vec![all[4]], vec!["contended"]),
            "{code}"
        );
        assert_eq!(database.client().number("SELECT MAX(requeue_count) FROM tx_nrllm_agentrun"), 1);
    }
}

#[test]
fn p09_snapshot_isolation() {
    let server = Server::start(&[
        "--loose-innodb-snapshot-isolation=ON",
        "--transaction-isolation=REPEATABLE-READ",
    ]);
    let mut database = Database::on(&server, &Shape::default());
    let expected = stale_runs(&mut database, 200);
    let live = database.insert_all(
        &(0..10).map(|number| Run::running(&format!("worker:{number}"), LEASE)).collect::<Vec<_>>(),
    );
    let done = std::sync::atomic::AtomicBool::new(false);
    let all = std::thread::scope(|scope| {
        for (number, uid) in live.iter().enumerate() {
            let (mut harness, done) = (Harness::on(&database), &done);
            scope.spawn(move || {
                let mut tick = 0;
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    tick += 1;
                    assert!(
                        harness
                            .renew_lease(*uid, &format!("worker:{number}"), LEASE + tick)
                            .unwrap()
                    );
                }
            });
        }
        let reapers: Vec<_> = (0..2)
            .map(|_| {
                let mut harness = Harness::on(&database);
                scope.spawn(move || {
                    (0..20).flat_map(|_| uids(&harness.reap_all(10).requeued)).collect::<Vec<_>>()
                })
            })
            .collect();
        let all: Vec<i64> = reapers.into_iter().flat_map(|reaper| reaper.join().unwrap()).collect();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        all
    });
    let mut all = all;
    all.sort_unstable();
    assert_eq!(all, expected);
}

#[test]
fn p09_error_1020_is_retried() {
    // A statement-logging server keeps the reaper in REPEATABLE READ, where a snapshot can be
    // overtaken.
    let server = Server::start(&[
        "--log-bin=binlog",
        "--server-id=1",
        "--binlog-format=STATEMENT",
        "--loose-innodb-snapshot-isolation=ON",
    ]);
    let mut database = Database::on(&server, &Shape::default());
    let all = stale_runs(&mut database, 10);
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    let mut php_worker = LegacyPhpWorker::of(&database);
    let begun = proxy.rule(When::statement("START TRANSACTION"), Fault::HoldReply);
    let report = std::thread::scope(|scope| {
        let reaping = scope.spawn(|| harness.reap_all(10));
        begun.wait();
        php_worker.requeue_stale(all[0], NOW).unwrap();
        begun.release();
        reaping.join().unwrap()
    });
    assert_eq!(uids(&report.requeued), all[1..]);
    assert_eq!(database.get(all[0], "requeue_count"), "1");
}

#[test]
fn p09_server_without_skip_locked() {
    let versions: &[&str] =
        if wants_mysql() { &["5.7.44-log"] } else { &["10.5.29-MariaDB", "10.2.44-MariaDB"] };
    // The name of this variable is the real server's.
    let isolation =
        if wants_mysql() { " UNION SELECT 'transaction_isolation', 'REPEATABLE-READ'" } else { "" };
    for version in versions {
        let mut database = Database::new();
        let all = stale_runs(&mut database, 12);
        let mut php_worker = LegacyPhpWorker::of(&database);
        php_worker.lock_row(all[5]);
        let proxy = Proxy::start(database.endpoint());
        proxy.rule(
            When::command(|command| command.sql.contains("SHOW VARIABLES")).always(),
            Fault::Instead(format!("SET NAMES utf8mb4; SELECT 'version', '{version}'{isolation}")),
        );
        let knows_nowait = version.starts_with("10.5");
        let refused = proxy.rule(
            When::command(move |command| {
                command.sql.contains("SKIP LOCKED")
                    || (!knows_nowait && command.sql.contains("NOWAIT"))
            })
            .always(),
            Fault::Refuse(1064),
        );
        let mut harness = Harness::through(&proxy, &database);
        let report = harness.reap_all(20);
        let mut requeued = uids(&report.requeued);
        requeued.sort_unstable();
        let others: Vec<i64> = all.iter().copied().filter(|uid| *uid != all[5]).collect();
        assert_eq!(requeued, others, "{version}");
        assert_eq!(
            (uids(&report.skipped), reasons(&report.skipped)),
            (vec![all[5]], vec!["contended"]),
            "{version}"
        );
        assert_eq!(refused.hits(), 0, "{version}: not tried, because of the version");
        php_worker.unlock();
        assert_eq!(uids(&harness.reap_all(20).requeued), [all[5]]);
    }
}

#[test]
fn p09_server_that_refuses_skip_locked() {
    let mut database = Database::new();
    let all = stale_runs(&mut database, 5);
    let proxy = Proxy::start(database.endpoint());
    let refused = proxy.rule(
        When::command(|command| command.sql.contains("SKIP LOCKED")).always(),
        Fault::Refuse(1064),
    );
    let mut harness = Harness::through(&proxy, &database);
    assert_eq!(uids(&harness.reap_all(5).requeued), all);
    assert!(refused.hits() >= 1);
}

#[test]
fn p11_payload_is_never_loaded_and_survives_a_requeue() {
    let mut database = Database::new();
    let payload = format!("nrv1:{}", "\u{e9}\u{1f600}\\'\"\n\0 x".repeat(70_000));
    let all = database.insert_all(&vec![stale(1).request(&payload); 20]);
    let before: Vec<_> = all.iter().map(|uid| database.row(*uid)).collect();
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    let dry = harness.reap(&ReapRequest { dry_run: true, ..request(100) }).unwrap();
    assert_eq!(dry.requeued.len(), 20);
    assert_eq!(harness.reap_all(100).requeued.len(), 20);
    let count = proxy.count();
    assert!(count.bytes_to_client + count.bytes_to_server < 100_000, "{count:?}");
    for (uid, before) in all.iter().zip(&before) {
        let row = database.row(*uid);
        assert_eq!(row["queued_request"], before["queued_request"]);
        assert_eq!(row["suspended_state"], before["suspended_state"]);
    }
    for uid in &all[..3] {
        assert!(
            harness.claim_queued(*uid, DEAD, LEASE).unwrap()
                && harness.mark_pending_effect(*uid, DEAD, "x", LEASE).unwrap()
        );
        assert!(harness.requeue(*uid, DEAD).unwrap() && harness.lease_state(*uid, DEAD).is_ok());
    }
    assert!(proxy.count().since(count).bytes_to_client < 20_000);
}

#[test]
fn p12_dry_run_reports_and_writes_nothing() {
    let mut database = Database::with(&Shape::default().queued_at());
    let all = database.insert_all(&[
        stale(1),
        stale(2).write_fence("non_idempotent_write").requeued(1),
        stale(3).requeued(3),
        stale(4).without_request(),
        stale(5).requeued(2),
        Run::running("worker:live", LEASE),
    ]);
    let before = database.all();
    let mut harness = Harness::on(&database);
    let dry = harness.reap(&ReapRequest { dry_run: true, ..request(50) }).unwrap();
    assert!(dry.dry_run && !dry.has_more);
    for (now, before) in database.all().iter().zip(&before) {
        assert_row(now, before, "a dry run");
    }
    let real = harness.reap_all(50);
    assert!(!real.dry_run);
    assert_eq!(
        (&dry.requeued, &dry.dead_lettered),
        (&real.requeued, &real.dead_lettered),
        "the dry run reports what the real one does"
    );
    assert_eq!(uids(&real.requeued), [all[0], all[4]]);
    assert_eq!(
        reasons(&real.dead_lettered),
        ["not_retryable", "retries_exhausted", "not_retryable"]
    );
    assert_eq!(real.requeued[1].requeue_count, 3);
}

#[test]
fn p12_dry_run_takes_no_locks() {
    let mut database = Database::new();
    let all = stale_runs(&mut database, 3);
    let mut php_worker = LegacyPhpWorker::of(&database);
    php_worker.lock_rows(&all);
    let dry = Harness::on(&database).reap(&ReapRequest { dry_run: true, ..request(50) }).unwrap();
    assert_eq!(uids(&dry.requeued), all);
    php_worker.unlock();
}

#[test]
fn p12_only_the_listed_runs_are_touched() {
    let mut database = Database::new();
    let all = stale_runs(&mut database, 2_500);
    let live = database.insert(&Run::running("worker:live", LEASE));
    let mut harness = Harness::on(&database);
    let only = |uids: &[i64]| Some(uids.iter().map(|uid| *uid as u64).collect::<Vec<u64>>());
    // Live, unknown and repeated uids are no harm.
    let report = harness
        .reap(&ReapRequest {
            only: only(&[all[7], live, all[3], all[3], 4_000_000_000]),
            ..request(50)
        })
        .unwrap();
    assert_eq!(
        (uids(&report.requeued), handled(&report), report.skipped.len()),
        (vec![all[3], all[7]], 2, 0)
    );
    let report = harness.reap(&ReapRequest { only: only(&[]), ..request(50) }).unwrap();
    assert_eq!((handled(&report), report.skipped.len(), report.has_more), (0, 0, false));
    // More than fit into one list, in no order.
    let mut many: Vec<i64> = all[100..2_400].to_vec();
    many.reverse();
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    let report = harness.reap(&ReapRequest { only: only(&many), ..request(5_000) }).unwrap();
    assert_eq!(uids(&report.requeued), all[100..2_400]);
    assert!(longest_list(&proxy.statements()) < 1_000);
    let left =
        database.client().number("SELECT COUNT(*) FROM tx_nrllm_agentrun WHERE status = 'running'");
    assert_eq!(left, 2_500 - 2 - 2_300 + 1);
    // The limit holds among them, oldest first.
    let report = harness.reap(&ReapRequest { only: only(&all[2_400..]), ..request(10) }).unwrap();
    assert_eq!((uids(&report.requeued), report.has_more), (all[2_400..2_410].to_vec(), true));
}

#[test]
fn p12_runs_stale_after_the_dry_run_are_not_touched() {
    let mut database = Database::new();
    let listed = stale_runs(&mut database, 2);
    let mut harness = Harness::on(&database);
    let dry = harness.reap(&ReapRequest { dry_run: true, ..request(50) }).unwrap();
    let late = database.insert(&stale(0));
    let only = dry.requeued.iter().map(|entry| entry.uid).collect();
    let report = harness.reap(&ReapRequest { only: Some(only), ..request(50) }).unwrap();
    assert_eq!(uids(&report.requeued), listed);
    assert_eq!(database.get(late, "status"), "running");
}

#[test]
fn missing_column_is_reported_before_any_write() {
    for (column, claims) in
        [("requeue_count", true), ("pending_effect", true), ("lease_expires", false)]
    {
        let mut database = Database::with(&Shape::default().without(column));
        let run = |run: Run| run.unset(column);
        let stale = database.insert(&run(Run::running(DEAD, 5)));
        let queued = database.insert(&run(Run::queued()));
        let before = database.all();
        let proxy = Proxy::start(database.endpoint());
        let mut harness = Harness::through(&proxy, &database);
        let error = error_of(Kind::Configuration, harness.reap(&request(5)));
        assert!(error.message.contains(column), "{error}");
        let error = error_of(Kind::Configuration, harness.requeue(stale, DEAD));
        assert!(error.message.contains(column), "{error}");
        if column == "pending_effect" {
            let error =
                error_of(Kind::Configuration, harness.mark_pending_effect(stale, DEAD, "x", LEASE));
            assert!(error.message.contains(column), "{error}");
        }
        for (now, before) in database.all().iter().zip(&before) {
            assert_row(now, before, column);
        }
        // What writes several rows or statements asks beforehand; one statement finds out by
        // itself.
        let tried = proxy
            .log()
            .into_iter()
            .filter(|exchange| exchange.outcome == Outcome::Refused(1054))
            .count();
        assert_eq!(tried, usize::from(column == "pending_effect"), "{column}");
        // What does not need the column works.
        match claims {
            true => assert!(
                harness.claim_queued(queued, DEAD, LEASE).unwrap()
                    && harness.renew_lease(queued, DEAD, LEASE).unwrap()
            ),
            false => drop(error_of(Kind::Configuration, harness.claim_queued(queued, DEAD, LEASE))),
        }
    }
}
