//! Who owns a run: rules 1 to 3, and the operations of one lease with every column compared.

use nrllm_runtime::domain::failure::FailureClass;
use nrllm_runtime::error::Kind;
use nrllm_runtime::ops::heartbeat;

use crate::subject::{LEASE, NOW, Subject, error_of};
use crate::support::client::Client;
use crate::support::database::{Database, Run, Shape, assert_row, changed};
use crate::support::peer::Peer;
use crate::support::proxy::{FoundRows, Info, Proxy};
use crate::support::server::{Server, shared, wants_mysql};

const OWNER: &str = "worker:web-01:4711:c0ffee";

const INFOS: [Info; 3] = [Info::Keep, Info::Translate, Info::Drop];
const MODES: [FoundRows; 4] =
    [FoundRows::AsAsked, FoundRows::On, FoundRows::Off, FoundRows::Flipped];

#[test]
fn claim_writes_owner_lease_and_times_and_nothing_else() {
    let mut database = Database::with(&Shape::default().queued_at());
    let uid = database.insert(&Run::queued().requeued(2).fence("read_only"));
    let before = database.row(uid);
    let mut subject = Subject::on(&database);
    assert!(subject.claim(uid, OWNER, LEASE).unwrap());
    let now = NOW.to_string();
    let expected = changed(
        &before,
        &[
            ("status", "running"),
            ("claimed_by", OWNER),
            ("lease_expires", &LEASE.to_string()),
            ("started_at", &now),
            ("tstamp", &now),
        ],
    );
    assert_row(&database.row(uid), &expected, "a claim");
    assert!(!subject.claim(uid, "worker:other", LEASE + 1).unwrap(), "somebody has it");
    assert!(
        !subject.claim(uid, OWNER, LEASE + 1).unwrap(),
        "and it is not queued, not even for its owner"
    );
    assert_row(&database.row(uid), &expected, "a claim that came too late");
}

#[test]
fn only_queued_runs_can_be_claimed() {
    let mut database = Database::new();
    let mut subject = Subject::on(&database);
    for status in [
        "running",
        "waiting_for_approval",
        "waiting_for_input",
        "completed",
        "failed",
        "cancelled",
        "some_later_status",
    ] {
        let uid = database.insert(&Run::in_status(status));
        let before = database.row(uid);
        assert!(!subject.claim(uid, OWNER, LEASE).unwrap(), "{status}");
        assert_row(&database.row(uid), &before, status);
    }
    assert!(!subject.claim(4_000_000_000, OWNER, LEASE).unwrap(), "no such run");
    assert!(
        !subject.claim(i64::MAX, OWNER, LEASE).unwrap(),
        "no such run, beyond the column's range"
    );
}

#[test]
fn of_two_claims_one_wins() {
    let mut database = Database::new();
    let uids = database.insert_all(&vec![Run::queued(); 40]);
    let won: Vec<Vec<i64>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|number| {
                let (mut subject, uids) = (Subject::on(&database), uids.clone());
                scope.spawn(move || {
                    let owner = format!("worker:{number}");
                    uids.into_iter()
                        .filter(|uid| subject.claim(*uid, &owner, LEASE).unwrap())
                        .collect()
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    let mut all: Vec<i64> = won.iter().flatten().copied().collect();
    all.sort_unstable();
    assert_eq!(all, uids, "every run was won exactly once");
    for (number, uids) in won.iter().enumerate() {
        for uid in uids {
            assert_eq!(database.get(*uid, "claimed_by"), format!("worker:{number}"));
        }
    }
}

#[test]
fn renew_moves_lease_and_tstamp_and_nothing_else() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running(OWNER, NOW - 5).fence("non_idempotent_write"));
    let before = database.row(uid);
    assert!(Subject::on(&database).renew(uid, OWNER, LEASE).unwrap(), "over, but taken by nobody");
    let expected =
        changed(&before, &[("lease_expires", &LEASE.to_string()), ("tstamp", &NOW.to_string())]);
    assert_row(&database.row(uid), &expected, "a renewal");
}

#[test]
fn the_fence_is_marked_and_cleared_with_the_lease() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running(OWNER, NOW + 5));
    let before = database.row(uid);
    let mut subject = Subject::on(&database);
    for effect in
        ["non_idempotent_write", "", "an_effect_of_a_later_release", "read_only", "read_only"]
    {
        assert!(subject.fence(uid, OWNER, effect, LEASE).unwrap());
        let lease = LEASE.to_string();
        let now = NOW.to_string();
        let expected = changed(
            &before,
            &[("pending_effect", effect), ("lease_expires", &lease), ("tstamp", &now)],
        );
        assert_row(&database.row(uid), &expected, effect);
    }
    let marked = database.row(uid);
    assert!(!subject.fence(uid, "worker:other", "", LEASE + 9).unwrap());
    assert_row(&database.row(uid), &marked, "the fence of somebody else");
}

