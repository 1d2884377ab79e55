//! What replicas hold (rule 33): equal tables after mixed operations, in every format of the binary
//! log.

use std::time::Duration;

use nrllm_runtime::config::options::{Clock, Options};
use nrllm_runtime::config::requests::ReapRequest;
use nrllm_runtime::domain::failure::FailureClass;
use nrllm_runtime::domain::holder::Holder;
use nrllm_runtime::ops::heartbeat::{End, send_heartbeat};

use crate::support::database::{Database, Run, Shape};
use crate::support::harness::{Harness, NOW, OWNER};
use crate::support::server::Server;

/// Operations per format; `bin/suites/88-replication` asks for 10 000.
fn operations() -> u64 {
    std::env::var("NRLLM_REPLICATION_OPERATIONS").map_or(300, |number| number.parse().unwrap())
}

/// Makes `replica` follow `primary` from its present position.
fn follow(primary: &Server, replica: &Server) {
    let to = primary.endpoint();
    let mut client = replica.client();
    let (file, position) = position(primary);
    if primary.is_mariadb() {
        client.run(&format!(
            "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {}, MASTER_USER = '{}', MASTER_PASSWORD = '{}', \
             MASTER_LOG_FILE = '{file}', MASTER_LOG_POS = {position}",
            to.port, to.user, to.password
        ));
        client.run("START SLAVE");
    } else {
        client.run(&format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {}, SOURCE_USER = '{}', \
             SOURCE_PASSWORD = '{}', GET_SOURCE_PUBLIC_KEY = 1, SOURCE_LOG_FILE = '{file}', SOURCE_LOG_POS = {position}",
            to.port, to.user, to.password
        ));
        client.run("START REPLICA");
    }
}

/// The present end of a server's binary log.
fn position(server: &Server) -> (String, u64) {
    let sql = if server.is_mariadb() { "SHOW MASTER STATUS" } else { "SHOW BINARY LOG STATUS" };
    let row = server.client().rows(sql).remove(0);
    let text = |index: usize| String::from_utf8(row[index].clone().unwrap()).unwrap();
    (text(0), text(1).parse().unwrap())
}

/// Waits until `replica` has executed what `primary` has logged.
fn wait_for(primary: &Server, replica: &Server) {
    let (file, position) = position(primary);
    let function = if primary.is_mariadb() { "MASTER_POS_WAIT" } else { "SOURCE_POS_WAIT" };
    let mut client = replica.client();
    for _ in 0..300 {
        let sql = format!("SELECT COALESCE({function}('{file}', {position}, 1), -2)");
        match client.number(&sql) {
            -1 => {}
            // Not running: an error stopped it.
            -2 => {
                let sql =
                    if primary.is_mariadb() { "SHOW SLAVE STATUS" } else { "SHOW REPLICA STATUS" };
                let status = client.maps(sql).remove(0);
                let error = status.get("Last_SQL_Error").cloned().flatten().unwrap_or_default();
                let error = String::from_utf8_lossy(&error).into_owned();
                assert!(error.is_empty(), "the replica stopped: {error}");
                std::thread::sleep(Duration::from_millis(100));
            }
            _ => return,
        }
    }
    panic!("the replica did not catch up");
}

/// Runs one operation that the number chooses. Its result is of no interest, an error is.
fn operate(harness: &mut Harness, random: &mut fastrand::Rng, runs: &[(i64, String)]) {
    let (uid, uuid) = &runs[random.usize(..runs.len())];
    let (uid, time) = (*uid, harness.time);
    let owner = if random.bool() { OWNER } else { "worker:other" };
    let lease = time + random.i64(-30..600);
    match random.u32(..16) {
        0..3 => drop(harness.claim_queued(uid, owner, lease).unwrap()),
        3 => drop(harness.renew_lease(uid, owner, lease).unwrap()),
        4 => {
            let effect = ["", "read_only", "non_idempotent_write"][random.usize(..3)];
            harness.mark_pending_effect(uid, owner, effect, lease).unwrap();
        }
        5 => drop(harness.requeue(uid, owner).unwrap()),
        6 => drop(harness.hand_back(uid, owner, None).unwrap()),
        7 => drop(harness.requeue_stale(uid, time).unwrap()),
        8 if random.u32(..8) == 0 => {
            harness.dead_letter_stale(uid, time, "retries_exhausted").unwrap();
        }
        9 => {
            harness.recover_failure(uid, owner, FailureClass::RateLimit, "E").unwrap();
        }
        10 if random.u32(..20) == 0 => drop(harness.cancel_run(uuid).unwrap()),
        11 => drop(harness.fail_undispatched(uid, 99, "E").unwrap()),
        12 => {
            let request = ReapRequest { limit: 20, ..ReapRequest::default() };
            harness.reap(&request).unwrap();
        }
        _ => {
            let options = harness.options.clone();
            let holder = Holder { run_uid: u64::try_from(uid).unwrap(), owner };
            harness
                .run(async |session, _| {
                    send_heartbeat(session, &options, holder, 60, End::NeverEarlier, || true).await
                })
                .unwrap();
        }
    }
}

#[test]
fn p33_replicas_agree_in_every_format() {
    let replica = Server::start(&["--server-id=2", "--log-bin", "--relay-log=relay"]);
    for format in ["STATEMENT", "MIXED", "ROW"] {
        let primary =
            Server::start(&["--server-id=1", "--log-bin", &format!("--binlog-format={format}")]);
        let mut follower = replica.client();
        if primary.is_mariadb() {
            follower.run("STOP SLAVE");
            follower.run("RESET SLAVE ALL");
        } else {
            follower.run("STOP REPLICA");
            follower.run("RESET REPLICA ALL");
        }
        follow(&primary, &replica);
        let mut database = Database::on(&primary, &Shape::default());
        let seed = 33;
        let mut random = fastrand::Rng::with_seed(seed);
        let mut runs = Vec::new();
        let mut harnesses = [Clock::Caller, Clock::Database].map(|clock| {
            let mut harness = Harness::with(&database, Options { clock, ..Options::default() });
            harness.time = NOW;
            harness
        });
        for number in 0..operations() {
            // Runs that have ended are followed by new ones.
            if number % 25 == 0 {
                let uuid = format!("{number:08}-0000-4000-8000-000000000000");
                let run = Run::queued().uuid(&uuid).request(&"payload ü\0\n'".repeat(100));
                runs.push((database.insert(&run), uuid));
            }
            let recent = runs.len().saturating_sub(40);
            let harness = &mut harnesses[usize::from(random.u32(..4) == 0)];
            harness.time += 1;
            operate(harness, &mut random, &runs[recent..]);
        }
        wait_for(&primary, &replica);
        let sql = format!("SELECT * FROM `{}`.tx_nrllm_agentrun ORDER BY uid", database.name());
        let (ours, theirs) = (primary.client().rows(&sql), replica.client().rows(&sql));
        assert!(ours.len() > 5);
        let differs = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
        assert_eq!((theirs.len(), differs), (ours.len(), None), "{format}, seed {seed}");
    }
}
