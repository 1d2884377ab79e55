//! Workers that renew, crash and finish, two reapers of the product and one of PHP, all on the same
//! runs (rules 6 and 7).

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mysql_async::Error;
use nrllm_runtime::ops::sql::unix_time;

use crate::support::client::{Done, refused_with};
use crate::support::database::{Database, Run, Shape};
use crate::support::harness::{Harness, request};
use crate::support::legacy_php_worker::LegacyPhpWorker;
use crate::support::server::Server;

const RUNS: usize = 64;

const WORKERS: usize = 12;

const TIME: Duration = Duration::from_secs(10);

/// What the workers did.
#[derive(Default, Debug)]
struct Counts {
    claims: AtomicU64,
    heartbeats: AtomicU64,
    /// Runs that were left with an expired lease.
    crashed: AtomicU64,
    /// Runs that their worker requeued.
    requeued: AtomicU64,
}

fn mixed_load(key: bool) {
    let server = Server::start(&["--innodb-print-all-deadlocks=ON"]);
    let shape = if key { Shape::default().lease_key() } else { Shape::default() };
    let mut database = Database::on(&server, &shape);
    let uids = database.insert_all(&vec![Run::queued(); RUNS]);
    let counts = Counts::default();
    let reaped = Mutex::new(Vec::new());
    let php_reaped = AtomicU64::new(0);
    let over = AtomicBool::new(false);
    let deadlocks_of_php = AtomicU64::new(0);
    // PHP leaves the choice of the key to the server, which may choose one on the status, against
    // the order of all other locks (see `p06_php_by_a_status_key_meets_a_deadlock`). PHP then
    // retries; the product reports no error.
    let in_php = |work: &mut dyn FnMut() -> Result<Done, Error>| loop {
        match work() {
            Ok(done) => return done.affected,
            Err(error) if refused_with(&error, 1213) => {
                deadlocks_of_php.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => panic!("PHP fails with {error}"),
        }
    };
    let started = Instant::now();

    std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for number in 0..WORKERS {
            let (mut harness, mut php_worker) =
                (Harness::on(&database), LegacyPhpWorker::of(&database));
            let (counts, uids, in_php) = (&counts, &uids, &in_php);
            workers.push(scope.spawn(move || {
                let owner = format!("worker:{number}");
                // Every second worker is one of PHP. A PHP worker's clock ticks, so its renewals
                // change something.
                let php = number % 2 == 1;
                let mut round = number;
                let mut tick = 0_i64;
                while started.elapsed() < TIME {
                    round += 1;
                    let uid = uids[(round * 7 + number * 5) % RUNS];
                    let now = unix_time();
                    harness.time = now;
                    let claimed = if php {
                        in_php(&mut || php_worker.claim(uid, &owner, now + 900, now)) == 1
                    } else {
                        harness.claim_queued(uid, &owner, now + 900).unwrap()
                    };
                    if !claimed {
                        continue;
                    }
                    counts.claims.fetch_add(1, Ordering::Relaxed);
                    for _ in 0..6 {
                        tick += 1;
                        let lease = now + 900 + tick % 1_000;
                        let held = if php {
                            in_php(&mut || php_worker.renew(uid, &owner, lease, now + tick)) == 1
                        } else if tick % 3 == 0 {
                            harness.mark_pending_effect(uid, &owner, "read_only", lease).unwrap()
                        } else {
                            harness.renew_lease(uid, &owner, lease).unwrap()
                        };
                        assert!(
                            held,
                            "a heartbeat of {owner} on run {uid} was refused although its lease had not expired"
                        );
                        counts.heartbeats.fetch_add(1, Ordering::Relaxed);
                    }
                    if round % 4 == 0 {
                        assert!(
                            harness.requeue(uid, &owner).unwrap(),
                            "{owner} requeues run {uid}"
                        );
                        counts.requeued.fetch_add(1, Ordering::Relaxed);
                    } else {
                        // The worker dies, and its lease has expired.
                        assert!(
                            harness.renew_lease(uid, &owner, now - 5).unwrap(),
                            "the last heartbeat of {owner} on run {uid}"
                        );
                        counts.crashed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }));
        }
        for _ in 0..2 {
            let mut harness = Harness::on(&database);
            harness.options.max_requeues = u32::MAX;
            let (reaped, over) = (&reaped, &over);
            scope.spawn(move || {
                let mut last = false;
                while !last {
                    // Once more after the workers have ended, so that nothing is left behind.
                    last = over.load(Ordering::Acquire);
                    harness.time = unix_time();
                    let report = harness.reap(&request(20)).unwrap();
                    assert!(report.dead_lettered.is_empty(), "{report:?}");
                    reaped.lock().unwrap().extend(
                        report
                            .requeued
                            .iter()
                            .map(|entry| (entry.uid, entry.requeue_count, entry.confirmed)),
                    );
                }
            });
        }
        let mut php = LegacyPhpWorker::of(&database);
        let (php_reaped, over, in_php) = (&php_reaped, &over, &in_php);
        scope.spawn(move || {
            while !over.load(Ordering::Acquire) {
                let now = unix_time();
                for uid in php.stale(now, 5).unwrap() {
                    php_reaped
                        .fetch_add(in_php(&mut || php.requeue_stale(uid, now)), Ordering::Relaxed);
                }
            }
        });
        let results: Vec<_> =
            workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        over.store(true, Ordering::Release);
        assert!(results.iter().all(Result::is_ok), "no worker failed");
    });

    // What the last reapers may have missed of each other.
    let mut harness = Harness::on(&database);
    harness.options.max_requeues = u32::MAX;
    harness.time = unix_time();
    let rest = harness.reap(&request(1_000)).unwrap();
    let mut reaped = reaped.into_inner().unwrap();
    reaped.extend(
        rest.requeued.iter().map(|entry| (entry.uid, entry.requeue_count, entry.confirmed)),
    );

    let crashed = counts.crashed.load(Ordering::Relaxed);
    let by_hand = counts.requeued.load(Ordering::Relaxed);
    let by_php = php_reaped.load(Ordering::Relaxed);
    assert!(
        counts.claims.load(Ordering::Relaxed) > 200 && !reaped.is_empty() && by_php > 0,
        "{counts:?}, {} reaped, {by_php} by PHP",
        reaped.len()
    );
    assert!(reaped.iter().all(|(_, _, confirmed)| !confirmed));
    let mut states: Vec<(u64, u32)> = reaped.iter().map(|(uid, count, _)| (*uid, *count)).collect();
    states.sort_unstable();
    assert!(
        states.windows(2).all(|pair| pair[0] != pair[1]),
        "no run was handled twice in one state"
    );
    assert_eq!(reaped.len() as u64 + by_php, crashed, "every crash was handled exactly once");
    let counted = database.client().number("SELECT SUM(requeue_count) FROM tx_nrllm_agentrun");
    assert_eq!(counted as u64, crashed + by_hand, "and counted exactly once");
    assert_eq!(
        database.client().number("SELECT COUNT(*) FROM tx_nrllm_agentrun WHERE status <> 'queued'"),
        0
    );
    if server.is_mariadb() {
        let log = server.log();
        let deadlocks = deadlocks(&log);
        assert_eq!(server.global_status("Innodb_deadlocks"), deadlocks.len() as u64, "{log}");
        // The product's own statements never meet each other so: in each there is one of PHP.
        assert!(
            deadlocks.iter().all(|deadlock| deadlock.iter().any(|sql| is_of_php(sql))),
            "{log}"
        );
    }
}

/// The statements of each deadlock in a server's log.
fn deadlocks(log: &str) -> Vec<Vec<&str>> {
    let mut deadlocks: Vec<Vec<&str>> = Vec::new();
    for line in log.lines() {
        if line.contains("Transactions deadlock detected") {
            deadlocks.push(Vec::new());
        } else if ["UPDATE ", "SELECT ", "INSERT ", "COMMIT"]
            .iter()
            .any(|verb| line.starts_with(verb))
            && let Some(statements) = deadlocks.last_mut()
        {
            statements.push(line);
        }
    }
    deadlocks
}

/// Every statement of the product that locks goes by primary key and says so, or inserts.
fn is_of_php(sql: &str) -> bool {
    sql.starts_with("UPDATE ") && !sql.contains("FORCE INDEX (PRIMARY)")
}

#[test]
fn p06_php_by_a_status_key_meets_a_deadlock() {
    let server = Server::start(&["--innodb-print-all-deadlocks=ON"]);
    let mut database = Database::on(&server, &Shape::default());
    // Where at most one run has the status, MariaDB takes the key on (status, crdate) for PHP's
    // claim, which names none.
    database.insert_all(&vec![Run::running("w", 4_000_000_000); 60]);
    if server.is_mariadb() {
        let claim = "EXPLAIN UPDATE tx_nrllm_agentrun SET status = 'running' WHERE uid = 5 AND \
                     status = 'queued'";
        let plan = database.client().maps(claim).remove(0);
        assert_eq!(plan["key"].as_deref(), Some(&b"status_lookup"[..]), "{plan:?}");
    }
    let uid = database.insert(&Run::queued());
    // A claim of the product between its two locks: that of the row, and that of the key's entry.
    let mut product = database.connect();
    product.run("START TRANSACTION");
    product.rows(&format!(
        "SELECT uid FROM tx_nrllm_agentrun FORCE INDEX (PRIMARY) WHERE uid = {uid} FOR UPDATE"
    ));
    let mut php_worker = LegacyPhpWorker::of(&database);
    let (in_php, in_product) = std::thread::scope(|scope| {
        let claim = "UPDATE tx_nrllm_agentrun FORCE INDEX (status_lookup) SET status = 'running', \
                     claimed_by = 'php' WHERE uid = ? AND status = 'queued'";
        let claiming = scope.spawn(move || php_worker.client.try_exec(claim, (uid,)));
        // PHP has locked the key's entry, and waits for the row.
        while server.global_status("Innodb_row_lock_current_waits") == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let in_product = product.try_run(&format!(
            "UPDATE tx_nrllm_agentrun FORCE INDEX (PRIMARY) SET status = 'running', claimed_by = \
             'product' \
             WHERE uid = {uid} AND status = 'queued'"
        ));
        let _ = product.try_run("COMMIT");
        (claiming.join().unwrap(), in_product)
    });
    // One of the two is the server's victim, and the other one has the run.
    let victims: Vec<&Error> =
        [&in_php, &in_product].into_iter().filter_map(|r| r.as_ref().err()).collect();
    assert!(victims.len() == 1 && refused_with(victims[0], 1213), "{in_php:?}, {in_product:?}");
    let owner = database.get(uid, "claimed_by");
    assert_eq!(owner == "php", in_php.is_ok());
    if server.is_mariadb() {
        let log = server.log();
        let deadlocks = deadlocks(&log);
        assert!(deadlocks.len() == 1 && deadlocks[0].len() == 2, "{log}");
        assert_eq!(deadlocks[0].iter().filter(|sql| is_of_php(sql)).count(), 1, "{log}");
    }
    // The product repeats a claim that is the victim, and then finds that another worker has it.
    assert!(!Harness::on(&database).claim_queued(uid, "worker:1", 4_000_000_000).unwrap());
}

#[test]
fn p06_p07_mixed_workers_for_ten_seconds() {
    mixed_load(false);
}

#[test]
fn p06_p07_mixed_workers_with_the_lease_key() {
    mixed_load(true);
}