#[test]
fn requeue_releases_the_run_and_keeps_its_payload() {
    for queued_at in [false, true] {
        let shape = if queued_at { Shape::default().queued_at() } else { Shape::default() };
        let mut database = Database::with(&shape);
        // Neither budget nor fence is asked.
        let run = Run::running(OWNER, LEASE).requeued(7).fence("non_idempotent_write");
        let uid = database.insert(&run);
        let stale = database.insert(
            &run.clone().owner("worker:dead").set("lease_expires", NOW - 1).without_request(),
        );
        let before = [database.row(uid), database.row(stale)];
        let mut subject = Subject::on(&database);
        assert!(!subject.requeue(uid, "worker:other").unwrap());
        assert!(!subject.requeue_stale(uid, NOW).unwrap(), "its lease is not over");
        assert_row(&database.row(uid), &before[0], "a requeue by somebody else");
        assert!(subject.requeue(uid, OWNER).unwrap());
        assert!(subject.requeue_stale(stale, NOW).unwrap());
        assert!(
            !subject.requeue(uid, OWNER).unwrap() && !subject.requeue_stale(stale, NOW).unwrap(),
            "it is done"
        );
        let now = NOW.to_string();
        let mut changes = vec![
            ("status", "queued"),
            ("requeue_count", "8"),
            ("claimed_by", ""),
            ("lease_expires", "0"),
            ("pending_effect", ""),
            ("tstamp", &now),
        ];
        if queued_at {
            changes.push(("queued_at", &now));
        }
        for (uid, before) in [uid, stale].into_iter().zip(before) {
            assert_row(&database.row(uid), &changed(&before, &changes), "a requeue");
        }
    }
}

#[test]
fn stale_is_strictly_less_and_never_a_lease_of_zero() {
    let mut database = Database::new();
    let mut subject = Subject::on(&database);
    for (lease, now, stale) in [
        (NOW, NOW, false),
        (NOW - 1, NOW, true),
        (0, NOW, false),
        (1, 1, false),
        (1, 2, true),
        (1, 0, false),
        (4_294_967_295, 4_294_967_295, false),
        (4_294_967_294, 4_294_967_295, true),
    ] {
        let uid = database.insert(&Run::running(OWNER, lease));
        assert_eq!(
            subject.requeue_stale(uid, now).unwrap(),
            stale,
            "requeue: lease {lease}, now {now}"
        );
        let uid = database.insert(&Run::running(OWNER, lease));
        assert_eq!(
            subject.dead_letter_stale(uid, now, "retries_exhausted").unwrap(),
            stale,
            "dead-letter: lease {lease}, now {now}"
        );
    }
    let queued = database.insert(&Run::queued().set("lease_expires", 5));
    assert!(!subject.requeue_stale(queued, NOW).unwrap(), "not running");
}

#[test]
fn a_counter_at_its_end_is_left_alone() {
    let mut database = Database::new();
    let mut subject = Subject::on(&database);
    for (count, possible) in [(4_294_967_294_u64, true), (4_294_967_295, false)] {
        let held = database.insert(&Run::running(OWNER, LEASE).requeued(count));
        let stale = database.insert(&Run::running(OWNER, NOW - 1).requeued(count));
        let before = [database.row(held), database.row(stale)];
        assert_eq!(subject.requeue(held, OWNER).unwrap(), possible);
        assert_eq!(subject.requeue_stale(stale, NOW).unwrap(), possible);
        if !possible {
            assert_row(&database.row(held), &before[0], "requeue");
            assert_row(&database.row(stale), &before[1], "requeueStale");
        }
    }
}

