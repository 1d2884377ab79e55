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

/// What a worker did.
#[derive(Default, Debug)]
struct Tally {
    claims: AtomicU64,
    beats: AtomicU64,
    /// Runs that were left behind with a lease that was over.
    crashed: AtomicU64,
    /// Runs that their worker gave back.
    requeued: AtomicU64,
}

fn mixed_load(key: bool) {
    let server = Server::start(&["--innodb-print-all-deadlocks=ON"]);
    let shape = if key { Shape::default().lease_key() } else { Shape::default() };
    let mut database = Database::on(&server, &shape);
    let uids = database.insert_all(&vec![Run::queued(); RUNS]);
    let tally = Tally::default();
    let reaped = Mutex::new(Vec::new());
    let php_reaped = AtomicU64::new(0);
    let over = AtomicBool::new(false);
    let deadlocks_of_php = AtomicU64::new(0);
    // PHP leaves the choice of the key to the server, which may take the additional one: against the order of everybody else's
    // locks. PHP then tries again; the product must not need to say anything.
    let in_php = |work: &mut dyn FnMut() -> Result<Done, Error>| loop {
        match work() {
            Ok(done) => return done.affected,
            Err(error) if key && refused_with(&error, 1213) => {
                deadlocks_of_php.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => panic!("PHP meets {error}"),
        }
    };
    let started = Instant::now();

    std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for number in 0..WORKERS {
            let (mut harness, mut php_worker) =
                (Harness::on(&database), LegacyPhpWorker::of(&database));
            let (tally, uids, in_php) = (&tally, &uids, &in_php);
            workers.push(scope.spawn(move || {
                let owner = format!("worker:{number}");
                // Every second worker is one of PHP. A PHP worker's clock ticks, so its renewals change something.
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
                    tally.claims.fetch_add(1, Ordering::Relaxed);
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
                            "a beat of {owner} on run {uid} was lost while its lease was good"
                        );
                        tally.beats.fetch_add(1, Ordering::Relaxed);
                    }
                    if round % 4 == 0 {
                        assert!(
                            harness.requeue(uid, &owner).unwrap(),
                            "{owner} gives run {uid} back"
                        );
                        tally.requeued.fetch_add(1, Ordering::Relaxed);
                    } else {
                        // The worker dies, and its lease runs out.
                        assert!(
                            harness.renew_lease(uid, &owner, now - 5).unwrap(),
                            "the last beat of {owner} on run {uid}"
                        );
                        tally.crashed.fetch_add(1, Ordering::Relaxed);
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
        assert!(results.iter().all(Result::is_ok), "every worker came through");
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

    let crashed = tally.crashed.load(Ordering::Relaxed);
    let by_hand = tally.requeued.load(Ordering::Relaxed);
    let by_php = php_reaped.load(Ordering::Relaxed);
    assert!(
        tally.claims.load(Ordering::Relaxed) > 200 && !reaped.is_empty() && by_php > 0,
        "{tally:?}, {} reaped, {by_php} by PHP",
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
    if server.is_mariadb() && !key {
        assert_eq!(server.global_status("Innodb_deadlocks"), 0, "{}", server.log());
    }
}

#[test]
fn p06_p07_mixed_workers_for_ten_seconds() {
    mixed_load(false);
}

#[test]
fn p06_p07_mixed_workers_with_the_lease_key() {
    mixed_load(true);
}
