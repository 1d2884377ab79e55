//! Whose clock writes and judges: rule 23. The server's clock is set far away from the caller's, and stands still.

use nrllm_runtime::config::options::{Clock, Options};
use nrllm_runtime::domain::failure::FailureClass;
use nrllm_runtime::ops::reap::Request;
use nrllm_runtime::ops::recover_failure::Recovery;

use crate::subject::{LEASE, NOW, Subject, request, uids};
use crate::support::database::{Database, Run, Shape, assert_row, changed};
use crate::support::server::{Endpoint, Server};

/// The time of the server's clock.
const THERE: i64 = 2_000_000_000;
const OWNER: &str = "worker:web-01:4711:c0ffee";

/// A server whose clock stands at [`THERE`] for an ordinary account.
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

fn subject(server: &Server, database: &Database, clock: Clock) -> Subject {
    let options = Options { clock, ..Options::default() };
    Subject::at(&site_account(server, database), database.name(), options)
}

#[test]
fn p23_every_time_comes_from_the_clock_that_was_chosen() {
    let server = server();
    for (clock, now) in [(Clock::Caller, NOW), (Clock::Database, THERE)] {
        let mut database = Database::on(&server, &Shape::default().queued_at());
        let mut subject = subject(&server, &database, clock);
        let (now_text, lease) = (now.to_string(), (now + 900).to_string());
        let why = format!("{clock:?}");

        let uid = database.insert(&Run::queued());
        let before = database.row(uid);
        assert!(subject.claim(uid, OWNER, LEASE).unwrap());
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
        assert!(subject.renew(held, OWNER, LEASE).unwrap());
        let renewed = changed(&before, &[("lease_expires", &lease), ("tstamp", &now_text)]);
        assert_row(&database.row(held), &renewed, &why);
        assert!(subject.fence(held, OWNER, "read_only", LEASE + 50).unwrap());
        assert_eq!(database.get(held, "lease_expires"), (now + 950).to_string(), "{why}");

        assert!(subject.requeue(held, OWNER).unwrap());
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
        assert!(subject.cancel(&uuid).unwrap());
        assert!(subject.fail_undispatched(ended[1], 0, "E").unwrap());
        assert!(
            subject.dead_letter_stale(ended[2], NOW, "not_retryable").unwrap(),
            "{why}: a given now is moved alike"
        );
        assert!(!subject.dead_letter_stale(ended[3], NOW, "not_retryable").unwrap(), "{why}");
        let recovery = subject.recover(ended[3], OWNER, FailureClass::Auth, "E").unwrap();
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
fn p23_staleness_is_judged_by_the_clock_that_was_chosen() {
    let server = server();
    for (clock, now) in [(Clock::Caller, NOW), (Clock::Database, THERE)] {
        let mut database = Database::on(&server, &Shape::default());
        let mut subject = subject(&server, &database, clock);
        let runs: Vec<Run> =
            [now - 1, now, now + 99, now + 100].map(|lease| Run::running(OWNER, lease)).to_vec();
        let all = database.insert_all(&runs);
        assert_eq!(uids(&subject.reap_all(10).requeued), all[..1], "{clock:?}");
        let later = |now| Request { now: Some(now), ..request(10) };
        assert_eq!(
            uids(&subject.reap(&later(NOW + 100)).unwrap().requeued),
            all[1..3],
            "{clock:?}: a given now is moved alike"
        );
        assert!(subject.requeue_stale(all[3], NOW + 101).unwrap(), "{clock:?}");
        database.insert(&Run::running(OWNER, 5));
        assert_eq!(subject.reap(&later(0)).unwrap(), subject.reap(&later(0)).unwrap());
        assert!(
            uids(&subject.reap(&later(0)).unwrap().requeued).is_empty(),
            "{clock:?}: 0 handles nothing"
        );
    }
}

#[test]
fn p23_times_stay_in_the_columns_range() {
    for (there, lease, stored) in [
        (THERE, NOW + 2_500_000_000, 4_294_967_295_i64),
        (1_000, 1, 1),
        (1_000, NOW - 999, 1),
        (1_000, NOW + 5, 1_005),
    ] {
        let server = Server::start(&[&format!("--init-connect=SET timestamp = {there}")]);
        let mut database = Database::on(&server, &Shape::default());
        let uid = database.insert(&Run::queued());
        let mut subject = subject(&server, &database, Clock::Database);
        assert!(subject.claim(uid, OWNER, lease).unwrap());
        assert_eq!(database.get(uid, "lease_expires"), stored.to_string());
        assert!(subject.renew(uid, OWNER, lease).unwrap());
        assert_eq!(database.get(uid, "lease_expires"), stored.to_string());
    }
}