#[test]
fn a_dead_letter_keeps_fence_totals_and_cost() {
    let mut database = Database::new();
    let uid = database.insert(
        &Run::running(OWNER, NOW - 1)
            .requeued(1)
            .fence("non_idempotent_write")
            .set("error_class", "Old"),
    );
    let before = database.row(uid);
    assert!(Subject::on(&database).dead_letter_stale(uid, NOW, "a_reason_of_the_caller").unwrap());
    let now = NOW.to_string();
    let expected = changed(
        &before,
        &[
            ("status", "failed"),
            ("termination_reason", "a_reason_of_the_caller"),
            ("error_class", ""),
            ("suspended_state", ""),
            ("queued_request", ""),
            ("claimed_by", ""),
            ("lease_expires", "0"),
            ("finished_at", &now),
            ("tstamp", &now),
        ],
    );
    assert_row(&database.row(uid), &expected, "a dead letter");
}

#[test]
fn cancel_ends_what_has_not_ended_and_one_row_at_most() {
    let mut database = Database::new();
    let mut subject = Subject::on(&database);
    for status in ["queued", "running", "waiting_for_approval", "waiting_for_input"] {
        let uid = database.insert(
            &Run::in_status(status)
                .owner(OWNER)
                .set("lease_expires", LEASE)
                .set("error_class", "Old")
                .fence("read_only"),
        );
        let before = database.row(uid);
        assert!(subject.cancel(&database.get(uid, "uuid")).unwrap(), "{status}");
        let now = NOW.to_string();
        let expected = changed(
            &before,
            &[
                ("status", "cancelled"),
                ("termination_reason", "cancelled"),
                ("error_class", ""),
                ("suspended_state", ""),
                ("queued_request", ""),
                ("claimed_by", ""),
                ("lease_expires", "0"),
                ("finished_at", &now),
                ("tstamp", &now),
            ],
        );
        assert_row(&database.row(uid), &expected, status);
    }
    for status in ["completed", "failed", "cancelled"] {
        let uid = database.insert(&Run::in_status(status));
        let before = database.row(uid);
        assert!(!subject.cancel(&database.get(uid, "uuid")).unwrap(), "{status}");
        assert_row(&database.row(uid), &before, status);
    }
    assert!(!subject.cancel("no such run").unwrap());

    // The key over the uuid is not unique.
    let twins = database.insert_all(&vec![Run::queued().uuid("twin"); 3]);
    assert!(subject.cancel("twin").unwrap());
    let cancelled = |database: &mut Database| {
        twins.iter().filter(|uid| database.get(**uid, "status") == "cancelled").count()
    };
    assert_eq!(cancelled(&mut database), 1);
    assert!(
        !subject.cancel("TWIN").unwrap() && !subject.cancel("twin ").unwrap(),
        "a uuid is compared byte by byte"
    );
    assert_eq!(cancelled(&mut database), 1);
}

#[test]
fn a_lease_state_for_every_status() {
    let mut database = Database::new();
    let mut subject = Subject::on(&database);
    for (run, state) in [
        (Run::running(OWNER, LEASE), "held"),
        (Run::running(OWNER, NOW - 500), "held"),
        (Run::running("worker:other", LEASE), "taken"),
        (Run::running("", 0), "taken"),
        (Run::queued(), "requeued"),
        (Run::in_status("waiting_for_approval"), "waiting"),
        (Run::in_status("waiting_for_input"), "waiting"),
        (Run::in_status("cancelled"), "cancelled"),
        (Run::in_status("completed"), "completed"),
        (Run::in_status("failed"), "failed"),
        (Run::in_status("a_later_status"), "other"),
        (Run::in_status(""), "other"),
    ] {
        let uid = database.insert(&run);
        assert_eq!(subject.lease_state(uid, OWNER).unwrap(), state);
    }
    assert_eq!(subject.lease_state(4_000_000_000, OWNER).unwrap(), "gone");
}

#[test]
fn a_lease_state_does_not_queue_behind_a_row_lock() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running(OWNER, LEASE));
    let mut subject = Subject::on(&database);
    let mut peer = Peer::of(&database);
    peer.hold(uid);
    assert_eq!(subject.lease_state(uid, OWNER).unwrap(), "held");
    peer.let_go();
}

