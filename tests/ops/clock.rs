//! The clock by which times are written and compared (rule 23). The server's clock is set far from
//! the caller's, and is stopped.

use nrllm_runtime::config::options::{Clock, Options};
use nrllm_runtime::config::requests::ReapRequest;
use nrllm_runtime::domain::failure::FailureClass;
use nrllm_runtime::ops::recover_failure::Recovery;

use crate::support::database::{Database, Run, Shape, assert_row, changed};
use crate::support::harness::{Harness, LEASE, NOW, OWNER, request, uids};
use crate::support::server::{Endpoint, Server};

/// The time of the server's clock.
const THERE: i64 = 2_000_000_000;

/// A server whose clock is stopped at [`THERE`] for an ordinary account.
fn server() -> Server {
    Server::start(&[&format!("--init-connect=SET timestamp = {THERE}")])
}

fn site_account(server: &Server, database: &Database) -> Endpoint {
    let mut admin = server.client();
    admin.run("CREATE USER IF NOT EXISTS 'site'@'127.0.0.1' IDENTIFIED BY 'site-Passw0rd'");
    admin.run(&format!(
        "GRANT SELECT, INSERT, UPDATE, DELETE ON {}.* TO 'site'@'127.0.0.1'",
        database.name()
    ));
    Endpoint {
        user: "site".to_owned(),
        password: "site-Passw0rd".to_owned(),
        ..server.endpoint().clone()
    }
}

fn harness(server: &Server, database: &Database, clock: Clock) -> Harness {
    let options = Options { clock, ..Options::default() };
    Harness::at(&site_account(server, database), database.name(), options)
}

#[test]
fn p23_every_time_comes_from_the_chosen_clock() {
    let server = server();
    for (clock, now) in [(Clock::Caller, NOW), (Clock::Database, THERE)] {
        let mut database = Database::on(&server, &Shape::default().queued_at());
        let mut harness = harness(&server, &database, clock);
        let (now_text, lease) = (now.to_string(), (now + 900).to_string());
        let why = format!("{clock:?}");

        let uid = database.insert(&Run::queued());
        let before = database.row(uid);
        assert!(harness.claim_queued(uid, OWNER, LEASE).unwrap());
        let claimed = changed(
            &before,
            &[
                ("status", "running"),
                ("claimed_by", OWNER),
                ("lease_expires", &lease),
                ("started_at", &now_text),
                ("tstamp", &now_text),
            ],
        );
        assert_row(&database.row(uid), &claimed, &why);

        let held = database.insert(&Run::running(OWNER, 5));
        let before = database.row(held);
        assert!(harness.renew_lease(held, OWNER, LEASE).unwrap());
        let renewed = changed(&before, &[("lease_expires", &lease), ("tstamp", &now_text)]);
        assert_row(&database.row(held), &renewed, &why);
        assert!(harness.mark_pending_effect(held, OWNER, "read_only", LEASE + 50).unwrap());
        assert_eq!(database.get(held, "lease_expires"), (now + 950).to_string(), "{why}");

        assert!(harness.requeue(held, OWNER).unwrap());
        assert_eq!(
            (database.get(held, "queued_at"), database.get(held, "tstamp")),
            (now_text.clone(), now_text.clone()),
            "{why}"
        );

        let ended = database.insert_all(&[
            Run::queued(),
            Run::queued(),
            Run::running(OWNER, now - 1),
            Run::running(OWNER, now),
        ]);
        let uuid = database.get(ended[0], "uuid");
        assert!(harness.cancel_run(&uuid).unwrap());
        assert!(harness.fail_undispatched(ended[1], 0, "E").unwrap());
        assert!(
            harness.dead_letter_stale(ended[2], NOW, "not_retryable").unwrap(),
            "{why}: a given now is moved alike"
        );
        assert!(!harness.dead_letter_stale(ended[3], NOW, "not_retryable").unwrap(), "{why}");
        let recovery = harness.recover_failure(ended[3], OWNER, FailureClass::Auth, "E").unwrap();
        assert!(matches!(recovery, Recovery::DeadLettered { .. }));
        for uid in ended {
            assert_eq!(
                (database.get(uid, "finished_at"), database.get(uid, "tstamp")),
                (now_text.clone(), now_text.clone()),
                "{why}"
            );
        }
    }
}

#[test]
fn p23_staleness_is_compared_with_the_chosen_clock() {
    let server = server();
    for (clock, now) in [(Clock::Caller, NOW), (Clock::Database, THERE)] {
        let mut database = Database::on(&server, &Shape::default());
        let mut harness = harness(&server, &database, clock);
        let runs: Vec<Run> =
            [now - 1, now, now + 99, now + 100].map(|lease| Run::running(OWNER, lease)).to_vec();
        let all = database.insert_all(&runs);
        assert_eq!(uids(&harness.reap_all(10).requeued), all[..1], "{clock:?}");
        let later = |now| ReapRequest { now: Some(now), ..request(10) };
        assert_eq!(
            uids(&harness.reap(&later(NOW + 100)).unwrap().requeued),
            all[1..3],
            "{clock:?}: a given now is moved alike"
        );
        assert!(harness.requeue_stale(all[3], NOW + 101).unwrap(), "{clock:?}");
        database.insert(&Run::running(OWNER, 5));
        assert_eq!(harness.reap(&later(0)).unwrap(), harness.reap(&later(0)).unwrap());
        assert!(
            uids(&harness.reap(&later(0)).unwrap().requeued).is_empty(),
            "{clock:?}: 0 handles nothing"
        );
    }
}

#[test]
fn p23_times_stay_in_the_range_of_the_column() {
    for (there, lease, stored) in [
        (THERE, NOW + 2_500_000_000, 4_294_967_295_i64),
        (1_000, 1, 1),
        (1_000, NOW - 999, 1),
        (1_000, NOW + 5, 1_005),
    ] {
        let server = Server::start(&[&format!("--init-connect=SET timestamp = {there}")]);
        let mut database = Database::on(&server, &Shape::default());
        let uid = database.insert(&Run::queued());
        let mut harness = harness(&server, &database, Clock::Database);
        assert!(harness.claim_queued(uid, OWNER, lease).unwrap());
        assert_eq!(database.get(uid, "lease_expires"), stored.to_string());
        assert!(harness.renew_lease(uid, OWNER, lease).unwrap());
        assert_eq!(database.get(uid, "lease_expires"), stored.to_string());
    }
}