#[test]
fn p01_unchanged_renewal_is_a_renewal() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    for mode in MODES {
        for info in INFOS {
            proxy.found_rows(mode);
            proxy.info(info.clone());
            let uid = database.insert(&Run::running(OWNER, LEASE).tstamp(NOW).fence("read_only"));
            let gone = database.insert(&Run::running("worker:other", LEASE).tstamp(NOW));
            let mut subject = Subject::through(&proxy, &database);
            assert!(subject.renew(uid, OWNER, LEASE).unwrap(), "{mode:?} {info:?}");
            assert!(subject.renew(uid, OWNER, LEASE).unwrap(), "{mode:?} {info:?}");
            assert!(subject.fence(uid, OWNER, "read_only", LEASE).unwrap(), "{mode:?} {info:?}");
            assert!(!subject.renew(gone, OWNER, LEASE).unwrap(), "{mode:?} {info:?}");
            assert!(!subject.fence(gone, OWNER, "read_only", LEASE).unwrap(), "{mode:?} {info:?}");
        }
    }
}

#[test]
fn p01_a_renewal_is_one_round_trip_and_two_without_the_text() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running(OWNER, LEASE));
    let proxy = Proxy::start(database.endpoint());
    let mut subject = Subject::through(&proxy, &database);
    for (info, trips) in [(Info::Keep, 1), (Info::Drop, 2)] {
        proxy.info(info);
        subject.renew(uid, OWNER, LEASE).unwrap();
        let before = proxy.count();
        assert!(subject.renew(uid, OWNER, LEASE).unwrap());
        assert_eq!(proxy.count().since(before).round_trips, trips);
    }
}

#[test]
fn p01_no_operation_believes_the_affected_rows() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    for mode in MODES {
        for info in INFOS {
            let why = format!("{mode:?} {info:?}");
            proxy.found_rows(mode);
            proxy.info(info.clone());
            let mut subject = Subject::through(&proxy, &database);
            let queued = database.insert(&Run::queued());
            let held = database.insert(&Run::running(OWNER, LEASE));
            let stale = database.insert_all(&vec![Run::running("worker:dead", NOW - 1); 2]);
            let requeued = database.insert(&Run::queued().requeued(2));
            let cancelled = database.insert(&Run::queued());
            let uuid = database.get(cancelled, "uuid");
            let live = database.insert(&Run::running("worker:other", LEASE));
            let ended = database.insert(&Run::in_status("completed"));
            let ended_uuid = database.get(ended, "uuid");
            for expected in [true, false] {
                assert_eq!(subject.requeue(held, OWNER).unwrap(), expected, "requeue {why}");
                assert_eq!(
                    subject.requeue_stale(stale[0], NOW).unwrap(),
                    expected,
                    "requeueStale {why}"
                );
                // Without the text the row decides, read back under its lock: what stands in it already was done.
                let expected = expected || info == Info::Drop;
                assert_eq!(subject.claim(queued, OWNER, LEASE).unwrap(), expected, "claim {why}");
                assert_eq!(
                    subject.dead_letter_stale(stale[1], NOW, "not_retryable").unwrap(),
                    expected,
                    "deadLetterStale {why}"
                );
                assert_eq!(
                    subject.fail_undispatched(requeued, 2, "E").unwrap(),
                    expected,
                    "failUndispatched {why}"
                );
                assert_eq!(subject.cancel(&uuid).unwrap(), expected, "cancelRun {why}");
            }
            let before = database.row(live);
            assert!(!subject.claim(queued, "worker:other", LEASE).unwrap(), "claim {why}");
            assert!(!subject.claim(queued, OWNER, LEASE + 1).unwrap(), "claim {why}");
            assert!(!subject.requeue(live, OWNER).unwrap(), "requeue {why}");
            assert!(!subject.requeue_stale(live, NOW).unwrap(), "requeueStale {why}");
            assert!(
                !subject.dead_letter_stale(live, NOW, "not_retryable").unwrap(),
                "deadLetterStale {why}"
            );
            assert!(
                !subject.dead_letter_stale(stale[1], NOW, "retries_exhausted").unwrap(),
                "deadLetterStale {why}"
            );
            assert!(!subject.fail_undispatched(live, 0, "E").unwrap(), "failUndispatched {why}");
            assert!(!subject.cancel(&ended_uuid).unwrap(), "cancelRun {why}");
            assert_row(&database.row(live), &before, &why);
        }
    }
}

/// The defaults of a site that the session must not inherit.
const HOSTILE: [&[&str]; 3] = [
    &["--autocommit=0"],
    &["--autocommit=0", "--transaction-isolation=SERIALIZABLE", "--sql-mode="],
    &[
        "--transaction-isolation=REPEATABLE-READ",
        "--sql-mode=ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES",
    ],
];

#[test]
fn p02_ownership_is_never_read_from_an_old_snapshot() {
    for options in HOSTILE {
        let server = Server::start(options);
        let mut database = Database::on(&server, &Shape::default());
        let uid = database.insert(&Run::running(OWNER, NOW - 1));
        let queued = database.insert(&Run::queued());
        let mut subject = Subject::on(&database);
        let mut peer = Peer::of(&database);
        peer.client.run("SET autocommit = 1");
        for round in 0..3 {
            assert!(subject.renew(uid, OWNER, NOW - 1).unwrap(), "{options:?}");
            assert_eq!(subject.lease_state(uid, OWNER).unwrap(), "held");
            peer.requeue_stale(uid, NOW).unwrap();
            assert_eq!(subject.lease_state(uid, OWNER).unwrap(), "requeued", "{options:?}");
            assert!(!subject.renew(uid, OWNER, LEASE).unwrap(), "{options:?}");
            assert!(!subject.fence(uid, OWNER, "", LEASE).unwrap(), "{options:?}");
            peer.claim(uid, OWNER, NOW - 1, NOW).unwrap();
            assert!(subject.claim(queued, OWNER, LEASE + round).unwrap());
            assert_eq!(
                database.get(queued, "claimed_by"),
                OWNER,
                "{options:?}: others see the claim at once"
            );
            assert!(subject.requeue(queued, OWNER).unwrap());
        }
    }
}

/// Owners that collations take for one another.
const ALIKE: [[&str; 2]; 8] = [
    ["worker:a", "WORKER:A"],
    ["worker:a", "worker:\u{e4}"],
    ["worker:stra\u{df}e", "worker:strasse"],
    ["worker:a", "worker:a "],
    ["worker:a", "worker:a\0"],
    ["worker:a", "worker:\0a"],
    ["worker:a", "worker:\u{200b}a"],
    ["worker:\u{e9}", "worker:e\u{301}"],
];

fn collations() -> Vec<&'static str> {
    let mut collations = vec![
        "utf8mb4_unicode_ci",
        "utf8mb4_general_ci",
        "utf8mb4_bin",
        "utf8mb3_general_ci",
        "utf8mb3_unicode_ci",
        "utf8mb3_bin",
        "latin1_swedish_ci",
        "latin1_bin",
    ];
    if wants_mysql() {
        collations.extend(["utf8mb4_0900_ai_ci", "utf8mb4_0900_bin"]);
    } else {
        collations.extend([
            "utf8mb4_nopad_bin",
            "utf8mb4_unicode_nopad_ci",
            "utf8mb4_unicode_520_ci",
        ]);
    }
    collations
}

#[test]
fn p03_owners_compare_byte_by_byte() {
    for collation in collations() {
        let mut database = Database::with(&Shape::default().collation(collation));
        let mut subject = Subject::on(&database);
        for pair in ALIKE {
            for [holder, other] in [pair, [pair[1], pair[0]]] {
                let uid = database.insert(&Run::queued());
                match subject.claim(uid, holder, LEASE) {
                    Ok(true) => {}
                    Err(error)
                        if error.kind == Kind::Argument && collation.starts_with("latin1") =>
                    {
                        assert!(
                            !holder.chars().all(|c| u32::from(c) < 256),
                            "{holder:?} fits into latin1: {error}"
                        );
                        continue;
                    }
                    outcome => panic!("{collation}, {holder:?}: {outcome:?}"),
                }
                let stored = database
                    .client()
                    .text(&format!("SELECT HEX(CONVERT(claimed_by USING utf8mb4)) FROM tx_nrllm_agentrun WHERE uid = {uid}"));
                let hex: String = holder.bytes().map(|byte| format!("{byte:02X}")).collect();
                assert_eq!(stored, hex, "{collation}");
                let why = format!("{collation}: {holder:?} is not {other:?}");
                let before = database.row(uid);
                let lost = |outcome: nrllm_runtime::error::Result<bool>| match outcome {
                    Ok(owned) => assert!(!owned, "{why}"),
                    Err(error) => assert_eq!(error.kind, Kind::Argument, "{why}: {error}"),
                };
                lost(subject.renew(uid, other, LEASE));
                lost(subject.fence(uid, other, "read_only", LEASE));
                lost(subject.requeue(uid, other));
                match subject.lease_state(uid, other) {
                    Ok(state) => assert_eq!(state, "taken", "{why}"),
                    Err(error) => assert_eq!(error.kind, Kind::Argument, "{why}: {error}"),
                }
                assert_row(&database.row(uid), &before, &why);
                assert_eq!(subject.lease_state(uid, holder).unwrap(), "held", "{why}");
                assert!(subject.renew(uid, holder, LEASE).unwrap(), "{why}");
                assert!(subject.fence(uid, holder, "read_only", LEASE).unwrap(), "{why}");
                assert!(subject.requeue(uid, holder).unwrap(), "{why}");
            }
        }
    }
}

#[test]
fn p03_an_owner_the_column_cannot_hold_is_an_argument_error() {
    let lax = Server::start(&["--sql-mode="]);
    for (collation, owner) in [
        ("latin1_swedish_ci", "worker:\u{3c9}"),
        ("latin1_swedish_ci", "worker:\u{1f600}"),
        ("utf8mb3_general_ci", "worker:\u{1f600}"),
        ("ascii_general_ci", "worker:\u{e9}"),
    ] {
        for server in [&lax, shared()] {
            let mut database = Database::on(server, &Shape::default().collation(collation));
            let uid = database.insert(&Run::queued());
            let before = database.row(uid);
            let mut subject = Subject::on(&database);
            let options = subject.options.clone();
            let beat = subject.run(async |session, _| {
                heartbeat::beat(
                    session,
                    &options,
                    uid as u64,
                    owner,
                    60,
                    heartbeat::End::Exact,
                    || true,
                )
                .await
                .map(|_| false)
            });
            for refused in [
                subject.claim(uid, owner, LEASE),
                subject.renew(uid, owner, LEASE),
                subject.fence(uid, owner, "read_only", LEASE),
                subject.requeue(uid, owner),
                subject.lease_state(uid, owner).map(|_| false),
                subject.recover(uid, owner, FailureClass::Connection, "E").map(|_| false),
                beat,
            ] {
                let error = error_of(Kind::Argument, refused);
                assert!(error.message.contains("claimedBy"), "{error}");
            }
            assert_row(&database.row(uid), &before, collation);
        }
    }
    for (collation, owner) in [
        ("utf8mb4_bin", "worker:\u{1f600}"),
        ("utf8mb3_general_ci", "worker:\u{20ac}"),
        ("latin1_swedish_ci", "worker:\u{20ac}\u{e9}"),
    ] {
        let mut database = Database::with(&Shape::default().collation(collation));
        let uid = database.insert(&Run::queued());
        let mut subject = Subject::on(&database);
        assert!(
            subject.claim(uid, owner, LEASE).unwrap() && subject.renew(uid, owner, LEASE).unwrap(),
            "{collation} {owner}"
        );
    }
}

#[test]
fn p03_owners_of_other_workers_are_recognised_as_they_stored_them() {
    // A PHP worker whose connection has another character set writes the same characters in other bytes.
    for collation in ["latin1_swedish_ci", "utf8mb4_unicode_ci"] {
        let mut database = Database::with(&Shape::default().collation(collation));
        let uid = database.insert(&Run::queued());
        let mut php = Client::connect(database.endpoint(), Some(database.name()));
        php.run("SET NAMES latin1");
        php.run(&format!("UPDATE tx_nrllm_agentrun SET status = 'running', claimed_by = CONCAT('worker:', CHAR(0xFC USING latin1)), lease_expires = {LEASE} WHERE uid = {uid}"));
        assert!(Subject::on(&database).renew(uid, "worker:\u{fc}", LEASE).unwrap(), "{collation}");
    }
}
